"""The command ``compare``: several rankers on the same rows."""

from pathlib import Path
from typing import Annotated, get_args

import typer

from deltarank.cli import options

DEFAULT = "logistic,pairwise,adaboost"


def compare(
    data: options.TrainingData,
    rankers: Annotated[
        str,
        typer.Option(
            help="What to compare, joined by commas; the others are compared with the first."
        ),
    ] = DEFAULT,
    test: Annotated[
        str | None, typer.Option(help="File of test rows; without it, cross-validation.")
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            show_default=False,
            help="Folds of the cross-validation, 5 by default; a data set of the catalogue is "
            "cross-validated only if they are given, and else judged by its test rows.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the rows (.jsonl) and a figure (.svg).")
    ] = None,
    tune: options.Tune = None,
    weight: options.RowWeight = "rank",
    source_format: options.Format = None,
    labels: options.Labels = None,
    label_list: options.LabelList = None,
    separator: options.Separator = None,
    text: options.Text = None,
    categorical: options.Categorical = None,
    ignore: options.Ignore = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
) -> None:
    """Compare rankers by their rank loss on held-out rows.

    Every ranker is fitted to the same rows and judged row by row. Intervals of 95% are from a
    bootstrap over rows, paired for differences; p is Wilcoxon's signed-rank test of the
    differences. In cross-validation rows share training rows, so read intervals and p as a guide.
    A fair comparison tunes all of them: --tune takes longer.

    \b
    Examples:
      deltarank compare recipes.csv
      deltarank compare train.csv --test test.csv --rankers logistic,kernel
      deltarank compare yeast --tune --out results
    """  # fmt: skip
    from deltarank.cli.comparison import compare_rankers
    from deltarank.cli.training import Settings

    reading = options.Reading(
        source_format, labels, label_list, separator, text, categorical, ignore
    )
    if test is not None and folds is not None:
        raise typer.BadParameter("--test and --folds exclude each other")
    settings = Settings(tune=tune, weight=weight, seed=seed)
    compare_rankers(data, _names(rankers), test, folds, reading, settings, out)


def _names(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    known = get_args(options.RankerName)
    for name in names:
        if name not in known:
            raise typer.BadParameter(
                f"unknown ranker {name!r}; choose among {', '.join(known)}",
                param_hint="--rankers",
            )
    return names
