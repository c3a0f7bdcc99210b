"""The command ``explain``: which features put one label above another."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deltarank.cli import options

if TYPE_CHECKING:
    from deltarank.storage.prepared import Model


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
    vectors: options.Vectors = None,
    seed: options.Seed = 0,
) -> None:
    """Tell which features put one label above another in a row.

    Each line is what a feature adds to the difference of the two scores; the last line is the
    difference, their sum. Numbers that were brought to one scale count from their mean in training.
    For linear and boosted rankers and label trees; not for those with a kernel.

    \b
    Examples:
      deltarank explain recipes.delta new.csv --row 3 --labels spicy sweet
      deltarank explain yeast.delta yeast --row 0
    """
    from deltarank.cli.inputs import read_rows
    from deltarank.cli.show import show
    from deltarank.serving.reasons import reasons
    from deltarank.storage.prepared import Model

    ranker = Model.load(model)
    reading = options.Reading(source_format, vectors=vectors)
    X = read_rows(data, ranker.preparation, ranker.classes, reading, labelled=False, seed=seed).X
    if row >= X.shape[0]:
        raise ValueError(f"--row must be below the number of rows, {X.shape[0]}; got {row}")
    x = X[[row]]
    first, second = _two_labels(ranker, x, labels)
    lines = reasons(ranker, x, first, second, top)
    for line in lines:
        line["value"] = "(missing)" if line["value"] is None else line["value"]
    show(lines, f"Row {row}: what puts {first} above {second}")


def _two_labels(model: "Model", x: Any, labels: tuple[str, str] | None) -> tuple[Any, Any]:
    """Return the labels to compare: those named, or the first two of the row's ranking."""
    if labels is not None:
        return model.find_label(labels[0]), model.find_label(labels[1])
    _, best, _ = next(model.rankings(x, 2))
    if len(best) < 2:
        raise ValueError("the model has a single label, so no label stands above another")
    return best[0], best[1]
