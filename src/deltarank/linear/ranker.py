"""What linear rankers share: scores from coefficients, and a quick way to rank a single row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.base.ranker import Ranker
from deltarank.base.scores import check_top
from deltarank.core.kernels.top_labels import select_top
from deltarank.linear.coefficients import linear_scores, without

# Sums of the squares of larger features over the rows would leave the range of float64.
LARGEST_FEATURE = 1e150


def with_constants(
    coef: NDArray[Any], intercept: NDArray[Any], constants: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return coefficients and intercepts with a constant score where one is given, not NaN."""
    constant = ~np.isnan(constants)
    return without(coef, constant), np.where(constant, constants, intercept)


class LinearRanker(Ranker):
    """A ranker with `coef_` (m, d) and `intercept_` (m,)."""

    coef_: NDArray[Any]
    intercept_: NDArray[Any]

    def _largest_feature(self, dtype: Any) -> float:
        return LARGEST_FEATURE

    def _set_coefficients(
        self, coef: NDArray[Any], intercept: NDArray[Any], constants: NDArray[Any], dtype: Any
    ) -> None:
        """Keep coefficients; a label with a constant score (not NaN) gets that and nothing else."""
        coef, intercept = with_constants(coef, intercept, constants)
        self.coef_, self.intercept_ = coef.astype(dtype), intercept.astype(dtype)

    def _scores(self, X: Any) -> NDArray[Any]:
        return self._linear_scores(X, self.coef_, self.intercept_)

    @staticmethod
    def _linear_scores(X: Any, coef: NDArray[Any], intercept: NDArray[Any]) -> NDArray[Any]:
        return linear_scores(X, coef, intercept)

    def rank(self, X: Any, top: int | None = None) -> NDArray[Any]:
        """Rank labels, best first: see `Ranker.rank`. One dense row takes microseconds."""
        if self._is_plain_row(X):
            return self._rank_row(X, top)
        return super().rank(X, top)

    def _is_plain_row(self, X: Any) -> bool:
        """Tell whether X is one row that scikit-learn's checks would pass as it is."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.shape == (1, getattr(self, "n_features_in_", -1))
            and X.dtype in (np.float32, np.float64)
            and self._form != "binary"
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(X).all())
        )

    def _rank_row(self, X: NDArray[Any], top: int | None) -> NDArray[Any]:
        n_labels = len(self.classes_)
        top = n_labels if top is None else check_top(top, n_labels)
        ranked = np.empty((1, top), np.intp)
        select_top(self._label_scores(X), top, ranked)
        return self.classes_[ranked]
