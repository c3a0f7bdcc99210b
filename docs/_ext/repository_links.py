"""Links of the pages to files beside docs/, which have pages of their own in the site."""

import re

from sphinx.application import Sphinx

PAGES = (
    (re.compile(r"\]\(\.\./benchmarks/results\.md"), "](benchmarks.md"),
    (re.compile(r"\]\(\.\./examples/(plot_\w+)\.py"), r"](generated/gallery/\1.rst"),
    (re.compile(r"\]\(examples/(plot_\w+)\.py"), r"](docs/generated/gallery/\1.rst"),
)


def to_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the links of a page before it is parsed."""
    for pattern, page in PAGES:
        source[0] = pattern.sub(page, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace links as pages are read, and as parts of other files are included."""
    app.connect("source-read", to_pages)
    app.connect("include-read", lambda app, path, parent, source: to_pages(app, parent, source))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
