"""Models of ours in MLflow: saved, logged, loaded by ``mlflow.pyfunc``, measured by rank metrics.

Needs the extra: ``pip install 'deltarank[mlflow]'``. What is stored is a model file of ours, which
holds no code.
"""

import re
import sys
import tempfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from deltarank import __version__
from deltarank.core.choices import choose
from deltarank.core.extras import install
from deltarank.metrics import StreamingMetric
from deltarank.metrics.table import METRICS
from deltarank.storage.answering import Answering
from deltarank.storage.files import as_model_file

try:
    import mlflow
    import pandas as pd
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema, TensorSpec
    from mlflow.types.schema import AnyType, Array
except ImportError as error:
    raise ImportError(f"models in MLflow need mlflow and pandas: {install('mlflow')}") from error

FLAVOR_NAME = "deltarank"
FILE = "model.delta"
TOP = 5
METRICS_BY_DEFAULT = ("rank_loss", "average_precision", "ndcg_at_5", "precision_at_5")


def save_model(
    model: Any,
    path: str | PathLike[str],
    *,
    mlflow_model: Model | None = None,
    signature: ModelSignature | None = None,
    input_example: Any = None,
    pip_requirements: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Save a model as an MLflow model, which ``mlflow.pyfunc`` and ``load_model`` read.

    Parameters
    ----------
    model : fitted ranker, Pipeline that ends in one, or path of a model file
        A model file from ``deltarank fit`` takes the columns of its table.
    path : path
        The folder to make.
    mlflow_model : mlflow.models.Model, optional
        What `log_model` adds to.
    signature : ModelSignature, optional
        By default the columns that the model was fitted to, lists of labels and scores, and the
        parameter ``top``; for a pipeline it is inferred from `input_example`.
    input_example, pip_requirements, metadata : optional
        As elsewhere in MLflow; by default this release of deltarank is required.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = as_model_file(model, Path(folder, FILE))
        answering = Answering.load(file)
        mlflow_model = Model() if mlflow_model is None else mlflow_model
        mlflow_model.add_flavor(FLAVOR_NAME, deltarank_version=__version__, data=f"data/{FILE}")
        if signature is None:
            signature = _signature(answering, input_example)
        mlflow.pyfunc.save_model(
            path,
            loader_module=__name__,
            data_path=str(file),
            mlflow_model=mlflow_model,
            signature=signature,
            input_example=input_example,
            pip_requirements=pip_requirements or [f"deltarank=={__version__}"],
            metadata=metadata,
        )


def log_model(model: Any, name: str = "model", **options: Any) -> Any:
    """Log a model to the active run; for `options` see `save_model` and ``Model.log`` of MLflow."""
    return Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        model=model,
        **options,
    )


def load_model(model_uri: str) -> Any:
    """Load the ranker, or the pipeline, of an MLflow model; ``mlflow.pyfunc`` takes columns."""
    from deltarank.storage import load

    folder = Path(mlflow.artifacts.download_artifacts(model_uri))
    flavors = Model.load(str(folder)).flavors
    if FLAVOR_NAME not in flavors:
        raise ValueError(f"{model_uri} is no model of deltarank; it has {', '.join(flavors)}")
    return load(folder / "data" / FILE)


def _load_pyfunc(path: str) -> "RankingModel":
    return RankingModel(Answering.load(Path(path)))


class RankingModel:
    """What ``mlflow.pyfunc.load_model`` puts behind ``predict``: rows in, ranked labels out."""

    def __init__(self, answering: Answering) -> None:
        self.answering = answering

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """Return per row its labels, best first, and their scores; ``params={"top": 3}`` limits."""
        top = int((params or {}).get("top", TOP))
        if top < 1:
            raise ValueError(f"top must be a positive integer; got {top}")
        labels, scores = self.answering.rank(model_input, top)
        index = getattr(model_input, "index", None)
        columns = {"labels": list(labels.tolist()), "scores": list(scores.tolist())}
        return pd.DataFrame(columns, index=index)


def rank_metrics(classes: Sequence[Any], names: Sequence[str] = METRICS_BY_DEFAULT) -> list[Any]:
    """Return metrics for ``mlflow.models.evaluate(..., extra_metrics=...)``.

    The columns of targets and of predictions hold a list of labels per row. Labels that are not
    predicted count as tied in the last place, so let the model rank all labels
    (``params={"top": len(classes)}``) where a metric looks at all, as the rank loss does.

    Parameters
    ----------
    classes : sequence
        All labels of the model: ``ranker.classes_``.
    names : sequence of str
        Of `deltarank.metrics`, with ``_at_5`` for a number of labels.
    """
    return [_rank_metric([*classes], name) for name in names]


def _rank_metric(classes: list[Any], name: str) -> Any:
    at = re.fullmatch(r"(.+_at_)([1-9][0-9]*)", name)
    metric, options = (name, {}) if at is None else (f"{at[1]}k", {"k": int(at[2])})
    choose(METRICS, metric, "metric")
    columns = {label: column for column, label in enumerate(classes)}

    def measure(predictions: Any, targets: Any, metrics: Any = None) -> Any:
        stream = StreamingMetric(metric, **options)
        relevant = [[columns[it] for it in row if it in columns] for row in targets]
        stream.update(relevant, _scores(predictions, columns))
        value = stream.result()
        return mlflow.metrics.MetricValue(aggregate_results={"value": value})

    greater = metric not in ("rank_loss", "coverage", "one_error")
    return mlflow.models.make_metric(eval_fn=measure, greater_is_better=greater, name=name)


def _scores(predictions: Any, columns: dict[Any, int]) -> Any:
    """Return scores in the order of the predicted labels; those not listed are tied below."""
    rankings = predictions["labels"] if isinstance(predictions, pd.DataFrame) else predictions
    scores = np.full((len(rankings), len(columns)), -1.0)
    for row, labels in enumerate(rankings):
        for place, label in enumerate(labels):
            scores[row, columns[label]] = len(columns) - place
    return scores


def _signature(answering: Answering, example: Any) -> ModelSignature | None:
    names = Array(_kind(answering.classes))
    outputs = Schema([ColSpec(names, "labels"), ColSpec(Array(DataType.double), "scores")])
    params = ParamSchema([ParamSpec("top", DataType.long, TOP)])
    columns = answering.columns
    if isinstance(columns, int):
        inputs = Schema([TensorSpec(np.dtype(np.float64), (-1, columns))])
    elif columns is not None:
        # MLflow would refuse whole numbers where it was told of others: our own checks suffice.
        kinds = {"text": DataType.string}
        inputs = Schema([ColSpec(kinds.get(it, AnyType()), name) for name, it in columns.items()])
    elif example is not None:
        inputs = mlflow.models.infer_signature(example).inputs
    else:
        return None
    return ModelSignature(inputs, outputs, params)


def _kind(classes: Any) -> DataType:
    kinds = {"i": DataType.long, "u": DataType.long, "b": DataType.boolean, "f": DataType.double}
    return kinds.get(np.asarray(classes).dtype.kind, DataType.string)
