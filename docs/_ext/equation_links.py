"""Numbers of equations as links: ``Eq. (12)`` anywhere, ``(12)`` on the pages of the theory."""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx

HOME = "equations"
# Pages on which a number in brackets alone is that of an equation.
THEORY = (HOME, "theory")
_NUMBER = r"\((\d{1,2})\)"
_NAMED = re.compile(rf"Eq\.\s{_NUMBER}(?:(?:,| and| or| to)\s{_NUMBER})*")
_APART = (nodes.reference, nodes.literal, nodes.literal_block, nodes.math, nodes.title)


def mark(app: Sphinx, tree: nodes.document) -> None:
    """Give each row of the tables of equations an address."""
    if app.env.docname != HOME:
        return
    for row in tree.findall(nodes.row):
        found = re.fullmatch(_NUMBER, row[0].astext().strip())
        if found:
            row[0]["ids"].append(f"eq-{found[1]}")
            numbers = app.env.__dict__.setdefault("equation_numbers", set())
            numbers.add(found[1])


def link(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Turn numbers into links, but for those that stand at their equation."""
    known = getattr(app.env, "equation_numbers", set())
    target = app.builder.get_relative_uri(page, HOME)
    for text in list(tree.findall(nodes.Text)):
        if any(isinstance(above, _APART) for above in _above(text)) or _is_home(text):
            continue
        pieces = list(_pieces(text.astext(), page, known, target))
        if len(pieces) > 1:
            text.parent.replace(text, pieces)


def _pieces(text: str, page: str, known: set[str], target: str) -> Iterator[nodes.Node]:
    spans = [(0, len(text))] if page in THEORY else [m.span() for m in _NAMED.finditer(text)]
    at = 0
    for begin, end in spans:
        for found in re.finditer(_NUMBER, text[begin:end]):
            if found[1] not in known:
                continue
            first = begin + found.start()
            yield nodes.Text(text[at:first])
            yield nodes.reference("", found[0], refuri=f"{target}#eq-{found[1]}", internal=True)
            at = begin + found.end()
    yield nodes.Text(text[at:])


def _above(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def _is_home(text: nodes.Text) -> bool:
    """Tell whether a number stands before its equation, ours or the paper's."""
    for above in _above(text):
        if isinstance(above, nodes.entry):
            is_marked = any(name.startswith("eq-") for name in above.parent[0]["ids"])
            return is_marked and above is not above.parent[-1]
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    """Mark equations when they are read, link numbers when pages are written."""
    app.connect("doctree-read", mark)
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
