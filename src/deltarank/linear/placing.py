"""From what users give to rows that can be fitted, wherever they lie."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.base.ranker import balanced, constant_scores, training_weights
from deltarank.base.targets import Targets
from deltarank.core.chunks import is_chunked
from deltarank.linear.chunked import Placed, placed_chunks
from deltarank.linear.rows.place import place
from deltarank.linear.rows.protocol import Rows


@contextmanager
def placed(ranker: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Placed]:
    """Check and weigh X and Y, and give the rows where the ranker is to be fitted."""
    if is_chunked(X) or is_chunked(y):
        with placed_chunks(ranker, X, y, sample_weight) as data:
            yield data
        return
    X = ranker._check_rows(X, fitting=True)
    targets = ranker._check_labels(y, X.shape[0])
    weights = training_weights(targets, y, ranker.weight, sample_weight)
    rows = rows_of(ranker, X, targets, weights)
    yield Placed(rows, constant_scores(targets.labels, weights), X.dtype)


def rows_of(ranker: Any, X: Any, targets: Targets, weights: NDArray[np.float64]) -> Rows:
    """Return checked rows where a ranker is to be fitted."""
    cost: Any = ranker.positive_cost
    if isinstance(cost, str):
        weights, cost = balanced(targets.labels, weights)
    options = {"positive_cost": cost, "loss": ranker._loss()}
    return place(X, targets.labels, weights, device=ranker.device, **options)
