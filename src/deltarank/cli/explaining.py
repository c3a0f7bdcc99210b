"""An explanation as rows: a feature, its value, and what it adds."""

from pathlib import Path
from typing import Any

from deltarank.cli.inputs import read_rows
from deltarank.cli.options import Reading
from deltarank.cli.show import show
from deltarank.serving.reasons import reasons
from deltarank.storage.prepared import Model


def explain_row(
    path: Path,
    source: str,
    row: int,
    labels: tuple[str, str] | None,
    top: int,
    reading: Reading,
    seed: int,
) -> None:
    """Print what puts one label above another in a row."""
    model = Model.load(path)
    rows = read_rows(source, model.preparation, model.classes, reading, labelled=False, seed=seed)
    n_rows = rows.X.shape[0]
    if row >= n_rows:
        raise ValueError(f"--row must be below the number of rows, {n_rows}; got {row}")
    x = rows.X[[row]]
    first, second = _labels(model, x, labels)
    lines = reasons(model, x, first, second, top)
    show(lines, f"Row {row}: what puts {first} above {second}")


def _labels(model: Model, x: Any, labels: tuple[str, str] | None) -> tuple[Any, Any]:
    if labels is not None:
        return model.find_label(labels[0]), model.find_label(labels[1])
    _, best, _ = next(model.rankings(x, 2))
    if len(best) < 2:
        raise ValueError("the model has a single label, so no label stands above another")
    return best[0], best[1]
