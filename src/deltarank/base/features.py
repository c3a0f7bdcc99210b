"""Features on their way to a fit or to scores: in order, and not too large for arithmetic."""

from typing import Any

import numpy as np
from scipy import sparse


def canonical(X: Any) -> Any:
    """Return X with columns of a CSR row in order and once each: passes and kernels rely on it."""
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_size(X: Any, largest: float, who: str) -> None:
    """Refuse features whose squares would overflow, after which nothing is learned from them."""
    values = X.data if sparse.issparse(X) else X
    if np.isinf(largest) or not values.size:
        return
    if max(float(values.max()), -float(values.min())) <= largest:
        return
    place = np.argwhere(np.abs(values) > largest)[0]
    if sparse.issparse(X):
        row, column = np.searchsorted(X.indptr, place[0], side="right") - 1, X.indices[place[0]]
    else:
        row, column = place
    raise ValueError(
        f"X must hold features of at most {largest:.0e} in size, as {who} squares them; got "
        f"{values[tuple(place)]:.3g} in row {row}, column {column}: scale the features"
    )
