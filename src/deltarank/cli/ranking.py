"""Rankings as text: a table for people, JSON lines or CSV for programs; some rows at a time."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from deltarank.cli.show import terminal
from deltarank.paper.report.tables import cell
from deltarank.storage.prepared import Model, Ranking

ROWS_PER_TABLE = 1000


def write_rankings(model: Model, blocks: Iterable[Any], top: int, kind: str, out: TextIO) -> None:
    """Write the best labels of each row as they come."""
    WRITERS[kind](all_rankings(model, blocks, top), out)


def all_rankings(model: Model, blocks: Iterable[Any], top: int) -> Iterator[Ranking]:
    """Yield the best labels of each row of each block; a block is forgotten before the next."""
    n_before = 0
    for X in blocks:
        for row, labels, scores in model.rankings(X, top):
            yield n_before + row, labels, scores
        n_before += X.shape[0]
        del X


def _write_json_lines(found: Iterator[Ranking], out: TextIO) -> None:
    for row, labels, scores in found:
        line = {"row": row, "labels": labels, "scores": [round(score, 6) for score in scores]}
        out.write(json.dumps(line, ensure_ascii=False) + "\n")


def _write_csv(found: Iterator[Ranking], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    for row, labels, scores in found:
        if row == 0:  # not before it is known that there are rows
            writer.writerow(["row", "place", "label", "score"])
        for place, (label, score) in enumerate(zip(labels, scores, strict=True), start=1):
            writer.writerow([row, place, label, round(score, 6)])


def _write_table(found: Iterator[Ranking], out: TextIO) -> None:
    from rich.table import Table

    console = terminal()
    console.file = out
    table = Table()
    for ranking in found:
        row, labels, scores = ranking
        if not table.columns:
            table.add_column("row", justify="right")
            for place in range(1, len(labels) + 1):
                table.add_column(str(place))
        shown = [f"{label} {cell(round(s, 2))}" for label, s in zip(labels, scores, strict=True)]
        table.add_row(str(row), *shown)
        if table.row_count == ROWS_PER_TABLE:
            console.print(table)
            table = Table()
    if table.row_count:
        console.print(table)


WRITERS: dict[str, Callable[[Iterator[Ranking], TextIO], None]] = {
    "table": _write_table,
    "jsonl": _write_json_lines,
    "csv": _write_csv,
}
