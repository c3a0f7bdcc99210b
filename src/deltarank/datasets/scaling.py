"""Numeric features on one scale: mean 0 and standard deviation 1 in training."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.scores import RowError


@dataclass(frozen=True)
class Scaler:
    """Some columns of X shifted and scaled, the others left as they are.

    Plain data: like an `Encoder` it goes into a model file as JSON.

    Attributes
    ----------
    columns : tuple of int
        The columns to scale, ascending.
    means, scales : tuple of float
        What is subtracted from each of them, and what it is then divided by.

    Examples
    --------
    >>> import numpy as np
    >>> scaler = Scaler.fit(np.array([[1.0, 5.0], [3.0, 5.0]]), columns=[0])
    >>> scaler.transform(np.array([[3.0, 5.0], [4.0, 7.0]]))
    array([[1., 5.],
           [2., 7.]])
    >>> Scaler.from_json(scaler.to_json()) == scaler
    True
    """

    columns: tuple[int, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]

    @classmethod
    def fit(cls, X: Any, columns: Sequence[int]) -> "Scaler":
        """Learn mean and standard deviation of some columns; a constant one keeps its unit."""
        block = _columns_of(X, columns)
        n_rows = block.shape[0]
        means = (block / n_rows).sum(axis=0)
        distances = np.abs(block - means)
        # Relative to the largest distance, since its square may overflow. A deviation no larger
        # than the rounding of the mean counts as zero.
        largest = distances.max(axis=0)
        negligible = 8 * np.finfo(np.float64).eps * np.abs(block).max(axis=0)
        largest = np.where(largest > negligible, largest, 1.0)
        spread = largest * np.sqrt(np.square(distances / largest).mean(axis=0))
        scales = np.where(distances.max(axis=0) > negligible, spread, 1.0)
        return cls(tuple(map(int, columns)), tuple(means.tolist()), tuple(scales.tolist()))

    def transform(self, X: Any) -> Any:
        """Return X with the columns scaled; dense stays dense, and CSR stays CSR."""
        if not self.columns:
            return X
        columns = np.asarray(self.columns)
        with np.errstate(over="ignore"):  # reported below, with the row
            scaled = (_columns_of(X, columns) - np.asarray(self.means)) / np.asarray(self.scales)
        if np.isinf(scaled).any():
            row, place = (int(index[0]) for index in np.nonzero(np.isinf(scaled)))
            value = _columns_of(X[[row]], columns)[0, place]
            problem = f"has the feature {value:.3g}, too far from those in training to be scaled"
            raise RowError(row, problem)
        if not sparse.issparse(X):
            result = np.array(X, dtype=np.float64)
            result[:, columns] = scaled
            return result
        kept = np.ones(X.shape[1])
        kept[columns] = 0
        rest = sparse.csr_array(X @ sparse.diags_array(kept))
        rest.eliminate_zeros()
        n_rows = X.shape[0]
        indices, starts = np.tile(columns, n_rows), np.arange(n_rows + 1) * len(columns)
        result = rest + sparse.csr_array((scaled.ravel(), indices, starts), shape=X.shape)
        result.sort_indices()  # a product with a diagonal matrix may leave them unsorted
        return result

    def to_json(self) -> dict[str, Any]:
        """Return the scaler as lists of numbers."""
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_json(cls, state: Any) -> "Scaler":
        """Make a scaler of what `to_json` gave, and refuse anything else."""
        if not isinstance(state, dict) or set(state) != {"columns", "means", "scales"}:
            raise ValueError("a scaler must have columns, means and scales")
        columns, means, scales = (state[name] for name in ("columns", "means", "scales"))
        if (
            not all(isinstance(part, list) for part in (columns, means, scales))
            or not len(columns) == len(means) == len(scales)
            or not all(type(column) is int and column >= 0 for column in columns)
            or columns != sorted(set(columns))
            or not all(type(x) in (int, float) and math.isfinite(x) for x in (*means, *scales))
            or not all(scale > 0 for scale in scales)
        ):
            raise ValueError("a scaler of a model file is damaged")
        return cls(tuple(columns), tuple(means), tuple(scales))


def _columns_of(X: Any, columns: Any) -> NDArray[np.float64]:
    block = X[:, np.asarray(columns, dtype=np.intp)]
    return np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)
