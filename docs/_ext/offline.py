"""A warning for each page that would load something from elsewhere: the site works offline."""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

LOADS = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"((?:https?:)?//[^\"]+)"
    r"|<link\b(?=[^>]*\brel=\"(?:stylesheet|preload|icon|shortcut icon)\")"
    r"[^>]*\bhref=\"((?:https?:)?//[^\"]+)"
)


def warn_of_loads(app: Sphinx, error: Exception | None) -> None:
    """Look through all pages that were built."""
    if error is not None or app.builder.format != "html":
        return
    for page in sorted(Path(app.outdir).rglob("*.html")):
        for source, link in LOADS.findall(page.read_text()):
            name = page.relative_to(app.outdir)
            logging.getLogger(__name__).warning("%s loads %s", name, source or link)


def setup(app: Sphinx) -> dict[str, bool]:
    """Look when everything is written."""
    app.connect("build-finished", warn_of_loads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
