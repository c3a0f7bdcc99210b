"""What a ranker says of every row when it was fitted without it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from deltarank.base.selection import Labelled, split_rows


def held_out(
    ranker: Any,
    data: Labelled,
    cv: Any,
    random_state: Any,
    ask: Callable[[Any, Any], Any],
    answers: NDArray[Any],
) -> None:
    """Write ``ask(ranker, X)`` of each row, by a clone fitted to other folds, into `answers`."""
    splits = split_rows(cv, data.X, data.y, data.targets, random_state)
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=len(answers))
    if (times != 1).any():
        row = int(np.flatnonzero(times != 1)[0])
        raise ValueError(
            f"cv must hold every row out once; row {row} is held out {times[row]} times "
            "(use an integer, or a splitter into folds)"
        )
    for train, test in splits:
        fitted = clone(ranker)
        if (weights := data.weights_of(fitted, train)) is not None:
            fitted.set_params(weight=lambda _, weights=weights: weights)
        fitted.fit(*data.take(train))
        answers[test] = ask(fitted, data.take(test)[0])
