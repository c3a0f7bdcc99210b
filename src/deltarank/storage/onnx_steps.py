"""Transformers of a pipeline as nodes of an ONNX graph.

Rows on their way are one matrix, or a list of columns (n, 1) where some of them are strings.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest, SelectPercentile, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from deltarank.storage.onnx_graph import Graph

Rows = str | list[str]


def text_columns(step: Any, columns: Sequence[int]) -> set[int]:
    """Return which of the columns that a transformer takes must be strings."""
    if isinstance(step, OneHotEncoder | OrdinalEncoder):
        return {j for j, c in zip(columns, step.categories_, strict=True) if c.dtype.kind in "OU"}
    if isinstance(step, Pipeline):
        return text_columns(step.steps[0][1], columns)
    if isinstance(step, ColumnTransformer):
        parts = ((it, _positions(step, name)) for name, it, _ in step.transformers_)
        return {columns[j] for it, taken in parts for j in text_columns(it, taken)}
    if isinstance(step, FeatureUnion):
        return {j for _, it in step.transformer_list for j in text_columns(it, columns)}
    return set()


def add_step(graph: Graph, rows: Rows, name: str, step: Any) -> Rows:
    """Add what a fitted transformer does to rows; return the rows it gives."""
    if step is None or step == "passthrough":
        return rows
    for family, add in _STEPS.items():
        if type(step) is family:
            return add(graph, rows, step)
    known = ", ".join(family.__name__ for family in _STEPS)
    raise ValueError(
        f"step {name!r} of the pipeline, {type(step).__name__}, cannot be exported to ONNX; those "
        f"that can are {known}: do it before, and export the rest (text in particular has no place "
        "in a graph that takes numbers and categories)"
    )


def _positions(step: ColumnTransformer, name: str) -> list[int]:
    return list(step._transformer_to_input_indices[name])


def _select(graph: Graph, rows: Rows, columns: Any) -> Rows:
    if isinstance(rows, list):
        return [rows[j] for j in columns]
    return graph.add("Gather", rows, graph.constant(columns, np.int64), axis=1)


def as_matrix(graph: Graph, rows: Rows) -> str:
    """Return rows as one matrix."""
    if isinstance(rows, str):
        return rows
    return rows[0] if len(rows) == 1 else graph.add("Concat", *rows, axis=1)


def scale(graph: Graph, rows: str, means: Any, scales: Any) -> str:
    """Return rows less means, divided by scales; None for either stands for nothing to do."""
    if means is not None:
        rows = graph.add("Sub", rows, graph.constant(means))
    return rows if scales is None else graph.add("Div", rows, graph.constant(scales))


def fill(graph: Graph, rows: str, values: Any) -> str:
    """Return rows with a value for each missing number, by column."""
    missing = graph.add("IsNaN", rows)
    return graph.add("Where", missing, graph.constant([values]), rows)


def _standard(graph: Graph, rows: Rows, step: StandardScaler) -> str:
    means, scales = step.mean_ if step.with_mean else None, step.scale_ if step.with_std else None
    return scale(graph, as_matrix(graph, rows), means, scales)


def _robust(graph: Graph, rows: Rows, step: RobustScaler) -> str:
    centers = step.center_ if step.with_centering else None
    return scale(graph, as_matrix(graph, rows), centers, step.scale_ if step.with_scaling else None)


def _max_abs(graph: Graph, rows: Rows, step: MaxAbsScaler) -> str:
    rows = scale(graph, as_matrix(graph, rows), None, step.scale_)
    return _clipped(graph, rows, (-1, 1)) if getattr(step, "clip", False) else rows


def _min_max(graph: Graph, rows: Rows, step: MinMaxScaler) -> str:
    rows = graph.add("Mul", as_matrix(graph, rows), graph.constant(step.scale_))
    rows = graph.add("Add", rows, graph.constant(step.min_))
    return _clipped(graph, rows, step.feature_range) if step.clip else rows


def _clipped(graph: Graph, rows: str, ends: tuple[float, float]) -> str:
    low, high = (graph.constant(np.array(end)) for end in ends)
    return graph.add("Clip", rows, low, high)


def _normalize(graph: Graph, rows: Rows, step: Normalizer) -> str:
    rows = as_matrix(graph, rows)
    if step.norm == "max":
        norms = graph.add("ReduceMax", graph.add("Abs", rows), axes=[1], keepdims=1)
    else:
        # ReduceL1 and ReduceL2 of doubles are not in every release of onnxruntime.
        sizes = graph.add("Abs", rows) if step.norm == "l1" else graph.add("Mul", rows, rows)
        norms = graph.add("ReduceSum", sizes, graph.constant([1], np.int64), keepdims=1)
        norms = norms if step.norm == "l1" else graph.add("Sqrt", norms)
    nothing = graph.add("Equal", norms, graph.constant([0.0]))
    return graph.add("Div", rows, graph.add("Where", nothing, graph.constant([1.0]), norms))


def _impute(graph: Graph, rows: Rows, step: SimpleImputer) -> str:
    values = np.asarray(step.statistics_)
    is_number = all(isinstance(value, int | float | np.number) for value in values.tolist())
    if not is_number or np.isnan(values.astype(float)).any() or not _is_nan(step.missing_values):
        raise ValueError(
            "a SimpleImputer in an ONNX graph must fill NaN by numbers, in every column; got "
            f"missing_values={step.missing_values!r} and {values.tolist()!r:.60}"
        )
    rows = as_matrix(graph, rows)
    filled = fill(graph, rows, values.astype(float))
    if step.indicator_ is None:
        return filled
    missing = graph.as_numbers(graph.add("IsNaN", rows))
    indicators = as_matrix(graph, _select(graph, missing, step.indicator_.features_))
    return graph.add("Concat", filled, indicators, axis=1)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and np.isnan(value)


def _one_hot(graph: Graph, rows: Rows, step: OneHotEncoder) -> str:
    if step.handle_unknown not in ("error", "ignore"):
        raise ValueError(
            "a OneHotEncoder in an ONNX graph must have handle_unknown='error' or 'ignore'; got "
            f"{step.handle_unknown!r}"
        )
    ends = np.cumsum(step._n_features_outs)
    parts = []
    for j, categories in enumerate(step.categories_):
        column = as_matrix(graph, _select(graph, rows, [j]))
        marks = _marks(graph, column, categories, step.handle_unknown == "ignore")
        columns = _encoded(step, j)[:, ends[j] - step._n_features_outs[j] : ends[j]]
        parts.append(graph.add("MatMul", marks, graph.constant(columns)))
    return as_matrix(graph, parts)


def _ordinal(graph: Graph, rows: Rows, step: OrdinalEncoder) -> str:
    """Give each category its number; one that is unknown and should not be becomes NaN."""
    is_error = step.handle_unknown == "error"
    unknown = graph.constant([np.nan if is_error else step.unknown_value])
    parts = []
    for j, categories in enumerate(step.categories_):
        column = as_matrix(graph, _select(graph, rows, [j]))
        marks = _marks(graph, column, categories, unknown_is_none=not is_error)
        numbers = graph.add("MatMul", marks, graph.constant(_encoded(step, j)[:, [j]]))
        known = graph.add("ReduceMax", marks, axes=[1], keepdims=1)
        is_known = graph.add("Greater", known, graph.constant([0.0]))
        parts.append(graph.add("Where", is_known, numbers, unknown))
    return as_matrix(graph, parts)


def _encoded(step: Any, j: int) -> Any:
    """Return what an encoder makes of each category of a column, beside the first of others.

    That says which are dropped, and which rare ones are put together.
    """
    step = copy(step)  # without what asks for data frames, or gives them
    for name in ("feature_names_in_", "_sklearn_output_config"):
        vars(step).pop(name, None)
    table = np.empty((len(step.categories_[j]), len(step.categories_)), dtype=object)
    table[:] = [others[0] for others in step.categories_]
    table[:, j] = step.categories_[j]
    encoded = step.transform(table)
    return encoded if isinstance(encoded, np.ndarray) else encoded.toarray()


def _marks(graph: Graph, column: str, categories: Any, unknown_is_none: bool) -> str:
    """Return a matrix of 0 and 1, one column per category."""
    if any(value is None or value != value for value in categories.tolist()):
        raise ValueError("missing values as a category cannot be exported to ONNX: fill them")
    if categories.dtype.kind in "OU":
        names = [str(value) for value in categories]
        options = {"domain": "ai.onnx.ml", "cats_strings": names, "zeros": int(unknown_is_none)}
        marks = graph.add("OneHotEncoder", column, **options)
        return graph.as_numbers(graph.add("Squeeze", marks, graph.constant([1], np.int64)))
    return graph.as_numbers(graph.add("Equal", column, graph.constant([categories])))


def _project(graph: Graph, rows: Rows, step: Any) -> str:
    rows, components = as_matrix(graph, rows), step.components_.T
    if isinstance(step, PCA):
        rows = graph.add("Sub", rows, graph.constant(step.mean_))
        if step.whiten:
            components = components / np.sqrt(step.explained_variance_)
    return graph.add("MatMul", rows, graph.constant(components))


def _keep_some(graph: Graph, rows: Rows, step: Any) -> str:
    return as_matrix(graph, _select(graph, rows, step.get_support(indices=True)))


def _pass(graph: Graph, rows: Rows, step: FunctionTransformer) -> Rows:
    if step.func is not None:
        raise ValueError("a FunctionTransformer with a function cannot be exported to ONNX")
    return rows


def _columns(graph: Graph, rows: Rows, step: ColumnTransformer) -> str:
    if step.transformer_weights:
        raise ValueError("a ColumnTransformer with weights cannot be exported to ONNX")
    parts = [
        as_matrix(graph, add_step(graph, _select(graph, rows, _positions(step, name)), name, it))
        for name, it, _ in step.transformers_
        if not (isinstance(it, str) and it == "drop") and _positions(step, name)
    ]
    return as_matrix(graph, parts)


def _union(graph: Graph, rows: Rows, step: FeatureUnion) -> str:
    if step.transformer_weights:
        raise ValueError("a FeatureUnion with weights cannot be exported to ONNX")
    pairs = [(name, it) for name, it in step.transformer_list if it != "drop"]
    return as_matrix(graph, [as_matrix(graph, add_step(graph, rows, *pair)) for pair in pairs])


def _steps(graph: Graph, rows: Rows, pipeline: Pipeline) -> Rows:
    for name, step in pipeline.steps:
        rows = add_step(graph, rows, name, step)
    return rows


_STEPS: dict[type[Any], Callable[[Graph, Rows, Any], Rows]] = {
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
    Normalizer: _normalize,
    SimpleImputer: _impute,
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _ordinal,
    PCA: _project,
    TruncatedSVD: _project,
    SelectKBest: _keep_some,
    SelectPercentile: _keep_some,
    VarianceThreshold: _keep_some,
    ColumnTransformer: _columns,
    FeatureUnion: _union,
    FunctionTransformer: _pass,
    Pipeline: _steps,
}
