"""The chances that scores of a univariate loss stand for."""

from typing import Any

from numpy.typing import NDArray

from deltarank.core.choices import choose
from deltarank.core.losses import LOSSES, Loss

# Losses that can be trained: their expectation has a minimiser, which tells the chance.
TRAINABLE = {name: loss for name, loss in LOSSES.items() if loss.link and loss.inverse_link}


def trainable_loss(name: Any) -> Loss:
    """Return a loss that can be trained, or refuse its name."""
    return choose(TRAINABLE, name, "loss")


def chances(loss: Loss, positive_cost: Any, scores: NDArray[Any]) -> NDArray[Any]:
    """Return the chances that scores stand for, had relevant cells cost no more than others.

    One cost for all labels, or one for each.
    """
    assert loss.inverse_link is not None, "a loss that is trained has one"
    found = loss.inverse_link(scores)
    # Relevant cells that cost kappa turn a chance p into kappa p / (kappa p + 1 - p).
    undone: NDArray[Any] = found / (positive_cost - (positive_cost - 1) * found)
    return undone
