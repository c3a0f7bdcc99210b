"""What a fit finds appears on the estimator in one step, when all of it is there."""

from collections.abc import Callable, Iterator
from copy import copy
from functools import wraps
from typing import Any


def published_at_end(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `fit` that works on a copy and publishes what it found in one assignment.

    If it fails or is interrupted, the estimator stays as it was. Of two threads that fit one
    estimator, the last to end wins, whole.
    """

    @wraps(fit)
    def whole_fit(estimator: Any, *args: Any, **options: Any) -> Any:
        unpublished = copy(estimator)
        fit(unpublished, *args, **options)
        estimator.__dict__ = vars(unpublished)
        return estimator

    return whole_fit


def published_stages(estimator: Any, fit_stages: Callable[[Any], Iterator[None]]) -> Iterator[Any]:
    """Run the stages of a fit on a copy, and yield the estimator with each stage published."""
    unpublished = copy(estimator)
    for _ in fit_stages(unpublished):
        estimator.__dict__ = dict(vars(unpublished))
        yield estimator
