"""Optional libraries stay optional: nothing that a bare install offers imports one when loaded."""

import doctest
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from imports import SOURCES, libraries_of_examples, libraries_of_module

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Triton comes with PyTorch, pandas with Dask's data frames, mlflow with mlflow-skinny.
COMPANIONS = {"triton", "pandas", "mlflow"}
MODULES = {
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCES.rglob("*.py"))
    if path.name != "__main__.py"
}
TRY_IMPORTS = """
import importlib, json, sys
modules, optional = json.loads(sys.stdin.read())

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in optional:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
failed = []
for module in modules:
    try:
        importlib.import_module(module)
    except ImportError:
        failed.append(module)
import deltarank
for name in deltarank.__all__:
    assert getattr(deltarank, name) is not None
print(json.dumps(failed))
"""


def extras():
    """Return the libraries that a user's extras bring, by the name of their import."""
    groups = PROJECT["optional-dependencies"]
    names = re.search(r"\[(.+)\]", groups["all"][0]).group(1).split(",")
    requirements = [requirement for name in names for requirement in groups[name]]
    return {re.match(r"[\w-]+", r).group().replace("-", "_") for r in requirements} | COMPANIONS


def test_modules_need_the_libraries_that_they_are_read_to_need():
    optional = extras()
    result = subprocess.run(
        [sys.executable, "-c", TRY_IMPORTS],
        input=json.dumps([list(MODULES), sorted(optional)]),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    read = {name for name, path in MODULES.items() if libraries_of_module(path) & optional}
    assert set(json.loads(result.stdout.splitlines()[-1])) == read


def test_the_only_other_libraries_are_those_that_every_install_has():
    required = {re.match(r"[\w-]+", r).group() for r in PROJECT["dependencies"]}
    required = {name.replace("-", "_") for name in required} - {"scikit_learn"} | {"sklearn"}
    for name, path in MODULES.items():
        others = libraries_of_module(path) - extras() - required - sys.stdlib_module_names
        assert not others, f"{name} imports {others}"


@pytest.mark.parametrize(
    ("text", "libraries"),
    [
        (">>> import json, onnxruntime", {"json", "onnxruntime"}),
        (">>> from deltarank.torch import UnivariateRankingLoss", {"torch"}),
        (">>> if True:\n...     import dask.array as da", {"dask"}),
        (">>> def late():\n...     import triton", set()),
    ],
)
def test_examples_need_what_they_import(text, libraries):
    found = libraries_of_examples(doctest.DocTestParser().get_examples(text))
    assert libraries <= found
    assert "triton" not in found
