"""Links of the pages to files beside docs/, which have pages of their own in the site."""

import re

from sphinx.application import Sphinx

PAGES = (
    (re.compile(r"\]\(\.\./benchmarks/results\.md"), "](benchmarks.md"),
    (re.compile(r"\]\(\.\./examples/GALLERY_HEADER\.rst"), "](generated/gallery/index.rst"),
    (re.compile(r"\]\(\.\./examples/(plot_\w+)\.py"), r"](generated/gallery/\1.rst"),
)
EXAMPLE = re.compile(r"\[([^]]+)\]\(\.\./examples/(plot_\w+)\.py\)")


def to_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the links of a page before it is parsed; one to an absent example becomes text."""
    absent = re.compile(app.config.sphinx_gallery_conf["ignore_pattern"])
    text = EXAMPLE.sub(
        lambda link: link[1] if absent.search(f"{link[2]}.py") else link[0], source[0]
    )
    for pattern, page in PAGES:
        text = pattern.sub(page, text)
    source[0] = text


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace links as pages are read."""
    app.connect("source-read", to_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
