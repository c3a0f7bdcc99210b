"""The command ``split``: a file becomes training rows and test rows."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deltarank.cli import options

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Test rows are whole folds, and labels are spread the better the fewer folds there are.
MOST_FOLDS = 20


def split(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A file of any format but ARFF.")],
    train: Annotated[Path, typer.Option(help="File to write training rows to.")],
    test: Annotated[Path, typer.Option(help="File to write test rows to.")],
    share: Annotated[float, typer.Option(help="Share of the rows to test on.")] = 0.2,
    by_time: Annotated[
        str | None,
        typer.Option(help="Column of dates or numbers: the latest rows are tested on."),
    ] = None,
    by_group: Annotated[
        str | None,
        typer.Option(help="Column of groups, such as authors: none is on both sides."),
    ] = None,
    source_format: options.Format = None,
    labels: options.Labels = None,
    label_list: options.LabelList = None,
    separator: options.Separator = None,
    seed: options.Seed = 0,
) -> None:
    """Split a file into rows to train on and rows to test on.

    By default every label is spread over both as evenly as it can be. Rows are written as they
    stand in the file, in its order and format; a name that ends in .gz, .bz2 or .xz is packed.

    \b
    Examples:
      deltarank split recipes.csv --train train.csv --test test.csv
      deltarank split news.jsonl --by-time date --share 0.1 --train old.jsonl --test new.jsonl
      deltarank split papers.csv --by-group author --train train.csv --test test.csv
    """
    import numpy as np

    from deltarank.cli.inputs import note, read_file
    from deltarank.datasets import detect_format
    from deltarank.datasets.records import column_cells, read_records

    if by_time is not None and by_group is not None:
        raise typer.BadParameter("--by-time and --by-group exclude each other")
    if not 0 < share < 1:
        raise typer.BadParameter(f"--share must be between 0 and 1; got {share:g}")
    if len({path.resolve() for path in (data, train, test)}) < 3:
        raise typer.BadParameter("DATA, --train and --test must be three files")
    name = source_format or detect_format(data)
    records = read_records(data, name)
    if by_time is not None:
        tested = latest(column_cells(data, name, by_time), share, by_time)
    elif by_group is not None:
        tested = grouped(column_cells(data, name, by_group), share, seed)
    else:
        reading = options.Reading(name, labels, label_list, separator)
        tested = spread(read_file(data, reading).Y, share, seed)
    if not 0 < tested.sum() < len(tested):
        raise ValueError(
            f"{data}: --share {share:g} of {len(tested)} rows leaves one side without rows"
        )
    for path, chosen in ((train, ~tested), (test, tested)):
        records.write(path, np.flatnonzero(chosen))
        note(f"wrote {path}: {chosen.sum()} rows")


def spread(Y: Any, share: float, seed: int) -> "NDArray[Any]":
    """Return which rows to test on, so that every label is on both sides in its share."""
    from deltarank.core.splits import LabelStratifiedKFold

    tested = Fraction(share).limit_denominator(min(MOST_FOLDS, Y.shape[0]))
    if not 0 < tested < 1:
        raise ValueError(
            f"--share must be between {1 / MOST_FOLDS:g} and {1 - 1 / MOST_FOLDS:g} where labels "
            f"are spread evenly; got {share:g}"
        )
    folds = LabelStratifiedKFold(tested.denominator, random_state=seed).folds(Y)
    return folds < tested.numerator


def latest(cells: list[Any], share: float, name: str) -> "NDArray[Any]":
    """Return which rows to test on: the latest, none of them as early as a row to train on.

    Examples
    --------
    >>> latest(["2024-05-01", "2026-01-31", "2025-12-24", "2023-01-01"], 0.25, "date").tolist()
    [False, True, False, False]
    """
    import numpy as np

    moments = np.array([_moment(cell, row, name) for row, cell in enumerate(cells)])
    n_train = len(moments) - round(share * len(moments))
    # Rows of one moment stay together, on the side of training.
    return moments > np.sort(moments)[max(0, n_train - 1)]


def _moment(cell: Any, row: int, name: str) -> float:
    """Return a number that grows with time, of a number, a date of Python or one in ISO's order."""
    from datetime import UTC, date, datetime

    if isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day)
    if isinstance(cell, datetime):
        return (cell if cell.tzinfo else cell.replace(tzinfo=UTC)).timestamp()
    try:
        return float(cell)
    except (TypeError, ValueError):
        pass
    try:
        return _moment(datetime.fromisoformat(str(cell).strip()), row, name)
    except ValueError:
        raise ValueError(
            f"--by-time {name}: each cell must be a number or a date such as 2026-11-18; row {row} "
            f"has {str(cell)[:40]!r}"
        ) from None


def grouped(cells: list[Any], share: float, seed: int) -> "NDArray[Any]":
    """Return which rows to test on: whole groups, drawn until they make up the share."""
    import numpy as np

    groups, group_of, sizes = np.unique(
        np.array([str(cell) for cell in cells]), return_inverse=True, return_counts=True
    )
    order = np.random.default_rng(seed).permutation(len(groups))
    before = np.cumsum(sizes[order]) - sizes[order]
    is_tested = np.zeros(len(groups), bool)
    is_tested[order] = before + sizes[order] / 2 <= share * len(cells)
    return is_tested[group_of]
