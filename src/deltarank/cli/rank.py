"""The command ``rank``: the labels of each row, best first; some rows at a time."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, cast

import typer

from deltarank.cli import options
from deltarank.cli.bars import no_bars
from deltarank.core.text import visible

if TYPE_CHECKING:
    from deltarank.storage.prepared import Model, Ranking

ROWS_PER_TABLE = 1000
# What a formula of a spreadsheet begins with.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def rank(
    model: options.ModelFile,
    data: options.NewData,
    top: Annotated[int, typer.Option(min=1, help="How many labels per row, at most.")] = 5,
    output: Annotated[
        Literal["table", "jsonl", "csv", "csv-safe"] | None,
        typer.Option(
            "--format",
            help="By default a table on a terminal, JSON lines in a pipe; csv-safe is for "
            "spreadsheets: no label is a formula.",
            show_default=False,
        ),
    ] = None,
    source_format: options.Format = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
) -> None:
    """Rank the labels of each row of a file, most likely relevant first.

    Labels in the file are ignored, and so are words and categories that the model has not seen.
    Rows are numbered from 0. Scores order the labels within a row.

    Rows are read, ranked and printed some at a time, so a file may be larger than memory. If a row
    cannot be read, rows before it may have been printed; the exit status is then 1.

    \b
    Examples:
      deltarank rank recipes.delta new.csv
      deltarank rank recipes.delta new.csv --top 3 --format csv > ranked.csv
      cat new.jsonl | deltarank rank recipes.delta - | jq .labels
    """  # fmt: skip
    from deltarank.cli.inputs import read_blocks
    from deltarank.storage.prepared import Model

    ranker = Model.load(model)
    reading = options.Reading(source_format)
    blocks = read_blocks(data, ranker.preparation, reading, seed=seed)
    kind = output or ("table" if sys.stdout.isatty() else "jsonl")
    # Rankings that scroll past on the same terminal already show the progress.
    with no_bars() if sys.stdout.isatty() else nullcontext():
        WRITERS[kind](_rankings(ranker, blocks, top), _output())


class _Visible:
    """Writes to a terminal, which labels must not command."""

    def write(self, text: str) -> None:
        sys.stdout.write(visible(text))


def _output() -> TextIO:
    return cast(TextIO, _Visible()) if sys.stdout.isatty() else sys.stdout


def _rankings(model: "Model", blocks: Iterable[Any], top: int) -> "Iterator[Ranking]":
    """Yield the best labels of each row; a block is freed before the next is read."""
    from deltarank.core.scores import RowError

    n_before = 0
    try:
        for X in blocks:
            for row, labels, scores in model.rankings(X, top):
                yield n_before + row, labels, scores
            n_before += X.shape[0]
            del X
    except RowError as error:
        raise RowError(n_before + error.row, error.problem) from None


def _write_json_lines(rankings: "Iterator[Ranking]", out: TextIO) -> None:
    for row, labels, scores in rankings:
        line = {"row": row, "labels": labels, "scores": [round(score, 6) for score in scores]}
        out.write(json.dumps(line, ensure_ascii=False) + "\n")


def _write_csv(
    rankings: "Iterator[Ranking]", out: TextIO, written: Callable[[Any], Any] = lambda label: label
) -> None:
    writer = csv.writer(out, lineterminator="\n")
    for row, labels, scores in rankings:
        if row == 0:  # only once there is a row to write
            writer.writerow(["row", "place", "label", "score"])
        for place, (label, score) in enumerate(zip(labels, scores, strict=True), start=1):
            writer.writerow([row, place, written(label), round(score, 6)])


def _write_safe_csv(rankings: "Iterator[Ranking]", out: TextIO) -> None:
    """Write CSV in which labels that a spreadsheet would run as formulas begin with a quote."""

    def harmless(label: Any) -> Any:
        return f"'{label}" if isinstance(label, str) and label.startswith(_FORMULA) else label

    _write_csv(rankings, out, harmless)


def _write_table(rankings: "Iterator[Ranking]", out: TextIO) -> None:
    from rich.table import Table

    from deltarank.cli.show import terminal
    from deltarank.paper.report.tables import cell

    console = terminal()  # whose own commands are meant for it; cells are made visible one by one
    table = Table()
    for ranking in rankings:
        row, labels, scores = ranking
        if not table.columns:
            table.add_column("row", justify="right")
            for place in range(1, len(labels) + 1):
                table.add_column(str(place))
        pairs = zip(labels, scores, strict=True)
        shown = [f"{cell(str(label))} {cell(round(s, 2))}" for label, s in pairs]
        table.add_row(str(row), *shown)
        if table.row_count == ROWS_PER_TABLE:
            console.print(table)
            table = Table()
    if table.row_count:
        console.print(table)


WRITERS: dict[str, Callable[["Iterator[Ranking]", TextIO], None]] = {
    "table": _write_table,
    "jsonl": _write_json_lines,
    "csv": _write_csv,
    "csv-safe": _write_safe_csv,
}
