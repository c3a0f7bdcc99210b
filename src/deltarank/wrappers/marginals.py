"""Whether a ranker estimates the chances that a decision needs: plain ones, or of some weight."""

from typing import Any

import numpy as np
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
    elif np.any(balances := _balances_of(ranker)):
        problem = f"a balance of {np.max(balances):g} moves each row's chances otherwise"
        way_out = "use balance=0"
    elif _weight_of(ranker) != weight:
        problem = f"it has weight={_weight_of(ranker)!r}"
    else:
        return
    raise ValueError(f"metric={metric!r} needs {needed} from {name}, but {problem}: {way_out}")


def _balances_of(ranker: Any) -> Any:
    """Return the values of balance that a ranker is, or may be, fitted with."""
    given = getattr(ranker, "balances", None)
    return getattr(ranker, "balance", 0.0) if given is None else list(given)


def _weight_of(ranker: Any) -> Any:
    """Return the weight of a ranker, or of the one that it wraps."""
    return _weight_of(ranker.ranker) if hasattr(ranker, "ranker") else ranker.weight


def chances_of(ranker: Any, X: Any) -> NDArray[Any]:
    """Return the chances (n, m) of checked rows that a fitted ranker estimates."""
    if isinstance(ranker, CalibratedRanker):
        return ranker._chances(X)
    return ranker._relevance(ranker._label_scores(X))
