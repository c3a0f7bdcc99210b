"""Scores, rankings and predictions of Dask collections, computed where the rows are."""

from functools import partial
from typing import Any

import numpy as np

from deltarank.base.ranker import Ranker
from deltarank.base.targets import PREDICTIONS
from deltarank.core.chunks import is_frame, map_aligned


def dtype_of(X: Any) -> Any:
    """Return the kind of numbers of a collection: float32 if all are, else float64."""
    kinds = set(X.dtypes) if is_frame(X) else {X.dtype}
    return np.dtype(np.float32 if kinds == {np.dtype(np.float32)} else np.float64)


def chunked_scores(ranker: Ranker, X: Any, method: str) -> Any:
    """Return the scores, chances or predictions of a Dask collection, a Dask array.

    Parameters
    ----------
    method : {"decision_function", "marginal_weights", "predict"}
    """
    single = ranker._form == "binary"
    n_columns = None if single and method == "decision_function" else _n_scores(ranker)
    if method != "predict":
        return map_aligned(
            getattr(ranker, method), (X, "X"), n_columns=n_columns, dtype=dtype_of(X)
        )
    if ranker._form == "sets":
        raise ValueError(
            "predictions of Dask collections are matrices, and this ranker was fitted on label "
            "sets; use rank or decision_function"
        )
    scores = np.zeros((0, _n_scores(ranker)))
    meta = None
    if ranker._form == "sparse":
        meta = PREDICTIONS["sparse"](scores, scores > 0, ranker.classes_)
    vector = ranker._form in ("classes", "binary")
    return map_aligned(
        ranker.predict,
        (X, "X"),
        n_columns=None if vector else _n_scores(ranker),
        dtype=ranker.classes_.dtype if vector else np.int64,
        meta=meta,
    )


def chunked_ranks(ranker: Ranker, X: Any, top: int) -> Any:
    """Return the best labels of a Dask collection's rows, a Dask array."""
    rank = partial(ranker.rank, top=top)
    return map_aligned(rank, (X, "X"), n_columns=top, dtype=ranker.classes_.dtype)


def _n_scores(ranker: Ranker) -> int:
    return 1 if ranker._form == "binary" else len(ranker.classes_)
