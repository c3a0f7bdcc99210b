"""Numbers, strings, lists and dicts as JSON; tuples and arrays among them come back as such."""

import json
from typing import Any

import numpy as np

_SCALARS = (str, bool, int, float, type(None))


def to_plain(value: Any, what: str) -> Any:
    """Return a value in terms of JSON, or refuse it.

    Examples
    --------
    >>> to_plain({"k": (1, 2)}, "weight")
    {'k': {'tuple': [1, 2]}}
    >>> to_plain(len, "weight")
    Traceback (most recent call last):
    ValueError: weight cannot go into a model file, which holds numbers, strings and lists, no code; got <built-in function len>
    """  # noqa: E501
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in _SCALARS:
        return value
    if type(value) is list:
        return [to_plain(item, what) for item in value]
    if type(value) is tuple:
        return {"tuple": [to_plain(item, what) for item in value]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return {"array": value.tolist()}
    if type(value) is dict and all(type(key) is str for key in value):
        if value.keys() & {"tuple", "array"}:
            raise ValueError(f"{what} has a key that a model file keeps for itself")
        return {key: to_plain(item, what) for key, item in value.items()}
    raise ValueError(
        f"{what} cannot go into a model file, which holds numbers, strings and lists, no code; "
        f"got {value!r:.80}"
    )


def from_plain(value: Any) -> Any:
    """Return what `to_plain` was given.

    Examples
    --------
    >>> from_plain({"k": {"tuple": [1, 2]}})
    {'k': (1, 2)}
    """
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {"tuple"}:
            return tuple(from_plain(item) for item in value["tuple"])
        if set(value) == {"array"}:
            return np.array(value["array"])
        return {key: from_plain(item) for key, item in value.items()}
    return value


def dumps(value: Any) -> str:
    """Write JSON, with numbers in the digits that tell them apart."""
    return json.dumps(value, sort_keys=True)
