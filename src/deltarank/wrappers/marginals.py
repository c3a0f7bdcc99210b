"""Whether a ranker estimates the chances that a decision needs: plain ones, or of some weight."""

from typing import Any

from numpy.typing import NDArray

from deltarank.base.probabilities import problem_with_chances
from deltarank.core.weights import Weight
from deltarank.wrappers.calibrated import CalibratedRanker


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
