"""A choice by name: one table, one look-up, one wording of the refusal."""

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def choose(table: Mapping[str, T], name: object, argument: str) -> T:
    """Return ``table[name]``, or refuse with the names there are.

    Examples
    --------
    >>> choose({"half": 0.5, "full": 1.0}, "half", "ties")
    0.5
    >>> choose({"half": 0.5, "full": 1.0}, "none", "ties")
    Traceback (most recent call last):
    ValueError: unknown ties 'none'; choose one of full, half
    """
    if isinstance(name, str) and name in table:
        return table[name]
    raise ValueError(f"unknown {argument} {name!r}; choose one of {', '.join(sorted(table))}")
