"""Made-up data with very many labels, shaped like those of texts with tags."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Frequencies fall as one over a power of the rank, a little slower than words do.
EXPONENT = 0.9
# The share of a row's features that come from its labels; the others say nothing.
TOLD_BY_LABELS = 0.6
FEATURES_PER_LABEL = 20
# Rows drawn at a time.
ROWS_PER_BLOCK = 50_000


def long_tailed(
    n_rows: int,
    n_features: int,
    n_labels: int,
    *,
    features_per_row: int = 60,
    labels_per_row: float = 5.0,
    random_state: Any = None,
    model_state: Any = None,
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Draw rows whose labels and features are a few frequent ones and a long tail of rare ones.

    A row first gets labels, their frequencies a power law. Each label has its own features, again
    rather frequent than rare ones; a row's features come from its labels or, a part of them, from
    all features alike. Values are logarithms of counts, and rows have length 1.

    Parameters
    ----------
    n_rows, n_features, n_labels : int
    features_per_row : int
        Draws per row; features drawn twice count more.
    labels_per_row : float
        About this many; at least one.
    random_state : int, generator or None
        For the rows.
    model_state : int, generator or None
        For the features of labels: `random_state` by default. Give it to draw other rows of the
        same kind.

    Returns
    -------
    X : CSR array of float32, shape (n_rows, n_features)
    Y : CSR array of 0 and 1, shape (n_rows, n_labels)

    Examples
    --------
    >>> X, Y = long_tailed(1000, 500, 100, random_state=0)
    >>> X.shape, Y.shape
    ((1000, 500), (1000, 100))
    """
    of_labels = np.random.default_rng(random_state if model_state is None else model_state)
    feature_share, label_share = _power_law(n_features), _power_law(n_labels)
    features_of = _draw(of_labels, feature_share, (n_labels, FEATURES_PER_LABEL))
    generator = np.random.default_rng(random_state)
    blocks = []
    for first in range(0, n_rows, ROWS_PER_BLOCK):
        n = min(ROWS_PER_BLOCK, n_rows - first)
        sizes = 1 + generator.poisson(labels_per_row - 1, n)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        labels = _draw(generator, label_share, starts[-1])
        shape = (n, features_per_row)
        chosen = starts[:-1, None] + generator.integers(0, sizes[:, None], shape)
        features = features_of[labels[chosen], generator.integers(0, FEATURES_PER_LABEL, shape)]
        noise = _draw(generator, feature_share, shape)
        features = np.where(generator.random(shape) < TOLD_BY_LABELS, features, noise)
        Y = _counts(np.repeat(np.arange(n), sizes), labels, (n, n_labels))
        Y.data[:] = 1
        X = _counts(np.repeat(np.arange(n), features_per_row), features.ravel(), (n, n_features))
        blocks.append((_unit_rows(X), Y.astype(np.int8)))
    X, Y = (sparse.vstack(parts, format="csr") for parts in zip(*blocks, strict=True))
    return X, Y


def _power_law(n: int) -> NDArray[np.float64]:
    """Return the cumulative shares of n things whose shares fall as a power of their rank."""
    shares = np.arange(1, n + 1) ** -EXPONENT
    return np.asarray(np.cumsum(shares) / shares.sum())


def _draw(
    generator: np.random.Generator, summed: NDArray[np.float64], shape: Any
) -> NDArray[np.intp]:
    drawn = np.searchsorted(summed, generator.random(shape), side="right")
    return np.minimum(drawn, len(summed) - 1)


def _counts(rows: Any, columns: Any, shape: tuple[int, int]) -> sparse.csr_array:
    ones = np.ones(len(rows), np.float32)
    matrix = sparse.csr_array((ones, (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def _unit_rows(X: sparse.csr_array) -> sparse.csr_array:
    X.data = np.log1p(X.data)
    lengths = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(lengths, np.diff(X.indptr))
    return X
