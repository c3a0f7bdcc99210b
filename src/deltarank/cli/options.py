"""Options that commands share."""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from deltarank.cli.plugins import own_names

TrainingData = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (CSV, TSV, JSON lines, Parquet, Arrow, ARFF, LIBSVM or XMC, plain or packed), "
        "a pattern of tables such as 'folder/*.parquet', read some rows at a time, - for standard "
        "input, or the name of a data set in the catalogue.",
    ),
]
NewData = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file of any format, a pattern of files such as 'folder/*.parquet', - for standard "
        "input, or a data set in the catalogue, whose test rows are used.",
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, from deltarank fit.")]
Format = Annotated[str | None, typer.Option("--from", help="Format to read; detected by default.")]
Labels = Annotated[
    str | None,
    typer.Option(
        help="Label columns of 0 and 1: names or patterns such as 'lab_*' joined by commas, or "
        "their number (negative: the last ones); for ARFF also an XML file."
    ),
]
LabelList = Annotated[
    str | None,
    typer.Option(
        help="Column of a table that holds label lists; found if it is called labels, label, tags, "
        "tag or categories."
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="What separates the labels of a list; by default ; | or a comma, as the cells have it."
    ),
]
MinCount = Annotated[
    int, typer.Option(min=1, help="Leave out labels that fewer training rows have.")
]
MaxLabels = Annotated[
    int | None,
    typer.Option(min=1, help="Keep so many labels, the most frequent.", show_default=False),
]
Text = Annotated[list[str] | None, typer.Option(help="Columns of text, joined by commas.")]
Categorical = Annotated[
    list[str] | None, typer.Option(help="Columns of categories, joined by commas.")
]
Ignore = Annotated[list[str] | None, typer.Option(help="Columns to leave out, joined by commas.")]
Vectors = Annotated[
    Path | None,
    typer.Option(
        help="An .npy file beside a table, with one vector per row, such as an embedding: one more "
        "column, called vectors.",
        show_default=False,
    ),
]
Tune = Annotated[
    bool | None,
    typer.Option(
        "--tune/--no-tune",
        help="Choose C or the rounds by cross-validation; the default for logistic, kernel and "
        "boosted-trees.",
        show_default=False,
    ),
]
Penalty = Annotated[
    float | None,
    typer.Option(
        "--C", help="Inverse of the penalty's strength (logistic, kernel, label-tree, pairwise)."
    ),
]
Prune = Annotated[
    float | None,
    typer.Option(
        "--prune",
        min=0,
        help="Leave out coefficients smaller than this, 0 none; by default 0.05 over the mean "
        "length of a row where the model of sparse rows, such as text, would be large (logistic).",
        show_default=False,
    ),
]
Rounds = Annotated[
    int | None, typer.Option(min=1, help="Stumps (adaboost...), trees or updates (lllr).")
]
Weight = Literal["rank", "uniform", "recall", "ndcg", "min"]


def _one_of(choices: Any, table: str) -> dict[str, Any]:
    """Return how an option reads a name: one of the choices, or one that a plugin registered."""

    def read(name: str) -> str:
        known = [*get_args(choices), *own_names(table)]
        if name not in known:
            listed = ", ".join(map(repr, known))
            raise typer.BadParameter(f"{name!r} is not one of {listed}.")
        return name

    return {"parser": read, "metavar": f"[{'|'.join(get_args(choices))}]"}


RowWeight = Annotated[
    str,
    typer.Option(
        help="How much a row counts, by its labels; rank is consistent for rank loss.",
        **_one_of(Weight, "WEIGHTS"),
    ),
]
Goal = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Fit for a metric, such as ndcg@5, precision@3, macro-f1@5 or rank-loss: picks the "
        "weight, the score that tunes and the rule that decides; evaluate prints it.",
        show_default=False,
    ),
]
RankerName = Literal[
    "logistic",
    "kernel",
    "label-tree",
    "adaboost",
    "adaboost-mr",
    "adaboost-mh",
    "boosted-trees",
    "lllr",
    "pairwise",
]
Ranker = Annotated[
    str | None,
    typer.Option(
        help="Which ranker; logistic by default, label-tree for more than 5,000 labels.",
        show_default=False,
        **_one_of(RankerName, "RECIPES"),
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random, such as folds.")]


def _set_threads(threads: int | None) -> None:
    if threads is not None:
        os.environ["DELTARANK_NUM_THREADS"] = str(threads)


Threads = Annotated[
    int | None,
    typer.Option(min=1, callback=_set_threads, help="Threads to use; all cores by default."),
]


def _set_memory(amount: str | None) -> None:
    if amount is not None:
        from deltarank.core.memory import VARIABLE, to_bytes

        os.environ[VARIABLE] = str(to_bytes(amount, "--memory"))


Memory = Annotated[
    str | None,
    typer.Option(
        callback=_set_memory,
        show_default=False,
        help="Memory for working, such as 2G, beside data and model; a third of what is free by "
        "default.",
    ),
]


Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        show_default=False,
        help="Work on a Dask cluster, file by file: the address of its scheduler, such as "
        "tcp://host:8786, or local for processes on this machine.",
    ),
]


@dataclass(frozen=True)
class Reading:
    """How the options say a file is to be read; each field is the option that fills it."""

    format: Format = None
    labels: Labels = None
    label_list: LabelList = None
    separator: Separator = None
    text: Text = None
    categorical: Categorical = None
    ignore: Ignore = None
    vectors: Vectors = None
    min_count: MinCount = 1
    max_labels: MaxLabels = None

    def __post_init__(self) -> None:
        if self.labels is not None and self.label_list is not None:
            raise typer.BadParameter("--labels and --label-list exclude each other")

    def options(self) -> dict[str, Any]:
        """Return the options of `deltarank.datasets.read` that were given."""
        labels = self.label_list if self.label_list is not None else label_option(self.labels)
        options = {
            "labels": labels,
            "separator": self.separator,
            "text": _names(self.text),
            "categorical": _names(self.categorical),
            "ignore": _names(self.ignore),
            "vectors": self.vectors,
        }
        return {name: value for name, value in options.items() if value is not None and value != []}


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has the options of `Reading` in place of its parameter ``reading``."""

    @wraps(command)
    def run(**options: Any) -> None:
        values = {field.name: options.pop(field.name) for field in fields(Reading)}
        command(reading=Reading(**values), **options)

    signature, kind = inspect.signature(command), inspect.Parameter.KEYWORD_ONLY
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name == "reading":
            parameters += [
                inspect.Parameter(field.name, kind, default=field.default, annotation=field.type)
                for field in fields(Reading)
            ]
        else:
            parameters.append(parameter.replace(kind=kind))
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {it.name: it.annotation for it in parameters} | {"return": None}
    return run


def _names(given: list[str] | None) -> list[str]:
    """Return names that options give one by one or joined by commas."""
    return [name for text in given or () for name in text.split(",")]


def label_option(text: str | None) -> Any:
    """Read what ``--labels`` says: a number, an XML file, or names joined by commas.

    Examples
    --------
    >>> label_option("-6"), label_option("a,b"), label_option("set.xml")
    (-6, ['a', 'b'], 'set.xml')
    """
    if text is None or text.endswith(".xml"):
        return text
    try:
        return int(text)
    except ValueError:
        return text.split(",")


def numbers(text: str | None, option: str, kind: type[Any]) -> tuple[Any, ...] | None:
    """Read positive numbers joined by commas."""
    if text is None:
        return None
    try:
        values = tuple(kind(part) for part in text.split(","))
    except ValueError:
        values = (0,)
    if min(values) <= 0:
        name = "whole numbers" if kind is int else "numbers"
        raise ValueError(f"{option} must be positive {name} joined by commas; got {text!r}")
    return values
