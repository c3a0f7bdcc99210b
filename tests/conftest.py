"""Settings shared by all tests."""

import os
import runpy
import shutil
import signal
from pathlib import Path

import hypothesis
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

hypothesis.settings.register_profile(
    "deltarank", deadline=None, max_examples=60, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile("deltarank")


@pytest.fixture(scope="session", autouse=True)
def as_in_a_terminal():
    """Hear Ctrl-C here and in what tests start.

    A shell without job control starts background jobs with interrupts ignored, which every process
    below them inherits: a test that sends one would wait for ever.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the real data sets; tests that need it are skipped where there is none."""
    folder = os.environ.get("DELTARANK_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data absent: set DELTARANK_DATA to their folder")
    return Path(folder)


@pytest.fixture
def run_example(monkeypatch):
    """Run an example of the gallery without a window, and return its names."""
    matplotlib = pytest.importorskip("matplotlib", reason="examples draw figures")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.setattr(pyplot, "show", lambda: None)
    yield lambda name: runpy.run_path(str(EXAMPLES / f"{name}.py"))
    pyplot.close("all")


@pytest.fixture(scope="module")
def browser():
    """Chromium, headless; tests that need it are skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs Chromium and its driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()
