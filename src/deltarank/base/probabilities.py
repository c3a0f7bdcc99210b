"""Whether the scores of a ranker estimate chances, and of which weight."""

from typing import Any

import numpy as np

from deltarank.core.weights import Weight


def problem_with_chances(ranker: Any, weight: Weight = "uniform") -> tuple[str, str] | None:
    """Return why a ranker does not estimate chances of a weight, and a way out; None if it does.

    Plain chances, P(y_l = 1 | x), are those of ``weight="uniform"``.
    """
    way_out = f"use {weight=}"
    if weight == "uniform":
        way_out = "use weight='uniform', or wrap the ranker in CalibratedRanker"
    if not ranker.estimates_marginals:
        return "its scores tell pairs of labels apart, and are no chances", way_out
    if np.any(balances := _balances_of(ranker)):
        problem = f"a balance of {np.max(balances):g} moves each row's chances otherwise"
        return problem, "use balance=0"
    if _weight_of(ranker) != weight:
        return f"it has weight={_weight_of(ranker)!r}", way_out
    return None


def has_probabilities(ranker: Any) -> bool:
    """Tell whether `predict_proba` is honest; raise AttributeError with the reason if it is not."""
    name = type(ranker).__name__
    # As long as it is not fitted, it may yet be given single classes.
    if getattr(ranker, "_form", "classes") in ("binary", "classes"):
        raise AttributeError(f"{name} has probabilities once it is fitted to label sets")
    if (problem := problem_with_chances(ranker)) is not None:
        raise AttributeError(
            f"{name} does not estimate P(y_l = 1 | x), but *weighted* chances (marginal_weights): "
            f"{problem[0]}; {problem[1]}"
        )
    return True


def _balances_of(ranker: Any) -> Any:
    """Return the values of balance that a ranker is, or may be, fitted with."""
    balances = getattr(ranker, "balances", None)
    return getattr(ranker, "balance", 0.0) if balances is None else list(balances)


def _weight_of(ranker: Any) -> Any:
    """Return the weight of a ranker, or of the one that it wraps."""
    return _weight_of(ranker.ranker) if hasattr(ranker, "ranker") else ranker.weight
