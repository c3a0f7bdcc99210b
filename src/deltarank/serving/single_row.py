"""The features of one item, put down one by one: matrices in between would cost ten times that."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.scores import RowError
from deltarank.datasets import Preparation
from deltarank.datasets.encoder import CategoryColumn, CodeColumn, NumberColumn
from deltarank.datasets.readers.cells import categories
from deltarank.datasets.text.column import TextColumn

# Of numbers beyond, and of all else that may stand for one, the column itself takes care.
LARGEST = 1e300


class SingleRow:
    """Makes the row of an item as `Preparation` does with tables, for models with an encoder.

    Examples
    --------
    >>> from deltarank.datasets import Encoder
    >>> encoder = Encoder.fit({"size": [1, 2], "plot": ["red hat", "blue hat"]}, {"plot": "text"})
    >>> row = SingleRow(Preparation(4, encoder=encoder))
    >>> row({"size": 3, "plot": "the red hat"}).toarray().round(2)
    array([[3.  , 0.  , 0.58, 0.81]])
    """

    def __init__(self, preparation: Preparation) -> None:
        encoder, scaler = preparation.encoder, preparation.scaler
        assert encoder is not None, "made for models with one"
        self._n_features = preparation.n_features
        self._dense = preparation.dense or not encoder.is_sparse
        self._parts, first = [], 0
        for column in encoder.columns:
            self._parts.append((column, first))
            first += (
                len(column.words) if isinstance(column, TextColumn) else len(column.feature_names())
            )
        scaled = () if scaler is None else zip(scaler.means, scaler.scales, strict=True)
        self._scales = dict(zip(() if scaler is None else scaler.columns, scaled, strict=True))
        self._places = {
            column.name: {value: place for place, value in enumerate(column.values)}
            for column in encoder.columns
            if isinstance(column, CategoryColumn)
        }

    def __call__(self, item: dict[str, Any]) -> Any:
        """Return the row, dense or CSR, as the ranker takes it."""
        columns, values = [], []
        for column, first in self._parts:
            taken, numbers = self._features(column, first, item[column.name])
            columns.append(np.asarray(taken, np.int32) + np.int32(first))
            values.append(numbers)
        indices, data = np.concatenate(columns), np.concatenate(values)
        if self._dense:
            row = np.zeros((1, self._n_features))
            row[0, indices] = data
            return row
        starts = np.array([0, len(indices)], np.int32)
        return sparse.csr_array((data, indices, starts), shape=(1, self._n_features))

    def _features(self, column: Any, first: int, cell: Any) -> tuple[Any, NDArray[Any]]:
        """Return the columns of a cell within those of its own, in order, and the values."""
        if isinstance(column, NumberColumn):
            plain = type(cell) in (int, float) and abs(cell) < LARGEST
            number = float(cell) if plain else float(column.features([cell])[0, 0])
            return [0], np.array([self._scaled(first, number)])
        if isinstance(column, CodeColumn):
            return [0], column.features([cell])[0]
        if isinstance(column, CategoryColumn):
            known = self._places[column.name]
            members = sorted({known[it] for it in categories(cell) if it in known})
            return members, np.ones(len(members))
        return column.row(cell)

    def _scaled(self, feature: int, value: float) -> float:
        if feature not in self._scales:
            return value
        mean, scale = self._scales[feature]
        scaled = (value - mean) / scale
        if np.isinf(scaled):
            problem = f"has the feature {value:.3g}, too far from those in training to be scaled"
            raise RowError(0, problem)
        return scaled
