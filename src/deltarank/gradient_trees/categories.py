"""Which features are categories, and whether their values are numbers of categories."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.gradient_trees.kernels.routes import MOST_CATEGORIES

WAY_OUT = (
    "scikit-learn's OrdinalEncoder(max_categories=..., encoded_missing_value=np.nan) numbers them"
)


def categorical_mask(
    wanted: Any, n_features: int, names: Sequence[Any] | None
) -> NDArray[np.bool_]:
    """Return which features `wanted`, indices, a mask or names, says are categories."""
    is_categorical = np.zeros(n_features, bool)
    if wanted is None:
        return is_categorical
    given = np.asarray(wanted)
    if given.ndim != 1 or isinstance(wanted, str):
        raise ValueError(
            "categorical_features must be a list of columns, or a mask with an entry for each; "
            f"got {wanted!r:.80}"
        )
    if given.dtype.kind == "b":
        if len(given) != n_features:
            raise ValueError(
                f"a mask categorical_features must have an entry for each of {n_features} "
                f"features; got {len(given)}"
            )
        return given.copy()
    columns = [_column(each, n_features, names) for each in given.tolist()]
    is_categorical[columns] = True
    return is_categorical


def _column(wanted: Any, n_features: int, names: Sequence[Any] | None) -> int:
    if isinstance(wanted, str):
        if names is None:
            raise ValueError(
                f"categorical_features names {wanted!r}, but X has no names: fit on a data frame, "
                "or give indices"
            )
        if wanted not in names:
            raise ValueError(f"categorical_features names {wanted!r}, which is no column of X")
        return list(names).index(wanted)
    if type(wanted) is not int or not -n_features <= wanted < n_features:
        raise ValueError(
            f"categorical_features must be numbers of features, below {n_features}, or their "
            f"names; got {wanted!r}"
        )
    return wanted


def code_thresholds(X: Any, feature: int) -> NDArray[np.float64]:
    """Return thresholds that give each number of a category a bin of its own, or refuse X.

    `X` is as `by_columns` gives it.
    """
    if sparse.issparse(X):
        values = X.data[X.indptr[feature] : X.indptr[feature + 1]]
    else:
        values = X[:, feature]
    present = values[~np.isnan(values)]
    wrong = (present < 0) | (present >= MOST_CATEGORIES) | (present != np.floor(present))
    if wrong.any():
        raise ValueError(
            f"X must hold categories as numbers 0, 1, ..., {MOST_CATEGORIES - 1} in column "
            f"{feature}, of categorical_features, or NaN where they are missing; got "
            f"{present[wrong][0]:g}: {WAY_OUT}"
        )
    return np.arange(present.max(initial=0)) + 0.5
