"""The command ``rank``: the labels of each row, best first; some rows at a time."""

import csv
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TextIO, cast

import typer

from deltarank.cli import options
from deltarank.cli.bars import no_bars
from deltarank.core.text import visible

if TYPE_CHECKING:
    from deltarank.storage.prepared import Answer, Model

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
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Tell the probability of each label, too.")
    ] = False,
    sets: Annotated[
        Literal["f1", "likely"] | None,
        typer.Option(
            help="Choose a set of labels for each row: that of the largest expected F1, or all "
            "that are likelier than not.",
            show_default=False,
        ),
    ] = None,
    source_format: options.Format = None,
    vectors: options.Vectors = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    dask: options.Dask = None,
) -> None:
    """Rank the labels of each row of a file, most likely relevant first.

    Labels in the file are ignored, and so are words and categories that the model has not seen.
    Rows are numbered from 0. Scores order the labels within a row; probabilities, which a model
    has that was fitted with --calibrate or --weight uniform, mean the same in all rows.

    Rows are read, ranked and printed some at a time, so a file may be larger than memory. If a row
    cannot be read, rows before it may have been printed; the exit status is then 1.

    \b
    Examples:
      deltarank rank recipes.delta new.csv
      deltarank rank recipes.delta new.csv --top 3 --format csv > ranked.csv
      deltarank rank recipes.delta new.csv --probabilities --sets f1
      cat new.jsonl | deltarank rank recipes.delta - | jq .labels
    """  # fmt: skip
    from deltarank.storage.prepared import Model

    ranker = Model.load(model, mmap=dask is None)
    reading = options.Reading(source_format, vectors=vectors)
    asked = Asked(top, probabilities, sets)
    if dask is not None:
        from deltarank.cli.cluster import answers_there

        answers = answers_there(dask, data, ranker, reading, asked)
    else:
        answers = answers_here(data, ranker, reading, asked, seed)
    kind = output or ("table" if sys.stdout.isatty() else "jsonl")
    # Rankings that scroll past on the same terminal already show the progress.
    with no_bars() if sys.stdout.isatty() else nullcontext():
        WRITERS[kind](answers, _output())


class Asked(NamedTuple):
    """What is to be told of each row."""

    top: int
    chances: bool
    sets: str | None


class _Visible:
    """Writes to a terminal, which labels must not command."""

    def write(self, text: str) -> None:
        sys.stdout.write(visible(text))


def _output() -> TextIO:
    return cast(TextIO, _Visible()) if sys.stdout.isatty() else sys.stdout


def answers_here(
    data: str, model: "Model", reading: options.Reading, asked: Asked, seed: int = 0
) -> "Iterator[Answer]":
    """Yield the best labels of each row; a block is freed before the next is read."""
    from deltarank.cli.inputs import read_blocks
    from deltarank.core.scores import RowError

    n_before = 0
    try:
        for X in read_blocks(data, model.preparation, reading, seed=seed):
            for answer in model.answers(X, asked.top, chances=asked.chances, sets=asked.sets):
                yield answer._replace(row=n_before + answer.row)
            n_before += X.shape[0]
            del X
    except RowError as error:
        raise RowError(n_before + error.row, error.problem) from None


def _write_json_lines(answers: "Iterator[Answer]", out: TextIO) -> None:
    for row, labels, scores, chances, chosen in answers:
        line = {"row": row, "labels": labels, "scores": [round(score, 6) for score in scores]}
        if chances is not None:
            line["probabilities"] = [round(chance, 6) for chance in chances]
        if chosen is not None:
            line["set"] = chosen
        out.write(json.dumps(line, ensure_ascii=False) + "\n")


def _write_csv(
    answers: "Iterator[Answer]", out: TextIO, written: Callable[[Any], Any] = lambda label: label
) -> None:
    writer = csv.writer(out, lineterminator="\n")
    for row, labels, scores, chances, chosen in answers:
        if row == 0:  # only once there is a row to write
            extra = ["probability"] * (chances is not None) + ["in_set"] * (chosen is not None)
            writer.writerow(["row", "place", "label", "score", *extra])
        for at, (label, score) in enumerate(zip(labels, scores, strict=True)):
            extras = [] if chances is None else [round(chances[at], 6)]
            extras += [] if chosen is None else [int(label in chosen)]
            writer.writerow([row, at + 1, written(label), round(score, 6), *extras])


def _write_safe_csv(answers: "Iterator[Answer]", out: TextIO) -> None:
    """Write CSV in which labels that a spreadsheet would run as formulas begin with a quote."""

    def harmless(label: Any) -> Any:
        return f"'{label}" if isinstance(label, str) and label.startswith(_FORMULA) else label

    _write_csv(answers, out, harmless)


def _write_table(answers: "Iterator[Answer]", out: TextIO) -> None:
    from rich.table import Table

    from deltarank.cli.show import terminal

    console = terminal()  # whose own commands are meant for it; cells are made visible one by one
    table = Table()
    for answer in answers:
        if not table.columns:
            table.add_column("row", justify="right")
            for place in range(1, len(answer.labels) + 1):
                table.add_column(str(place))
            if answer.chosen is not None:
                table.caption = "* in the set of the row"
        table.add_row(str(answer.row), *_cells(answer))
        if table.row_count == ROWS_PER_TABLE:
            console.print(table)
            table = Table()
    if table.row_count:
        console.print(table)


def _cells(answer: "Answer") -> list[str]:
    """Write each label with its probability, else its score; a star for those in the set."""
    from deltarank.paper.report.tables import cell

    _, labels, scores, chances, chosen = answer
    numbers = [cell(round(s, 2)) for s in scores]
    if chances is not None:
        numbers = [f"{chance:.0%}" for chance in chances]
    marks = ["*" if chosen is not None and label in chosen else "" for label in labels]
    pairs = zip(labels, numbers, marks, strict=True)
    return [f"{cell(str(label))} {number}{mark}" for label, number, mark in pairs]


WRITERS: dict[str, Callable[["Iterator[Answer]", TextIO], None]] = {
    "table": _write_table,
    "jsonl": _write_json_lines,
    "csv": _write_csv,
    "csv-safe": _write_safe_csv,
}
