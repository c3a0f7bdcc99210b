"""Rankers that are all numbers, taken apart by the table of what each consists of."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.core.arrays import Arrays, join_sparse
from deltarank.core.gaps import join_gaps, split_gaps
from deltarank.storage.checks import check_arrays, check_common, check_numbers
from deltarank.storage.names import names_from_plain, names_to_plain
from deltarank.storage.plain import from_plain, to_plain
from deltarank.storage.registry import STORED, Stored

_COMMON = ("n_features_in_", "_form")
_GAPS_PARTS = ("data", "indptr", "gaps")


def pack_ranker(ranker: Any, arrays: Arrays) -> dict[str, Any]:
    """Return a fitted ranker in terms of JSON; its arrays go into `arrays` by their names."""
    name = type(ranker).__name__
    stored = STORED[name]
    if type(ranker) is not getattr(import_module(stored.home), name):
        raise ValueError(f"{name} cannot be saved: it is another class than {stored.home}.{name}")
    for key in _present(ranker, stored.arrays, stored):
        if stored.maybe_sparse.get(key) == "gaps":
            parts = zip(_GAPS_PARTS, split_gaps(getattr(ranker, key)), strict=True)
            arrays.update({f"{key}.{part}": array for part, array in parts})
        else:
            arrays[key] = getattr(ranker, key)
    kept = (*_present(ranker, stored.values, stored), *_COMMON)
    values = {key: to_plain(getattr(ranker, key), key) for key in kept}
    names = getattr(ranker, "feature_names_in_", None)
    values["feature_names_in_"] = None if names is None else [str(name) for name in names]
    values["classes_"] = names_to_plain(ranker.classes_)
    parameters = ranker.get_params(deep=False)
    return {
        "ranker": name,
        "parameters": {key: to_plain(value, key) for key, value in parameters.items()},
        "values": values,
    }


def unpack_ranker(state: dict[str, Any], arrays: Arrays) -> Any:
    """Return the ranker, once its parts are known to fit each other."""
    name = state["ranker"]
    if name not in STORED:
        raise ValueError(f"unknown ranker {name!r}; known are {', '.join(STORED)}")
    entry = STORED[name]
    values = {key: from_plain(value) for key, value in state["values"].items()}
    classes = names_from_plain(values.pop("classes_"))
    names = values.pop("feature_names_in_")
    for key, form in entry.maybe_sparse.items():
        if key not in arrays:
            arrays[key] = _to_sparse(key, form, arrays, values["n_features_in_"])
    lacking = ({*entry.values, *_COMMON} ^ set(values)) | (set(entry.arrays) ^ set(arrays))
    if not lacking <= set(entry.optional):
        raise ValueError(f"it does not hold what a {name} consists of")
    check_common(values, classes, names)
    check_arrays(entry, arrays, values, len(classes))
    parameters = {key: from_plain(value) for key, value in state["parameters"].items()}
    ranker = getattr(import_module(entry.home), name)(**parameters)
    check_numbers(ranker, parameters, values)
    for key, value in {**arrays, **values, "classes_": classes}.items():
        setattr(ranker, key, value)
    if names is not None:
        ranker.feature_names_in_ = np.array(names, dtype=object)
    if hasattr(ranker, "_restored"):
        ranker._restored()
    return ranker


def _present(ranker: Any, names: Iterable[str], stored: Stored) -> list[str]:
    """Return the names that this fit has: all but the optional ones it lacks."""
    return [name for name in names if name not in stored.optional or hasattr(ranker, name)]


def _to_sparse(name: str, form: str, arrays: Arrays, n_columns: int) -> Any:
    """Put the three parts of a sparse array together, and see that they fit."""
    # For columns the file holds no number of rows; the later check of shapes finds a wrong one.
    n_rows = int(arrays["intercept_"].shape[0])
    try:
        if form == "gaps" and f"{name}.gaps" in arrays:
            values, starts, gaps = (arrays.pop(f"{name}.{part}") for part in _GAPS_PARTS)
            return join_gaps(values, starts, gaps, n_rows)
        if form == "csc":
            return join_sparse(arrays, name, sparse.csc_array, (n_rows, n_columns))
        n_rows = len(arrays[f"{name}.indptr"]) - 1
        return join_sparse(arrays, name, sparse.csr_array, (n_rows, n_columns))
    except ValueError as error:
        raise ValueError(f"{name} is no sparse matrix: {error}") from None
