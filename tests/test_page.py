"""The report in a real browser: nothing missing, nothing wider than the screen, no errors."""

import pytest

from deltarank.paper.report.figures import new_figure, to_svg
from deltarank.paper.report.page import Section, to_page

SIZES = {"wide": (1400, 900), "phone": (390, 800)}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    drawings = []
    for name in ("one", "two"):
        figure, panel = new_figure(1, 1, width=8, height=3)
        panel.plot([1, 2], [3, 4], label=name)
        panel.legend()
        drawings.append((name, to_svg(figure)))
    rows = [{"case": "a < b & c", "loss": 0.25, "right": True} | {f"c{i}": i for i in range(20)}]
    sections = [
        Section("First <things>", ["A paragraph."], [("A wide table", rows, "A note.")]),
        Section("Second", figures=drawings),
    ]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(to_page("A report", sections))
    return path


@pytest.mark.parametrize("size", SIZES)
def test_everything_is_seen_and_nothing_complains(browser, page, size):
    browser.set_window_size(*SIZES[size])
    browser.get(page.as_uri())
    assert browser.get_log("browser") == []
    drawings = browser.find_elements("css selector", "figure svg")
    assert len(drawings) == 2
    for drawing in drawings:
        assert drawing.size["width"] > 300
        assert drawing.size["height"] > 100
        assert "one" in drawing.text or "two" in drawing.text
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= browser.execute_script("return window.innerWidth")
    assert browser.find_element("tag name", "td").text == "a < b & c"


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_the_page_follows_light_and_dark(browser, page, scheme, is_dark):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(page.as_uri())
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in colour[4:-1].split(",")[:3]) / 3
    assert (brightness < 100) == is_dark


def test_the_page_needs_nothing_from_elsewhere(page):
    text = page.read_text()
    for reference in ("src=", "@import", "<link", "<script"):
        assert reference not in text
    ids = [part.split('"')[0] for part in text.split(' id="')[1:]]
    assert len(ids) == len(set(ids)), "two drawings share an id"
