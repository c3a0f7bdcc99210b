"""The site: every public name has an example and a place, every example of the gallery an order."""

import ast
import inspect
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType

import pytest

from deltarank import CalibratedRanker

ROOT = Path(__file__).parents[1]
REFERENCE = "".join((ROOT / "docs" / page).read_text() for page in ("reference.rst", "torch.rst"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LIBRARIES = {
    "deltarank.torch": "torch",
    "deltarank.serving.access": "fastapi",
    "deltarank.serving.app": "fastapi",
}
AVAILABLE_IF = type(vars(CalibratedRanker)["predict_proba"])
# What is public beside the names in __all__.
FURTHER = {
    "deltarank.explanations": ["Explanation"],
    "deltarank.base.ranker": ["Ranker"],
    "deltarank.serving.access": ["Access"],
    "deltarank.serving.app": ["create_app"],
    "deltarank.serving.request_log": ["RequestLog"],
    "deltarank.serving.service": ["Limits", "Service"],
    "deltarank.torch": ["PairwiseRankingLoss", "PropensityLoss", "UnivariateRankingLoss"],
}
MODULES = [
    "deltarank", "deltarank.datasets", "deltarank.metrics", "deltarank.rankers",
    "deltarank.storage", "deltarank.theory", *FURTHER,
]  # fmt: skip


def public_names(module):
    return FURTHER.get(module) or import_module(module).__all__


def homes(owner):
    return [home for home in inspect.getmro(owner) if home.__module__.startswith("deltarank")]


def methods(owner):
    """Return the public methods and properties of a class that the library defines."""
    kinds = (property, classmethod, staticmethod, FunctionType, AVAILABLE_IF)
    return sorted(
        {
            name
            for home in homes(owner)
            for name, member in vars(home).items()
            if not name.startswith("_") and isinstance(member, kinds)
        }
    )


def has_example(owner, name):
    """Tell whether a method's docstring has an example, or that of its class uses it."""
    for home in homes(owner):
        member = vars(home).get(name)
        member = getattr(member, "fget", None) or getattr(member, "fn", None) or member
        if ">>> " in (getattr(member, "__doc__", None) or ""):
            return True
        shown = re.findall(r"(?:>>>|\.\.\.) (.*)", home.__doc__ or "")
        if any(re.search(rf"\.{name}\b", line) for line in shown):
            return True
    return False


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_example_and_a_place_in_the_reference(module):
    if not find_spec(LIBRARIES.get(module, "deltarank")):
        pytest.skip(f"needs {LIBRARIES[module]}")
    for name in public_names(module):
        thing = getattr(import_module(module), name)
        if inspect.ismodule(thing):
            continue
        assert re.search(rf"^   {name}$|``(?:[\w.]+\.)?{name}``", REFERENCE, re.M), name
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert ">>> " in (thing.__doc__ or ""), f"{module}.{name} has no example"
        if inspect.isclass(thing):
            lacking = [method for method in methods(thing) if not has_example(thing, method)]
            assert not lacking, f"{module}.{name} has no examples of {lacking}"


def test_every_name_of_the_reference_is_public():
    place = None
    for line in REFERENCE.splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            place = found[1]
        elif re.fullmatch(r"   [A-Za-z]\w*", line) and line.strip() != "torch":
            assert line.strip() in public_names(place), f"{place} has no public {line.strip()}"


def test_the_gallery_has_an_order_for_every_example():
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    try:
        order = import_module("gallery").ORDER
    finally:
        sys.path.pop(0)
    assert sorted(order) == [path.stem for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_draws_a_figure_and_says_what_one_sees(path):
    text = path.read_text()
    title, underline, *_ = ast.get_docstring(ast.parse(text)).splitlines()
    assert len(title) == len(underline)
    assert set(underline) == {"="}
    assert "plt.show()" in text
    assert re.match(r"\n# [A-Z]", text.split("# %%")[-1])


def test_continuous_integration_builds_the_site_by_the_documented_command():
    command = "sphinx-build -W --keep-going -b html docs docs/_build/html"
    for place in ("CONTRIBUTING.md", "noxfile.py", "docs/conf.py", "README.md"):
        assert command in (ROOT / place).read_text(), place
