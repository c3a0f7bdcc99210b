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

    Rows are read, ranked and printed some at a time, so a file may be larger than memory. Where one
    cannot be read, rows before it may have been printed; the exit status is then 1.

    \b
    Examples:
      deltarank rank recipes.delta new.csv
      deltarank rank recipes.delta new.csv --top 3 --format csv > ranked.csv
      cat new.jsonl | deltarank rank recipes.delta - | jq .labels
    """  # fmt: skip
    import sys
    from contextlib import nullcontext
    from pathlib import Path

    from deltarank.cli.bars import no_bars
    from deltarank.cli.inputs import read_blocks
    from deltarank.cli.ranking import write_rankings
    from deltarank.storage.prepared import Model

    ranker = Model.load(Path(model))
    reading = options.Reading(source_format)
    blocks = read_blocks(data, ranker.preparation, reading, seed=seed)
    kind = output or ("table" if sys.stdout.isatty() else "jsonl")
    # Rankings on the same terminal show by themselves how far it is.
    with no_bars() if sys.stdout.isatty() else nullcontext():
        write_rankings(ranker, blocks, top, kind, sys.stdout)
