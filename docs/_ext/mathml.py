"""Equations as MathML, which browsers draw themselves: no script, no font, no network.

Browsers do not break MathML into lines. A long equation is written as several that follow each
other, so that it wraps before a relation, a plus or a minus, as a person would break it.
"""

from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
RELATIONS, SIGNS = "=≤≥<>≈≠∈←→", "+−"
OPENING, CLOSING, BARS = "([{⟨⌊⌈", ")]}⟩⌋⌉", "|‖"
# Shorter equations stay whole, with so many letters and signs.
LONG = 16
# The height of brackets that LaTeX would stretch, if they may end up in different lines.
TALL = {"stretchy": "true", "minsize": "1.3em", "maxsize": "1.3em"}

ElementTree.register_namespace("", NAMESPACE)
Element = ElementTree.Element


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write an equation within a line."""
    translator.body.append(in_pieces(node.astext(), is_display=False))
    raise nodes.SkipNode


def display(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write an equation that stands alone."""
    translator.body.append(f'<div class="math">{in_pieces(node.astext(), is_display=True)}</div>')
    raise nodes.SkipNode


def in_pieces(latex: str, *, is_display: bool) -> str:
    """Return an equation as MathML elements between which a line may end."""
    whole = ElementTree.fromstring(convert(latex, display="block" if is_display else "inline"))
    bars = [operator for operator in whole.iter(_tag("mo")) if operator.text in tuple(BARS)]
    for place, bar in enumerate(bars):
        if "fence" not in bar.attrib:  # else a bar with an index is lower than its twin
            bar.attrib |= {"stretchy": "false", "form": ("prefix", "postfix")[place % 2]}
    row = whole.find(_tag("mrow"))
    children = [] if row is None else _flat(row)
    pieces = _cut(children) if sum(map(_length, children)) > LONG else []
    if len(pieces) < 2:
        return _text(whole)
    return "<wbr>".join(_as_math(piece, is_display) for piece in pieces)


def _cut(children: list[Element]) -> list[list[Element]]:
    pieces: list[list[Element]] = [[]]
    depth, before = 0, ""
    for child in children:
        sign = (child.text or "") if child.tag == _tag("mo") else ""
        is_relation = sign and sign in RELATIONS and depth == 0
        is_sum = sign and sign in SIGNS and depth <= 1 and before not in (*OPENING, ",", *RELATIONS)
        if pieces[-1] and (is_relation or is_sum):
            child.set("form", "infix")  # it has the space of one, though it stands first
            pieces.append([])
        pieces[-1].append(child)
        depth += (sign != "" and sign in OPENING) - (sign != "" and sign in CLOSING)
        before = sign or "something"
    return pieces


def _flat(row: Element) -> list[Element]:
    """Return the parts of a row; brackets that hold much are taken apart, at a fixed height."""
    parts: list[Element] = []
    for child in row:
        if child.tag == _tag("mrow") and _length(child) > LONG and _is_fenced(child):
            for end in (child[0], child[-1]):
                end.attrib.update(TALL)
            parts += _flat(child)
        else:
            parts.append(child)
    return parts


def _is_fenced(row: Element) -> bool:
    return len(row) > 2 and row[0].get("fence") == row[-1].get("fence") == "true"


def _length(element: Element) -> int:
    return len("".join(element.itertext()).replace(" ", ""))


def _as_math(piece: list[Element], is_display: bool) -> str:
    math = Element(_tag("math"), {"displaystyle": "true"} if is_display else {})
    row = ElementTree.SubElement(math, _tag("mrow"))
    row.extend(piece)
    return _text(math)


def _text(math: Element) -> str:
    return ElementTree.tostring(math, encoding="unicode")


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer to Sphinx under the name mathml."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
