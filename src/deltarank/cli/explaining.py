"""An explanation as rows: a feature, its value, and what it adds."""

from pathlib import Path
from typing import Any

from deltarank.cli.inputs import read_rows
from deltarank.cli.model import Model
from deltarank.cli.options import Reading
from deltarank.cli.ranking import rankings
from deltarank.cli.show import show
from deltarank.explanations import explain


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
    names = model.preparation.feature_names()
    found = explain(model.ranker, x, first, second, feature_names=range(len(names)))
    lines = [_line(model, names, x, j, adds) for j, adds in found.largest(top)]
    rest = found.contributions.sum() - sum(line["adds"] for line in lines)
    n_others = len(found.largest()) - len(lines)
    if n_others:
        lines.append({"feature": f"({n_others} other features)", "value": "", "adds": float(rest)})
    lines.append({"feature": "(intercept)", "value": "", "adds": found.intercept})
    lines.append({"feature": "(difference)", "value": "", "adds": found.difference})
    show(lines, f"Row {row}: what puts {first} above {second}")


def _labels(model: Model, x: Any, labels: tuple[str, str] | None) -> tuple[Any, Any]:
    if labels is not None:
        return model.find_label(labels[0]), model.find_label(labels[1])
    _, best, _ = next(rankings(model, x, 2))
    if len(best) < 2:
        raise ValueError("the model has a single label, so no label stands above another")
    return best[0], best[1]


def _line(model: Model, names: list[str], x: Any, feature: int, adds: float) -> dict[str, Any]:
    value = float(x[0, feature])
    scaler = model.preparation.scaler
    if scaler is not None and feature in scaler.columns:
        at = scaler.columns.index(feature)
        value = value * scaler.scales[at] + scaler.means[at]
    return {"feature": names[feature], "value": value, "adds": adds}
