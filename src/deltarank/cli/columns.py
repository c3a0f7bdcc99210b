"""How the columns of a file were read, shown to the user before anything is learned from them."""

from itertools import groupby
from typing import Any

from deltarank.cli.inputs import note
from deltarank.datasets import Data

# A fit shows columns in at most this many lines; --dry-run shows each.
MOST_TOLD = 20
# What a kind of column is called where its own name says too little.
SAID_AS = {"code": "category, split into sets"}
# This many columns alike, side by side, share one line.
FEWEST_ALIKE = 5


def column_rows(data: Data, first_number: int) -> list[dict[str, Any]]:
    """Return one row per column: its name, how it was read, and how many features or labels."""
    if data.encoder is not None:
        columns = [
            (column.name, SAID_AS.get(column.kind, column.kind), len(column.feature_names()))
            for column in data.encoder.columns
        ]
    elif data.feature_names is not None:
        columns = [(name, "number", 1) for name in data.feature_names]
    else:
        last = first_number + data.X.shape[1] - 1
        columns = [(f"{first_number} to {last}", "numbers", data.X.shape[1])]
    n_labels = data.Y.shape[1]
    if data.label_column is not None:
        columns.append((data.label_column, "label list", n_labels))
    elif data.label_names is not None:
        columns += [(name, "label", 1) for name in data.label_names]
    else:
        columns.append((f"0 to {n_labels - 1}", "labels", n_labels))
    return [{"column": name, "read as": kind, "count": size} for name, kind, size in columns]


def note_columns(rows: list[dict[str, Any]]) -> None:
    """Tell how columns were read: a line each, and one for many alike side by side."""
    runs = [list(run) for _, run in groupby(rows, lambda row: (row["read as"], row["count"]))]
    lines = [line for run in runs for line in _told(run)]
    for line in lines[:MOST_TOLD]:
        note(line)
    if len(lines) > MOST_TOLD:
        note(f"and more; --dry-run lists all {len(rows)} columns")


def _told(run: list[dict[str, Any]]) -> list[str]:
    first, last = run[0], run[-1]
    if len(run) >= FEWEST_ALIKE:
        what = first["read as"] + _size(first) + (" each" if first["count"] > 1 else "")
        return [f"{len(run)} columns, {first['column']!r} to {last['column']!r}: {what}"]
    return [f"column {row['column']!r}: {row['read as']}{_size(row)}" for row in run]


def _size(row: dict[str, Any]) -> str:
    what = "labels" if row["read as"].startswith("label") else "features"
    return "" if row["count"] == 1 else f", {row['count']} {what}"
