"""Whether a ranker estimates the chances that a decision needs: plain ones, or of some weight."""

from typing import Any

from numpy.typing import NDArray

from deltarank.core.weights import Weight
from deltarank.wrappers.calibrated import CalibratedRanker


def require_chances(ranker: Any, metric: str, weight: Weight) -> None:
    """Refuse a ranker whose chances are of another weight than the metric's best decision needs.

    Plain chances, P(y_l = 1 | x), are those of ``weight="uniform"``, or calibrated.
    """
    needed = "plain chances P(y_l = 1 | x)" if weight == "uniform" else f"chances of {weight=}"
    way_out = f"use {weight=}"
    if weight == "uniform":
        if isinstance(ranker, CalibratedRanker):
            return
        way_out = "use weight='uniform', or wrap the ranker in CalibratedRanker"
    name = type(ranker).__name__
    if isinstance(ranker, CalibratedRanker):
        problem = "its probabilities are plain"
        way_out = f"pass a ranker with {weight=} as it is"
    elif not ranker.estimates_marginals:
        problem = "its scores tell pairs of labels apart, and are no chances"
    elif isinstance(getattr(ranker, "positive_cost", 1.0), str):
        problem = f"positive_cost={ranker.positive_cost!r} moves each row's chances otherwise"
        way_out = "use a number for positive_cost"
    elif _weight_of(ranker) != weight:
        problem = f"it has weight={_weight_of(ranker)!r}"
    else:
        return
    raise ValueError(f"metric={metric!r} needs {needed} from {name}, but {problem}: {way_out}")


def _weight_of(ranker: Any) -> Any:
    """Return the weight of a ranker, or of the one that it wraps."""
    return _weight_of(ranker.ranker) if hasattr(ranker, "ranker") else ranker.weight


def chances_of(ranker: Any, X: Any) -> NDArray[Any]:
    """Return the chances (n, m) of checked rows that a fitted ranker estimates."""
    if isinstance(ranker, CalibratedRanker):
        return ranker._chances(X)
    return ranker._relevance(ranker._label_scores(X))
