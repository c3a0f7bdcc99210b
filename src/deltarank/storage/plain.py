"""Numbers, strings, lists and dicts as JSON; tuples and arrays among them come back as such."""

import json
from collections import UserList
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_SCALARS = (str, bool, int, float, type(None))


Arrays = dict[str, Any]
# What else may go into a file, in terms of what always may: None where this cannot either.
Pack = Callable[[Any, str], Any]
Unpack = Mapping[str, Callable[[Any], Any]]
TAGS = ("tuple", "array", "stored")


def to_plain(value: Any, what: str, arrays: Arrays | None = None, pack: Pack | None = None) -> Any:
    """Return a value in terms of JSON, or refuse it.

    Where `arrays` is given, arrays of numbers go there, and a name stands in for each of them.
    Where `pack` is given, it is asked first about anything but numbers, strings, lists and tuples.

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
    if isinstance(
        value, UserList
    ):  # of remaining columns in scikit-learn 1.6, warns when looked at
        value = value.data
    if type(value) in _SCALARS:
        return value
    if type(value) is list:
        return [to_plain(item, what, arrays, pack) for item in value]
    if type(value) is tuple:
        return {"tuple": [to_plain(item, what, arrays, pack) for item in value]}
    if pack is not None and (packed := pack(value, what)) is not None:
        return packed
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and arrays is not None:
        name = f"{what}.{len(arrays)}"
        arrays[name] = value
        return {"stored": name}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return {"array": value.tolist()}
    if type(value) is dict and all(type(key) is str for key in value):
        if value.keys() & set(TAGS):
            raise ValueError(f"{what} has a key that a model file keeps for itself")
        return {key: to_plain(item, what, arrays, pack) for key, item in value.items()}
    raise ValueError(
        f"{what} cannot go into a model file, which holds numbers, strings and lists, no code; "
        f"got {value!r:.80}"
    )


def from_plain(value: Any, arrays: Arrays | None = None, unpack: Unpack | None = None) -> Any:
    """Return what `to_plain` was given; arrays that went elsewhere are taken from there.

    A dict whose only key is one of `unpack` is what `pack` made of something.

    Examples
    --------
    >>> from_plain({"k": {"tuple": [1, 2]}})
    {'k': (1, 2)}
    """
    if isinstance(value, list):
        return [from_plain(item, arrays, unpack) for item in value]
    if isinstance(value, dict):
        if unpack is not None and len(value) == 1 and (tag := next(iter(value))) in unpack:
            return unpack[tag](value[tag])
        if set(value) == {"tuple"}:
            return tuple(from_plain(item, arrays, unpack) for item in value["tuple"])
        if set(value) == {"array"}:
            return np.array(value["array"])
        if set(value) == {"stored"} and arrays is not None:
            return arrays.pop(value["stored"])
        return {key: from_plain(item, arrays, unpack) for key, item in value.items()}
    return value


def dumps(value: Any) -> str:
    """Write JSON, with numbers in the digits that tell them apart."""
    return json.dumps(value, sort_keys=True)
