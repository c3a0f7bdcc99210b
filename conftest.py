"""Leave doctests out where a library that they import is not installed, and what Sphinx runs."""

from pathlib import Path

import pytest

from imports import SOURCES, absent, libraries_of_examples, libraries_of_module

_SITE = ["docs/conf.py", "docs/_ext", "docs/_build", "docs/generated"]
# Two modules of one name cannot be searched for doctests; there are none in them.
_SETTINGS = ["tests/conftest.py", "tests/abuse/conftest.py"]
collect_ignore = [*_SITE, *_SETTINGS]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Pass over modules of ours that cannot be imported here."""
    ours = collection_path.suffix == ".py" and collection_path.is_relative_to(SOURCES)
    return True if ours and absent(libraries_of_module(collection_path)) else None


def pytest_report_header() -> str:
    """Say what `pytest_ignore_collect` passes over."""
    modules = {path: absent(libraries_of_module(path)) for path in SOURCES.rglob("*.py")}
    without = sorted({name for names in modules.values() for name in names})
    n_modules = sum(bool(names) for names in modules.values())
    return f"doctests of {n_modules} modules left out for want of: {', '.join(without) or 'none'}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip examples, in docstrings and pages, that import what is not there."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            without = absent(libraries_of_examples(item.dtest.examples))
            if without:
                item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(without)}"))
