"""Whether the parts of a model file fit each other: a right checksum proves nothing about that."""

from typing import Any

import numpy as np
from scipy import sparse

from deltarank.base.parameters import positive_number, unit_number
from deltarank.base.targets import PREDICTIONS
from deltarank.core.arrays import Arrays
from deltarank.storage.known import Known
from deltarank.storage.registry import Stored

_KINDS = {"f": "floats", "i": "integers", "b": "true or false"}
# Kernels count features in 32 bits.
_MOST_FEATURES = 2**31
# Parameters that may be numbers other than positive ones.
_ANY_NUMBER = ("n_jobs", "random_state", "categorical_features")
# Parameters from 0 to 1.
_UNIT_NUMBERS = ("balance", "balances")
_POSITIVE_VALUES = ("C_", "gamma_", "n_landmarks_", "rho_")


def check_common(values: dict[str, Any], classes: Any, names: Any) -> None:
    """Check the values that every ranker has."""
    n_features = values["n_features_in_"]
    if type(n_features) is not int or not 1 <= n_features < _MOST_FEATURES:
        raise ValueError(f"n_features_in_ must be a positive integer; got {n_features!r}")
    if values["_form"] not in PREDICTIONS:
        raise ValueError(f"the form of labels is unknown: {values['_form']!r}")
    if names is not None and (len(names) != n_features or not all(type(n) is str for n in names)):
        raise ValueError(f"feature_names_in_ must be {n_features} strings")
    if classes.ndim != 1 or len(classes) == 0:
        raise ValueError("classes_ must be the names of the labels")
    if len(set(classes.tolist())) < len(classes):
        raise ValueError("classes_ must be different names")
    if values["_form"] == "binary" and len(classes) > 2:
        raise ValueError(f"a vector of two classes has no {len(classes)} of them")


def check_arrays(
    entry: Stored | Known, arrays: Arrays, values: dict[str, Any], n_classes: int
) -> None:
    """Check that arrays have the kinds and dimensions of the entry, and finite numbers."""
    n_labels = 1 if values["_form"] == "binary" else n_classes
    sizes = {"m": n_labels, "b": 3}
    if values["n_features_in_"] is not None:
        sizes["d"] = values["n_features_in_"]
    if values["_form"] != "binary":
        sizes["l"] = n_labels
    for name, array in arrays.items():
        kind, dimensions = entry.arrays[name].split()
        if array.dtype.kind != kind:
            raise ValueError(f"{name} must be {_KINDS[kind]}; got {array.dtype}")
        wanted = tuple(
            sizes.setdefault(letter, n) for letter, n in zip(dimensions, array.shape, strict=False)
        )
        if len(array.shape) != len(dimensions) or array.shape != wanted:
            raise ValueError(
                f"{name} must have shape {_named_shape(dimensions, sizes)}; got {array.shape}"
            )
        numbers = array.data if sparse.issparse(array) else array
        if name not in entry.not_finite and not np.isfinite(numbers).all():
            raise ValueError(f"{name} must be finite; got NaN or infinity")
        if name in entry.feature_numbers and not ((array >= 0) & (array < sizes["d"])).all():
            raise ValueError(f"{name} must be numbers of features, below {sizes['d']}")


def _named_shape(dimensions: str, sizes: dict[str, int]) -> str:
    return "(" + ", ".join(str(sizes.get(letter, letter)) for letter in dimensions) + ")"


def check_numbers(ranker: Any, parameters: dict[str, Any], values: dict[str, Any]) -> None:
    """Check that parameters, and what was chosen for them, are such as a fit would take."""
    for name, value in parameters.items():
        numbers = value if isinstance(value, list | tuple) else [value]
        for number in numbers:
            if type(number) in (int, float) and name not in _ANY_NUMBER:
                check = unit_number if name in _UNIT_NUMBERS else positive_number
                check(number, name)
    for name in _POSITIVE_VALUES:
        if name in values:
            positive_number(values[name], name)
    if "balance_" in values:
        unit_number(values["balance_"], "balance_")
    for method in ("_options", "_check_numbers"):
        getattr(ranker, method, lambda: None)()
