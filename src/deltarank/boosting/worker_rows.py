"""What a worker of a cluster does with its rows: it tells values, adds votes, fills histograms."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.base.placing import CheckedRows, Totals
from deltarank.boosting.bins import encode
from deltarank.boosting.choice import feature_groups
from deltarank.boosting.kernels.votes import add_label_votes, take_relevant, univariate_weights
from deltarank.boosting.places import Places, aligned_empty, rows_with_relevant
from deltarank.boosting.value_summary import ValueSummary
from deltarank.boosting.values import by_columns
from deltarank.core.kernels.lanes import LANES
from deltarank.core.threads import run


class Votes(NamedTuple):
    """A round as it is sent to workers: each place's stump, and votes of its branches (3, places).

    See `deltarank.boosting.choice.Stumps`.
    """

    feature: NDArray[np.int64]
    cut: NDArray[np.int64]
    votes: NDArray[np.float64]


class CountedRows:
    """Rows of a chunk that count, with their weights; features column after column."""

    def __init__(self, rows: CheckedRows, totals: Totals) -> None:
        weights = rows.weights(totals)
        counted = weights > 0
        self.X = by_columns(rows.X[counted])
        self.labels, self.weights = rows.labels.take(counted), weights[counted]

    def __sizeof__(self) -> int:
        """Tell Dask how large the rows are, so that they go to disk when memory is short."""
        X = self.X
        parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
        return sum(part.nbytes for part in (*parts, *self.labels[:2], self.weights))

    def sums(self) -> tuple[int, float, NDArray[np.int64], NDArray[np.int64]]:
        """Return rows, their weight, and rows in which each label is relevant, and is known."""
        labels, n_rows = self.labels, self.labels.n_rows
        relevant = np.bincount(labels.members, minlength=labels.n_labels)
        known = np.full(labels.n_labels, n_rows)
        if labels.unknown is not None:
            known -= np.bincount(labels.unknown.members, minlength=labels.n_labels)
        return n_rows, float(self.weights.sum()), relevant, known

    def values(self, features: slice, room: int) -> ValueSummary:
        """Return what values some features have."""
        return ValueSummary.of(self.X[:, features], room)


class BinnedRows:
    """Rows of a chunk in bins that all chunks share; nothing in it changes.

    Parameters
    ----------
    rows : CountedRows
    thresholds : list of arrays
        See `Cuts`.
    places : Places
        Of the labels, the same for all chunks.
    dtype : dtype
        Of cells and histograms.
    """

    def __init__(
        self, rows: CountedRows, thresholds: list[NDArray[np.float64]], places: Places, dtype: Any
    ) -> None:
        self.bins, self.dtype = encode(rows.X, thresholds), dtype
        self.signs = places.signs_of(rows.labels)
        self.has_gaps = (self.signs == 0).any(axis=(1, 2))
        self.relevant_rows = rows_with_relevant(self.signs, self.bins)
        self.log_weights = np.log(rows.weights)

    def __sizeof__(self) -> int:
        """Tell Dask how large the rows are: see `CountedRows`."""
        parts = (self.bins.codes, self.signs, self.log_weights, *self.relevant_rows)
        return sum(part.nbytes for part in parts)

    def scores_after(self, rounds: list[Votes]) -> NDArray[np.float64]:
        """Return the scores (tiles, n, LANES) that some rounds give, from the first one on."""
        return self._with_votes(np.zeros(self.signs.shape), rounds)

    def with_votes(self, scores: NDArray[np.float64], last: Votes) -> NDArray[np.float64]:
        """Return the scores after one more round.

        A new array: Dask may need the old one to make again what a worker took with it.
        """
        return self._with_votes(scores.copy(), [last])

    def _with_votes(self, scores: NDArray[np.float64], rounds: list[Votes]) -> NDArray[np.float64]:
        def add(tile: int) -> None:
            lanes = slice(tile * LANES, (tile + 1) * LANES)
            for feature, cut, votes in rounds:
                if votes[:, lanes].any():
                    codes, missing = self.bins.columns(feature[lanes]), self.bins.n_values
                    add_label_votes(
                        codes, cut[lanes], missing[feature[lanes]], votes[:, lanes], scores[tile]
                    )

        run([partial(add, tile) for tile in range(len(scores))])
        return scores

    def histograms(
        self, scores: NDArray[np.float64], tiles: NDArray[np.int64], shift: NDArray[np.float64]
    ) -> tuple[NDArray[Any]]:
        """Return sums of all and of the relevant cells of some tiles, (tiles, 2, lines, LANES).

        Lines are packed: see `Cuts`.
        """
        tasks = [partial(self._histograms, scores[tile], int(tile), shift) for tile in tiles]
        return (np.array(run(tasks)),)

    def _histograms(
        self, scores: NDArray[np.float64], tile: int, shift: NDArray[np.float64]
    ) -> NDArray[Any]:
        bins, signs, rows = self.bins, self.signs[tile], self.relevant_rows[tile]
        cells = aligned_empty(scores.shape, self.dtype)
        tile_shift = shift[tile * LANES : (tile + 1) * LANES]
        univariate_weights(scores, signs, self.log_weights, tile_shift, self.has_gaps[tile], cells)
        relevant = aligned_empty((len(rows), LANES), self.dtype)
        take_relevant(cells, signs, rows, relevant)
        packed = np.empty((2, bins.first_lines[-1], LANES), self.dtype)
        for features in feature_groups(bins, self.dtype):
            n_lines = (features.stop - features.start) * bins.n_bins
            padded = aligned_empty((2, n_lines, LANES), self.dtype)
            bins.fill(features, cells, padded[0])
            bins.fill_relevant(features, rows, relevant, padded[1])
            bins.pack(padded, features, packed)
        return packed
