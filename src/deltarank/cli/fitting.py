"""Read, prepare, fit, keep; and say what was done."""

import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deltarank.cli.fit import describe
from deltarank.cli.inputs import note, read_training
from deltarank.cli.options import Reading
from deltarank.cli.training import Recipe, Settings, chosen, final_ranker, find_recipe, make
from deltarank.core.progress import progress
from deltarank.datasets import Data, Preparation
from deltarank.storage.prepared import Model


class Fitted(NamedTuple):
    """A model, and the seconds its fit took."""

    model: Model
    seconds: float


def fit(source: str, path: Path, name: str, reading: Reading, settings: Settings) -> None:
    """Fit a ranker to data and write the model file."""
    recipe = find_recipe(name, settings)
    _require_writable(path)
    data, first_number = read_training(source, reading, seed=settings.seed)
    preparation = prepare(data, recipe.scale, reading, first_number)
    model, seconds = fit_prepared(data, preparation, name, recipe, settings)
    model.save(path)
    n_rows, n_features = data.X.shape
    note(
        f"fitted {type(model.ranker).__name__} to {n_rows} rows, {n_features} features and "
        f"{data.Y.shape[1]} labels in {seconds:.1f} s; {describe(chosen(model.ranker))}"
    )
    note(f"wrote {path}")


def prepare(data: Data, scale: bool, reading: Reading, first_number: int) -> Preparation:
    """Learn how rows become features."""
    if not data.Y.nnz:
        raise ValueError("no row has a label, so there is nothing to learn from")
    separator = reading.separator or ","
    return Preparation.fit(data, scale=scale, separator=separator, first_number=first_number)


def fit_prepared(
    data: Data,
    preparation: Preparation,
    name: str,
    recipe: Recipe,
    settings: Settings,
) -> Fitted:
    """Fit a ranker; its labels get the names they have in the file."""
    X = preparation.transform(data.X)
    began = time.perf_counter()
    fitting = progress(f"fitting {name}", 1.0)
    with warnings.catch_warnings(record=True) as caught, fitting as done:
        warnings.simplefilter("always")
        done.each = 1.0
        ranker = final_ranker(make(recipe, settings).fit(X, data.Y))
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        note(f"note: {name}: {message}")
    if data.label_names is not None:
        ranker.classes_ = np.array(data.label_names)
    return Fitted(Model(ranker, preparation), time.perf_counter() - began)


def _require_writable(path: Path) -> None:
    """Find out before the work, not after it, that the model cannot be kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory")
    except OSError as error:
        raise ValueError(f"--model must name a file to write; {path}: {error.strerror}") from None


def take(data: Data, rows: Any) -> Data:
    """Return some rows of data."""
    return Data(
        data.X[rows], data.Y[rows], data.feature_names, data.label_names, data.encoder,
        data.label_column,
    )  # fmt: skip
