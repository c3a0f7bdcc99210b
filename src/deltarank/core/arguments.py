"""Arguments that NumPy and SciPy let pass with parts of them ignored or out of range."""

from typing import Any

import numpy as np
from scipy import sparse


def refuse_hidden(values: Any, argument: str) -> None:
    """Refuse a masked array with a mask set, which would be ignored, and a broken sparse matrix.

    Examples
    --------
    >>> refuse_hidden(np.ma.masked_array([1, 2], [False, True]), "X")
    Traceback (most recent call last):
    ValueError: X must have no masked cells, as masks are ignored; got 1 of 2: fill them, for \
missing values by X.filled(np.nan), or leave their rows out
    """
    if sparse.issparse(values):
        _check_indices(values, argument)
    elif isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        n_masked = int(np.ma.count_masked(values))
        raise ValueError(
            f"{argument} must have no masked cells, as masks are ignored; got {n_masked} of "
            f"{values.size}: fill them, for missing values by {argument}.filled(np.nan), or leave "
            "their rows out"
        )


def _check_indices(matrix: Any, argument: str) -> None:
    """Refuse a matrix that points outside itself: SciPy makes one, and compiled code follows it."""
    try:
        if matrix.format == "coo":
            for indices, length in zip(matrix.coords, matrix.shape, strict=True):
                if len(indices) and not (indices.min() >= 0 and indices.max() < length):
                    raise ValueError(f"an index is not from 0 to {length - 1}")
        elif matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)
        elif matrix.format == "lil":
            matrix.tocsr().check_format(full_check=True)
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"{argument} must be a sparse matrix whose indices lie within its shape "
            f"{matrix.shape}; got one that is damaged ({error})"
        ) from None
