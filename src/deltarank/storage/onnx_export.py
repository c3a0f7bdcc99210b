"""Rankers as ONNX graphs: rows in, labels in rank order and their scores out."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from deltarank.base.scores import check_top
from deltarank.boosting.stump_ranker import StumpRanker
from deltarank.core.files import write_whole
from deltarank.datasets import Preparation
from deltarank.datasets.encoder import NumberColumn
from deltarank.gradient_trees.boosted_trees import BoostedTreeRanker
from deltarank.linear.kernel_logistic import KernelLogisticRanker
from deltarank.linear.ranker import LinearRanker
from deltarank.storage.onnx_graph import INPUT, Graph
from deltarank.storage.onnx_trees import forest_scores
from deltarank.wrappers.staged import StagedSearchCV

Floats = NDArray[np.float64]


def export_onnx(
    ranker: Any,
    path: str | PathLike[str],
    top: int | None = None,
    *,
    preparation: Preparation | None = None,
) -> None:
    """Write a fitted ranker as an ONNX file, for any runtime in any language.

    The graph takes ``X``, dense float64 rows of shape (n, d), and gives ``label_indices`` (int64)
    and ``scores`` (float64), both of shape (n, top), best label first, ties in the order of the
    labels as in `rank`. Its metadata hold the names of the labels and, where known, of the features
    as JSON texts under ``labels`` and ``features``. The file appears whole or not at all.

    Parameters
    ----------
    ranker : fitted ranker, or Pipeline of StandardScalers and a ranker
        Linear, boosted (NaN takes the branch of missing values) or with a kernel.
    path : path
    top : int, optional
        How many labels per row; all by default.
    preparation : Preparation, optional
        How rows of a file become features, from a model file; columns of numbers only.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from deltarank import LogisticRanker, export_onnx
    >>> ranker = LogisticRanker().fit([[0.0], [1.0]], [{"low"}, {"high"}])
    >>> path = pathlib.Path(tempfile.mkdtemp(), "ranker.onnx")
    >>> export_onnx(ranker, path)
    >>> import onnxruntime
    >>> session = onnxruntime.InferenceSession(path)
    >>> indices, scores = session.run(None, {"X": [[0.9]]})
    >>> ranker.classes_[indices]
    array([['high', 'low']], dtype='<U4')
    """
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ImportError("ONNX files need onnx: pip install 'deltarank[onnx]'") from error
    check_is_fitted(ranker)
    scalers, ranker = _parts(ranker)
    add_scores = _how_to_score(ranker)
    n_labels = len(ranker.classes_)
    top = n_labels if top is None else check_top(top, n_labels)
    graph = Graph()
    rows = INPUT if preparation is None else _prepare(graph, INPUT, preparation)
    for scaler in scalers:
        rows = _standardise(graph, rows, scaler)
    scores = add_scores(graph, rows, ranker)
    if ranker._form == "binary" and n_labels == 2:
        # Two classes share one score, that of the second.
        scores = graph.add("Concat", graph.add("Neg", scores), scores, axis=1)
    graph.rank(scores, top)
    n_features = (scalers[0] if scalers else ranker).n_features_in_
    about = _about(ranker, scalers, preparation)
    write_whole(Path(path), graph.serialized(n_features, top, about))


def _about(ranker: Any, scalers: list[Any], preparation: Preparation | None) -> dict[str, Any]:
    labels = [
        name if isinstance(name, int | str) else str(name) for name in ranker.classes_.tolist()
    ]
    about: dict[str, Any] = {"labels": labels, "ranker": type(ranker).__name__}
    names = getattr((scalers or [ranker])[0], "feature_names_in_", None)
    if preparation is not None:
        names = preparation.feature_names()
    if names is not None:
        about["features"] = [str(name) for name in names]
    return about


def _parts(ranker: Any) -> tuple[list[StandardScaler], Any]:
    """Return what stands before a ranker, and the ranker itself."""
    scalers = []
    if isinstance(ranker, Pipeline):
        *before, (_, ranker) = ranker.steps
        for name, step in before:
            if step is None or step == "passthrough":
                continue
            if type(step) is not StandardScaler:
                raise ValueError(
                    f"step {name!r} of the pipeline must be a StandardScaler; got "
                    f"{type(step).__name__}: do it before, and export the ranker alone (text in "
                    "particular has no place in a graph that takes numbers)"
                )
            scalers.append(step)
    return scalers, ranker.best_ranker_ if isinstance(ranker, StagedSearchCV) else ranker


def _how_to_score(ranker: Any) -> Callable[[Graph, str, Any], str]:
    for family, add_scores in _SCORES.items():
        if isinstance(ranker, family):
            return add_scores
    raise ValueError(
        f"{type(ranker).__name__} cannot be exported to ONNX; linear, boosted and kernel rankers "
        "can, alone or behind StandardScalers in a Pipeline"
    )


def _prepare(graph: Graph, rows: str, preparation: Preparation) -> str:
    """Do what the commands do to columns of numbers: fill gaps, bring them to one scale."""
    if preparation.encoder is not None:
        fills = []
        for column in preparation.encoder.columns:
            if not isinstance(column, NumberColumn):
                raise ValueError(
                    f"column {column.name!r} holds {column.kind}, and an ONNX graph takes numbers "
                    "only: serve the model by `deltarank serve`, or encode the column before and "
                    "export the ranker alone"
                )
            fills.append(column.fill)
        missing = graph.add("IsNaN", rows)
        rows = graph.add("Where", missing, graph.constant([fills]), rows)
    scaler = preparation.scaler
    if scaler is None:
        return rows
    means, scales = np.zeros(preparation.n_features), np.ones(preparation.n_features)
    means[list(scaler.columns)], scales[list(scaler.columns)] = scaler.means, scaler.scales
    return _scale(graph, rows, means, scales)


def _standardise(graph: Graph, rows: str, scaler: StandardScaler) -> str:
    return _scale(
        graph,
        rows,
        scaler.mean_ if scaler.with_mean else np.zeros(scaler.n_features_in_),
        scaler.scale_ if scaler.with_std else np.ones(scaler.n_features_in_),
    )


def _scale(graph: Graph, rows: str, means: Floats, scales: Floats) -> str:
    shifted = graph.add("Sub", rows, graph.constant(means))
    return graph.add("Div", shifted, graph.constant(scales))


def _linear_scores(graph: Graph, rows: str, ranker: LinearRanker) -> str:
    return graph.affine(rows, ranker.coef_.T, ranker.intercept_)


def _stump_scores(graph: Graph, rows: str, ranker: StumpRanker) -> str:
    """Add up votes: those of right branches, and how left and missing branches differ from them.

    Stumps with the same feature and threshold become one, whatever their labels. Which rows go left
    is a matrix of 0 and 1, one column per such stump, so that all votes are one matrix product.
    """
    features, thresholds = ranker.features_, ranker.thresholds_
    questions = np.stack([features.ravel(), thresholds.ravel()], axis=1).astype(np.float64)
    asked, which = np.unique(questions, axis=0, return_inverse=True)
    fitted = np.isnan(ranker.constants_)
    left, right, missing = np.where(fitted, ranker.votes_, 0.0).transpose(1, 0, 2)
    always = np.where(fitted, 0.0, ranker.constants_) + right.sum(axis=0)
    if_left = _summed_by(which.reshape(features.shape), len(asked), left - right)
    if_missing = _summed_by(features, ranker.n_features_in_, missing - right)
    if ranker._form == "binary" and len(always) == 2:
        # The score of two classes is the difference of the scores of two labels.
        always, if_left, if_missing = (np.diff(part) for part in (always, if_left, if_missing))
    columns = graph.constant(asked[:, 0], np.int64)
    values = graph.add("Gather", rows, columns, axis=1)
    goes_left = graph.add("LessOrEqual", values, graph.constant(asked[:, 1]))
    scores = graph.affine(_as_numbers(graph, goes_left), if_left, always)
    is_missing = _as_numbers(graph, graph.add("IsNaN", rows))
    return graph.add("Add", scores, graph.add("MatMul", is_missing, graph.constant(if_missing)))


def _summed_by(groups: NDArray[Any], n_groups: int, votes: Floats) -> Floats:
    """Add the votes (stumps, m) of each group; groups are (stumps,) or, per label, (stumps, m)."""
    total = np.zeros((n_groups, votes.shape[1]))
    if groups.ndim == 1:
        np.add.at(total, groups, votes)
    else:
        np.add.at(total, (groups, np.arange(votes.shape[1])), votes)
    return total


def _as_numbers(graph: Graph, marks: str) -> str:
    from onnx import TensorProto

    return graph.add("Cast", marks, to=TensorProto.DOUBLE)


def _kernel_scores(graph: Graph, rows: str, ranker: KernelLogisticRanker) -> str:
    landmarks: Any = ranker.landmarks_
    landmarks = landmarks.toarray() if sparse.issparse(landmarks) else np.asarray(landmarks)
    landmarks = landmarks.astype(np.float64)
    columns = graph.constant([1], np.int64)
    squares = graph.add("ReduceSum", graph.add("Mul", rows, rows), columns, keepdims=1)
    products = graph.affine(rows, -2 * landmarks.T, np.square(landmarks).sum(axis=1))
    distances = graph.add("Max", graph.add("Add", products, squares), graph.constant([0.0]))
    kernel = graph.add("Exp", graph.add("Mul", distances, graph.constant([-ranker.gamma_])))
    weights = ranker.whitening_.astype(np.float64) @ ranker.coef_.T.astype(np.float64)
    return graph.affine(kernel, weights, ranker.intercept_)


_SCORES: dict[type[Any], Callable[[Graph, str, Any], str]] = {
    LinearRanker: _linear_scores,
    StumpRanker: _stump_scores,
    BoostedTreeRanker: forest_scores,
    KernelLogisticRanker: _kernel_scores,
}
