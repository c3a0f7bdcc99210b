"""The command ``rank``: the labels of each row, best first."""

from typing import Annotated, Literal

import typer

from deltarank.cli import options


def rank(
    model: options.ModelFile,
    data: options.NewData,
    top: Annotated[int, typer.Option(min=1, help="How many labels a row, at most.")] = 5,
    output: Annotated[
        Literal["table", "jsonl", "csv"] | None,
        typer.Option(
            "--format",
            help="By default a table on a terminal, JSON lines in a pipe.",
            show_default=False,
        ),
    ] = None,
    source_format: options.Format = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
) -> None:
    """Rank the labels of each row of a file, most likely relevant first.

    Labels in the file are not needed and not looked at; words and categories that the model has
    not seen say nothing. Rows count from 0. Scores order the labels of a row.

    \b
    Examples:
      deltarank rank recipes.delta new.csv
      deltarank rank recipes.delta new.csv --top 3 --format csv > ranked.csv
      cat new.jsonl | deltarank rank recipes.delta - | jq .labels
    """  # fmt: skip
    import sys
    from pathlib import Path

    from deltarank.cli.inputs import read_rows
    from deltarank.cli.model import Model
    from deltarank.cli.ranking import write_rankings

    ranker = Model.load(Path(model))
    reading = options.Reading(source_format)
    rows = read_rows(data, ranker.preparation, ranker.classes, reading, labelled=False, seed=seed)
    kind = output or ("table" if sys.stdout.isatty() else "jsonl")
    write_rankings(ranker, rows.X, top, kind, sys.stdout)
