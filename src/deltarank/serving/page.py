"""The page at ``/``: one HTML text with the model's description in it."""

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any


def to_page(
    about: dict[str, Any], examples: Sequence[Any], truths: Sequence[Sequence[str]] | None = None
) -> str:
    """Return the page for a model, self-contained; `truths` are the labels of the examples.

    Examples
    --------
    >>> about = {"ranker": "LogisticRanker", "labels": ["</script>"], "columns": None}
    >>> page = to_page(about, [])
    >>> page.count("</script>"), "http" in page
    (2, False)
    """
    known = {"examples": list(examples), "truths": None if truths is None else list(truths)}
    state = json.dumps({**about, **known}, ensure_ascii=True)
    template = files("deltarank.serving").joinpath("page.html").read_text(encoding="utf-8")
    title = f"{escape(about['ranker'])}, {len(about['labels'])} labels"
    # No text of the model may end the element it stands in.
    return template.replace("{{title}}", title).replace("{{state}}", state.replace("<", "\\u003c"))
