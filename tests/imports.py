"""What a module or a page of the documents imports, read from its text without running it."""

import ast
import doctest
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src"


def imported_on_load(tree: ast.AST) -> Iterator[str]:
    """Yield the names of modules that importing a module imports; what functions import waits."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_from(node)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from imported_on_load(node)


def _imported_from(node: ast.ImportFrom) -> Iterator[str]:
    assert node.module is not None, "imports are absolute"
    yield node.module
    for alias in node.names:
        if _file_of(f"{node.module}.{alias.name}"):
            yield f"{node.module}.{alias.name}"


def _file_of(module: str) -> Path | None:
    """Return the file of one of our own modules; None for others."""
    place = SOURCES.joinpath(*module.split("."))
    files = (place / "__init__.py", place.with_suffix(".py"))
    return next((file for file in files if file.exists()), None)


@cache
def libraries_of_module(path: Path) -> frozenset[str]:
    """Return the libraries that importing a module of ours needs, its own imports' too."""
    return _libraries(imported_on_load(ast.parse(path.read_text())), seen={path})


def _libraries(names: Iterator[str], seen: set[Path]) -> frozenset[str]:
    """Return the libraries behind modules; files seen before add nothing new."""
    needed: set[str] = set()
    for name in names:
        parts = name.split(".")
        files = [_file_of(".".join(parts[: end + 1])) for end in range(len(parts))]
        if files[0] is None:
            needed.add(parts[0])
        for file in files:
            if file is not None and file not in seen:
                seen.add(file)
                needed |= _libraries(imported_on_load(ast.parse(file.read_text())), seen)
    return frozenset(needed)


def libraries_of_examples(examples: list[doctest.Example]) -> frozenset[str]:
    """Return the libraries that the examples of a docstring or a page import."""
    names = (name for example in examples for name in imported_on_load(ast.parse(example.source)))
    return _libraries(names, seen=set())


def absent(libraries: frozenset[str]) -> list[str]:
    """Return those libraries that are not installed."""
    return sorted(name for name in libraries if find_spec(name) is None)
