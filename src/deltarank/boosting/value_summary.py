"""What values features have over many chunks of rows, in little room.

A summary holds the distinct values of a feature and in how many rows each stands, as long as they
are at most `ROOM`. Thresholds from it are then those of all rows in one place. Of more values it
keeps `ROOM`, and counts each dropped one with the next that is kept. Fewer than n / ROOM of n rows
are dropped between two kept values, so that every such step, one for a chunk and one for each merge
on the way, moves a quantile by less than n / ROOM rows: a sixteenth of a bin when there are 256.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.boosting.values import Values, each_feature

ROOM = 4096


class ValueSummary(NamedTuple):
    """Values of some features, feature after feature: a small message, whatever the rows.

    ``values[starts[f]:starts[f + 1]]`` are those of feature f, ascending.
    """

    values: NDArray[np.float64]
    counts: NDArray[np.int64]
    starts: NDArray[np.int64]
    has_missing: NDArray[np.bool_]

    @classmethod
    def of(cls, X: Any, room: int) -> "ValueSummary":
        """Summarise the features of X, which is as `by_columns` gives it."""
        return cls._joined(each_feature(X, partial(_thinned, room=room)))

    @classmethod
    def _joined(cls, features: list[Values]) -> "ValueSummary":
        return cls(
            np.concatenate([feature.distinct for feature in features]),
            np.concatenate([feature.counts for feature in features]),
            np.cumsum([0, *(len(feature.distinct) for feature in features)]),
            np.array([feature.has_missing for feature in features]),
        )

    def features(self) -> list[Values]:
        """Return the values of each feature."""
        ends = self.starts[1:-1]
        parts = np.split(self.values, ends), np.split(self.counts, ends), self.has_missing.tolist()
        return [Values(*each) for each in zip(*parts, strict=True)]

    @classmethod
    def merged(cls, parts: "list[ValueSummary]", room: int) -> "ValueSummary":
        """Return the summary of all chunks from those of some."""
        values = np.concatenate([part.values for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        every = np.arange(len(parts[0].has_missing))
        features = np.concatenate([np.repeat(every, np.diff(part.starts)) for part in parts])
        order = np.lexsort((values, features))
        values, counts, features = values[order], counts[order], features[order]
        is_new = np.ones(len(values), bool)
        is_new[1:] = (values[1:] != values[:-1]) | (features[1:] != features[:-1])
        first = np.flatnonzero(is_new)
        together = cls(
            values[first],
            np.add.reduceat(counts, first) if len(first) else counts,
            np.searchsorted(features[first], np.arange(len(every) + 1)),
            np.any([part.has_missing for part in parts], axis=0),
        )
        if np.diff(together.starts).max() <= room:
            return together
        return cls._joined([_thinned(feature, room) for feature in together.features()])


def _thinned(feature: Values, room: int) -> Values:
    """Keep at most `room` values, each with the rows of those dropped below it."""
    if len(feature.distinct) <= room:
        return feature
    ends = np.cumsum(feature.counts)
    kept = np.unique(np.searchsorted(ends, ends[-1] * np.arange(1, room + 1) / room))
    counts = np.diff(ends[kept], prepend=0)
    return Values(feature.distinct[kept], counts, feature.has_missing)
