"""Whether a ranker estimates the chances that a decision needs: plain ones, or of some weight."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.base.probabilities import problem_with_chances
from deltarank.base.selection import Labelled
from deltarank.core.memory import require_cells
from deltarank.core.weights import Weight
from deltarank.decisions.frank_wolfe import HeldOut
from deltarank.wrappers.calibrated import CalibratedRanker
from deltarank.wrappers.held_out import held_out

# Of each row and label held out: chances, also those of a fold in float64, and gains.
BYTES_PER_CELL = 25


def require_chances(ranker: Any, metric: str, weight: Weight) -> None:
    """Refuse a ranker whose chances are of another weight than the metric's best decision needs.

    Plain chances, P(y_l = 1 | x), are those of ``weight="uniform"``, or calibrated.
    """
    problem: tuple[str, str] | None
    if isinstance(ranker, CalibratedRanker):
        if weight == "uniform":
            return
        problem = "its probabilities are plain", f"pass a ranker with {weight=} as it is"
    elif (problem := problem_with_chances(ranker, weight)) is None:
        return
    needed = "plain chances P(y_l = 1 | x)" if weight == "uniform" else f"chances of {weight=}"
    why, way_out = problem
    name = type(ranker).__name__
    raise ValueError(f"metric={metric!r} needs {needed} from {name}, but {why}: {way_out}")


def chances_of(ranker: Any, X: Any) -> NDArray[Any]:
    """Return the chances (n, m) of checked rows that a fitted ranker estimates."""
    if isinstance(ranker, CalibratedRanker):
        return ranker._chances(X)
    return ranker._relevance(ranker._label_scores(X))


def held_out_chances(ranker: Any, data: Labelled, cv: Any, random_state: Any) -> HeldOut:
    """Return the chances of each row by rankers fitted without it, with its labels."""
    labels = data.targets.labels
    shape, way_out = (labels.n_rows, labels.n_labels), "fit fewer labels or rows"
    require_cells("held-out chances of", shape, BYTES_PER_CELL, way_out)
    chances = np.empty((labels.n_rows, labels.n_labels), np.float32)

    def ask(fitted: Any, X: Any) -> Any:
        return chances_of(fitted, fitted._check_rows(X))

    held_out(ranker, data, cv, random_state, ask, chances)
    weights = np.ones(labels.n_rows) if data.sample_weight is None else data.sample_weight
    return HeldOut(chances, labels, weights / weights.sum())
