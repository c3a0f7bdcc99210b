"""What searches by cross-validation share: the scorer, the folds, the choice."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from deltarank.base.ranker import Ranker
from deltarank.base.targets import Targets
from deltarank.core.splits import LabelStratifiedKFold
from deltarank.metrics import SCORERS

Split = tuple[NDArray[Any], NDArray[Any]]
Scoring = str | Callable[[Any, Any, Any], float]


def choose_scorer(scoring: Scoring, targets: Targets) -> Callable[..., float]:
    """Return ``scorer(ranker, X, Y, sample_weight=...)``, greater being better.

    A name means the accuracy where Y is a vector of classes.
    """
    if callable(scoring):
        return lambda ranker, X, Y, sample_weight: scoring(ranker, X, Y)
    if scoring in SCORERS:
        return Ranker.score if targets.form in ("binary", "classes") else SCORERS[scoring]
    raise ValueError(
        f"unknown scoring {scoring!r}; choose one of {', '.join(sorted(SCORERS))}, "
        "or pass a callable (ranker, X, Y) -> float"
    )


def split_rows(cv: Any, X: Any, y: Any, targets: Targets, random_state: Any) -> list[Split]:
    """Return the rows to fit and to hold out; an integer stands for folds stratified by label."""
    if isinstance(cv, int | np.integer):
        folds = LabelStratifiedKFold(int(cv), random_state=random_state)
        return list(folds.split(X, targets.labels.to_csr()))
    return list(check_cv(cv).split(X, y))


def take_labels(y: Any, targets: Targets, rows: NDArray[Any]) -> Any:
    """Return some rows of Y in the form it came."""
    if targets.form == "sets":
        return [y[row] for row in rows]
    if targets.labels.unknown is not None:
        taken = targets.labels.take(rows).to_matrix()
        return taken if targets.form == "sparse" else taken.toarray()
    return (sparse.csr_array(y) if targets.form == "sparse" else np.asarray(y))[rows]


def choose_value(scores: NDArray[np.float64], one_standard_error: bool) -> int:
    """Return the place of the best mean score (folds, values).

    By the rule of one standard error: the first place within one of the best.
    """
    mean = scores.mean(axis=0)
    best = int(mean.argmax())
    if one_standard_error:
        error = scores[:, best].std(ddof=1) / np.sqrt(len(scores))
        best = int(np.flatnonzero(mean >= mean[best] - error)[0])
    return best


def tabulate(grid: dict[str, Any], scores: NDArray[np.float64]) -> dict[str, Any]:
    """Return ``cv_results_`` as scikit-learn's searches have it, of the values tried."""
    results = {
        **{f"param_{parameter}": values for parameter, values in grid.items()},
        "mean_test_score": scores.mean(axis=0),
        "std_test_score": scores.std(axis=0),
    }
    for fold, row in enumerate(scores):
        results[f"split{fold}_test_score"] = row
    return results


class Labelled(NamedTuple):
    """Rows with their labels, to be taken by part."""

    X: Any
    y: Any
    targets: Targets
    sample_weight: NDArray[Any] | None

    def take(self, rows: NDArray[Any]) -> tuple[Any, Any, NDArray[Any] | None]:
        """Return features, labels and weights of some rows.

        Labels with a column for every label, also where none of these rows has it.
        """
        by_class = self.targets.form in ("binary", "classes")
        labels = (
            np.asarray(self.y)[rows] if by_class else self.targets.labels.take(rows).to_matrix()
        )
        counts = None if self.sample_weight is None else self.sample_weight[rows]
        return _safe_indexing(self.X, rows), labels, counts

    def weights_of(self, ranker: Any, rows: NDArray[Any]) -> NDArray[Any] | None:
        """Return what the ranker's own function of Y, as Y was given, makes of some rows."""
        weight = getattr(ranker, "weight", None)
        return np.asarray(weight(self.y))[rows] if callable(weight) else None
