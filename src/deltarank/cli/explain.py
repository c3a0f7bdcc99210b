"""The command ``explain``: which features put one label above another."""

from typing import Annotated

import typer

from deltarank.cli import options


def explain(
    model: options.ModelFile,
    data: options.NewData,
    row: Annotated[int, typer.Option(min=0, help="Which row; the first is 0.")] = 0,
    labels: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help="Two labels; by default the first two of the row's ranking.", show_default=False
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, help="How many features; the others are added up.")
    ] = 10,
    source_format: options.Format = None,
    seed: options.Seed = 0,
) -> None:
    """Tell which features put one label above another in a row.

    Each line is what a feature adds to the difference of the two scores; the last line is the
    difference, their sum. Numbers that were brought to one scale count from their mean in training.
    For linear and boosted rankers; a kernel's scores are no sums over features.

    \b
    Examples:
      deltarank explain recipes.delta new.csv --row 3 --labels spicy sweet
      deltarank explain yeast.delta yeast --row 0
    """
    from deltarank.cli.explaining import explain_row

    reading = options.Reading(source_format)
    explain_row(model, data, row, labels, top, reading, seed)
