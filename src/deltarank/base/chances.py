"""The chances that scores of a univariate loss stand for."""

from typing import Any

from numpy.typing import NDArray

from deltarank.core.choices import choose
from deltarank.core.losses import LOSSES, Loss


def trainable_loss(name: Any) -> Loss:
    """Return a loss whose expectation has a minimiser, which tells the chance, or refuse its name.

    The table is asked anew each time: it may have got entries since.
    """
    trainable = {key: loss for key, loss in LOSSES.items() if loss.link and loss.inverse_link}
    return choose(trainable, name, "loss")


def chances(loss: Loss, positive_cost: Any, scores: NDArray[Any]) -> NDArray[Any]:
    """Return the chances that scores stand for, had relevant cells cost no more than others.

    One cost for all labels, or one for each.
    """
    assert loss.inverse_link is not None, "a loss that is trained has one"
    at_costs = loss.inverse_link(scores)
    # Relevant cells that cost kappa turn a chance p into kappa p / (kappa p + 1 - p).
    undone: NDArray[Any] = at_costs / (positive_cost - (positive_cost - 1) * at_costs)
    return undone
