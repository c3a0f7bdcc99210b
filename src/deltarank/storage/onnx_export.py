"""Rankers as ONNX graphs: rows in, labels in rank order and their scores out."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from deltarank.base.scores import check_top
from deltarank.boosting.stump_ranker import StumpRanker
from deltarank.core.extras import install
from deltarank.core.files import write_whole
from deltarank.datasets import Preparation
from deltarank.datasets.encoder import NumberColumn
from deltarank.gradient_trees.boosted_trees import BoostedTreeRanker
from deltarank.linear.kernel_logistic import KernelLogisticRanker
from deltarank.linear.ranker import LinearRanker
from deltarank.storage.onnx_calibration import add_chances
from deltarank.storage.onnx_graph import INPUT, Graph, not_above
from deltarank.storage.onnx_steps import Rows, add_step, as_matrix, fill, scale, text_columns
from deltarank.storage.onnx_trees import forest_scores
from deltarank.wrappers.calibrated import CalibratedRanker
from deltarank.wrappers.calibration import Calibration
from deltarank.wrappers.conformal import ConformalRanker
from deltarank.wrappers.pipeline_ranker import PipelineRanker
from deltarank.wrappers.staged import StagedSearchCV

Floats = NDArray[np.float64]


def export_onnx(
    ranker: Any,
    path: str | PathLike[str],
    top: int | None = None,
    *,
    double: bool = False,
    preparation: Preparation | None = None,
) -> None:
    """Write a fitted ranker as an ONNX file, for any runtime in any language.

    The graph takes ``X``, dense rows of float32 of shape (n, d), and gives ``label_indices``
    (int64) and ``scores`` (float32), both of shape (n, top), best label first, ties in the order of
    the labels as in `rank`; of a `CalibratedRanker` also their ``probabilities``. A pipeline that
    takes categories as strings has one input of shape (n, 1) per column, by its name, in place of
    X. Metadata hold the names of the labels and, where known, of the features as JSON texts under
    ``labels`` and ``features``. The file appears whole or not at all.

    Parameters
    ----------
    ranker : fitted ranker, or Pipeline that ends in one
        Linear, boosted (NaN takes the branch of missing values) or with a kernel, also calibrated;
        behind scalers, imputers, one-hot encoders, PCA and others: see ``docs/deploy.md``.
    path : path
    top : int, optional
        How many labels per row; all by default.
    double : bool
        Take, compute and give float64 in place of float32.
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
        raise ImportError(f"ONNX files need onnx: {install('onnx')}") from error
    check_is_fitted(ranker)
    steps, ranker, calibration = _parts(ranker)
    add_scores = _how_to_score(ranker)
    n_labels = len(ranker.classes_)
    top = n_labels if top is None else check_top(top, n_labels)
    graph = Graph(np.float64 if double else np.float32)
    features = ranker if not steps else steps[0][1]
    names = _names(features, preparation)
    n_features = _n_features(features)
    rows = _add_inputs(graph, steps, n_features, names)
    if preparation is not None:
        rows = _prepare(graph, as_matrix(graph, rows), preparation)
    for name, step in steps:
        rows = add_step(graph, rows, name, step)
    scores = add_scores(graph, as_matrix(graph, rows), ranker)
    if ranker._form == "binary" and n_labels == 2:
        # Two classes share one score, that of the second.
        scores = graph.add("Concat", graph.add("Neg", scores), scores, axis=1)
    graph.rank(
        scores, top, None if calibration is None else add_chances(graph, scores, calibration)
    )
    labels = [it if isinstance(it, int | str) else str(it) for it in ranker.classes_.tolist()]
    about: dict[str, Any] = {"labels": labels, "ranker": type(ranker).__name__}
    if names is not None:
        about["features"] = names
    write_whole(Path(path), graph.serialized(about))


def _parts(ranker: Any) -> tuple[list[tuple[str, Any]], Any, Calibration | None]:
    """Return what stands before a ranker, the ranker itself, and how its scores are calibrated."""
    steps: list[tuple[str, Any]] = []
    calibration = None
    while isinstance(ranker, tuple(_ROUND)):
        if isinstance(ranker, Pipeline):
            *before, (_, ranker) = ranker.steps
            steps += [(name, it) for name, it in before if it is not None and it != "passthrough"]
            continue
        if isinstance(ranker, CalibratedRanker):
            if ranker.rank_by_probability:
                raise ValueError("rank_by_probability=True cannot be exported to ONNX")
            calibration = getattr(ranker, "_calibration", None)
        ranker = getattr(ranker, _ROUND[type(ranker)])
    return steps, ranker, calibration


def _names(first: Any, preparation: Preparation | None) -> list[str] | None:
    names = getattr(first, "feature_names_in_", None)
    if preparation is not None:
        names = preparation.feature_names()
    return None if names is None else [str(name) for name in names]


def _n_features(first: Any) -> int:
    if not hasattr(first, "n_features_in_"):
        raise ValueError(
            f"{type(first).__name__} cannot be exported to ONNX: text has no place in a graph that "
            "takes numbers and categories"
        )
    return int(first.n_features_in_)


def _add_inputs(graph: Graph, steps: Any, n_features: int, names: list[str] | None) -> Rows:
    """Add one matrix, or, where some columns are strings, one input per column."""
    text = text_columns(steps[0][1], range(n_features)) if steps else set()
    if not text:
        return graph.input(INPUT, n_features)
    names = names or [f"x{j}" for j in range(n_features)]
    return [graph.input(name, 1, text=j in text) for j, name in enumerate(names)]


def _how_to_score(ranker: Any) -> Callable[[Graph, str, Any], str]:
    for family, add_scores in _SCORES.items():
        if isinstance(ranker, family):
            return add_scores
    raise ValueError(
        f"{type(ranker).__name__} cannot be exported to ONNX; linear, boosted and kernel rankers "
        "can, alone or behind transformers in a Pipeline"
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
        rows = fill(graph, rows, fills)
    scaler = preparation.scaler
    if scaler is None:
        return rows
    means, scales = np.zeros(preparation.n_features), np.ones(preparation.n_features)
    means[list(scaler.columns)], scales[list(scaler.columns)] = scaler.means, scaler.scales
    return scale(graph, rows, means, scales)


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
    goes_left = graph.add(
        "LessOrEqual", values, graph.constant(not_above(asked[:, 1], graph.dtype))
    )
    scores = graph.affine(graph.as_numbers(goes_left), if_left, always)
    is_missing = graph.as_numbers(graph.add("IsNaN", rows))
    return graph.add("Add", scores, graph.add("MatMul", is_missing, graph.constant(if_missing)))


def _summed_by(groups: NDArray[Any], n_groups: int, votes: Floats) -> Floats:
    """Add the votes (stumps, m) of each group; groups are (stumps,) or, per label, (stumps, m)."""
    total = np.zeros((n_groups, votes.shape[1]))
    if groups.ndim == 1:
        np.add.at(total, groups, votes)
    else:
        np.add.at(total, (groups, np.arange(votes.shape[1])), votes)
    return total


def _kernel_scores(graph: Graph, rows: str, ranker: KernelLogisticRanker) -> str:
    landmarks: Any = ranker.landmarks_
    landmarks = landmarks.toarray() if sparse.issparse(landmarks) else np.asarray(landmarks)
    landmarks = landmarks.astype(np.float64)
    # Differences of squares lose the digits of float32.
    exact = np.float64
    rows = graph.cast(rows, exact)
    columns = graph.constant([1], np.int64)
    squares = graph.add("ReduceSum", graph.add("Mul", rows, rows), columns, keepdims=1)
    products = graph.affine(rows, -2 * landmarks.T, np.square(landmarks).sum(axis=1), exact)
    least = graph.constant([0.0], exact)
    distances = graph.add("Max", graph.add("Add", products, squares), least)
    exponents = graph.add("Mul", distances, graph.constant([-ranker.gamma_], exact))
    weights = ranker.whitening_.astype(np.float64) @ ranker.coef_.T.astype(np.float64)
    scores = graph.affine(graph.add("Exp", exponents), weights, ranker.intercept_, exact)
    return graph.cast(scores, graph.dtype)


# Rankers and pipelines round others, and where they keep them.
_ROUND: Any = {
    Pipeline: "steps",
    StagedSearchCV: "best_ranker_",
    CalibratedRanker: "ranker_",
    ConformalRanker: "ranker_",
    PipelineRanker: "pipeline_",
}
_SCORES: dict[type[Any], Callable[[Graph, str, Any], str]] = {
    LinearRanker: _linear_scores,
    StumpRanker: _stump_scores,
    BoostedTreeRanker: forest_scores,
    KernelLogisticRanker: _kernel_scores,
}
