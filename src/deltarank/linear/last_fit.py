"""What an earlier fit of a linear ranker found, matched to the labels of the next one."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.scores import FIRST
from deltarank.linear.ranker import LinearRanker


class LastFit(NamedTuple):
    """What an earlier fit found, to go on from."""

    coef: NDArray[Any]
    intercept: NDArray[Any]
    labels: list[Any]
    features: Any

    @classmethod
    def of(cls, ranker: LinearRanker) -> "LastFit | None":
        """Return the ranker's last fit; None if it has none, or left coefficients out."""
        if not hasattr(ranker, "coef_") or hasattr(ranker, "prune_effect_"):
            return None
        features = getattr(ranker, "feature_names_in_", None)
        return cls(ranker.coef_, ranker.intercept_, _label_names(ranker), features)

    def for_labels_of(self, ranker: LinearRanker) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return coefficients and intercepts of the labels the ranker is now to fit.

        The intercept is NaN for a label that the earlier fit did not have, or that was never, or
        always, relevant in it. Other features than those of the earlier fit are refused.
        """
        self._check_features(ranker)
        place = {name: row for row, name in enumerate(self.labels)}
        rows = np.array([place.get(name, -1) for name in _label_names(ranker)])
        coef, intercept = self.coef[rows], self.intercept[rows]
        fresh = (rows < 0) | (np.abs(intercept) >= FIRST / 2)
        return np.where(fresh[:, None], 0.0, coef), np.where(fresh, np.nan, intercept)

    def _check_features(self, ranker: LinearRanker) -> None:
        way_out = "; fit a new ranker, or use warm_start=False"
        before, now = self.coef.shape[1], ranker.n_features_in_
        if before != now:
            raise ValueError(
                f"warm_start=True goes on from a fit of {before} features, so X must have as many; "
                f"got {now}{way_out}"
            )
        names = getattr(ranker, "feature_names_in_", None)
        if names is not None and self.features is not None and (names != self.features).any():
            column = int(np.flatnonzero(names != self.features)[0])
            raise ValueError(
                f"warm_start=True needs the features of the last fit in their order; column "
                f"{column} was {self.features[column]!r} and is {names[column]!r}{way_out}"
            )


def _label_names(ranker: LinearRanker) -> list[Any]:
    """Return one name per row of coefficients: of two classes the second, as they share one."""
    names = ranker.classes_.tolist()
    return names[-1:] if ranker._form == "binary" else names
