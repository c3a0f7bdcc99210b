"""What docs/_ext makes of equations: nothing lost, in order; each number is at one place."""

import re
import sys
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).parents[1] / "docs"
EQUATIONS = [
    (page, latex)
    for page in ("equations.md", "theory.md")
    for latex in re.findall(r"(?<![\\$`])\$([^$`\n]+)\$(?!\$)", (DOCS / page).read_text())
]


@pytest.fixture(scope="module")
def mathml():
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed")
    pytest.importorskip("sphinx", reason="Sphinx is not installed")
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        yield import_module("mathml")
    finally:
        sys.path.pop(0)


def maths(mathml, latex, **options):
    return [
        ElementTree.fromstring(part) for part in mathml.in_pieces(latex, **options).split("<wbr>")
    ]


@pytest.mark.parametrize("is_display", [False, True])
def test_the_pieces_of_an_equation_are_the_whole(mathml, is_display):
    assert len(EQUATIONS) > 200
    n_cut = 0
    for page, latex in EQUATIONS:
        pieces = maths(mathml, latex, is_display=is_display)
        whole = ElementTree.fromstring(mathml.convert(latex))
        letters = [text for piece in pieces for text in piece.itertext()]
        assert letters == list(whole.itertext()), (page, latex)
        n_cut += len(pieces) > 1
    assert n_cut > 50


def test_a_long_equation_ends_lines_before_relations_and_signs(mathml):
    latex = r"f(x) = \left(a - b + \min_{i<j} c(-d) + \alpha\right) - [e < g]"
    pieces = maths(mathml, latex, is_display=False)
    starts = [next(iter(piece.itertext())) for piece in pieces]
    assert starts == ["f", "=", "−", "+", "+", "−"]
    assert all(piece[0][0].get("form") == "infix" for piece in pieces[1:])


def test_bars_that_belong_together_look_alike(mathml):
    (norm,) = maths(mathml, r"\lVert r \rVert_2^2", is_display=False)
    bars = [mo for mo in norm.iter() if mo.text == "‖"]
    assert [bar.get("form") for bar in bars] == ["prefix", "postfix"]
    assert {bar.get("stretchy") for bar in bars} == {"false"}


def test_numbers_of_equations_stand_once():
    numbers = re.findall(r"^\| \((\d+)\) \|", (DOCS / "equations.md").read_text(), re.M)
    assert len(numbers) > 50
    assert len(numbers) == len(set(numbers))
