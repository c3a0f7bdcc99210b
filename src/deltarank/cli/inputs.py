"""Read the data that a command is given: a file, standard input, or the name of a data set."""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import typer
from scipy import sparse

from deltarank.cli.options import Reading
from deltarank.core.text import visible
from deltarank.datasets import CATALOGUE, Data, Preparation, detect_format, load, read
from deltarank.datasets.preparation import NUMBERED
from deltarank.datasets.readers.many_files import learn_many, read_many

STDIN = "-"
_NAMES_SHOWN = 5


@dataclass(frozen=True)
class Rows:
    """Features, and label sets in the order of the ranker's labels, or None if not wanted."""

    X: Any
    Y: Any


# Notes given within `saying_once`.
_given: ContextVar[set[str] | None] = ContextVar("given", default=None)


def note(text: str) -> None:
    """Tell the user something on standard error, apart from the data."""
    given = _given.get()
    if given is not None:
        if text in given:
            return
        given.add(text)
    typer.echo(visible(text), err=True)


@contextmanager
def saying_once() -> Iterator[None]:
    """Give each note within no more than once: what is done fold by fold repeats its notes."""
    token = _given.set(set())
    try:
        yield
    finally:
        _given.reset(token)


def read_file(path: Path, reading: Reading) -> Data:
    """Read a file as the options say."""
    return _read(path, reading.format, reading.options())


def read_training(source: str, reading: Reading, *, seed: int = 0) -> tuple[Data, int]:
    """Return training rows, and the number of the first feature if features are numbered."""
    if is_catalogued(source):
        require_one_table(source, reading, "a data set of the catalogue")
        split = load(source, random_state=seed)
        names = split.feature_names, split.label_names
        numbered_from = 1 if CATALOGUE[source].format == "libsvm" else 0
        data = Data(split.X_train, split.Y_train, *names, split.encoder)
        return _frequent(data, reading), numbered_from
    if is_pattern(source):
        require_one_table(source, reading, "many files")
        data, name = _read_many(source, reading), None
    else:
        with _as_file(source) as path:
            name = reading.format or detect_format(path)
            data = _read(path, name, reading.options())
    for text in data.notes:
        note(in_options(f"note: {text}"))
    return _frequent(data, reading), 1 if name == "libsvm" else 0


def is_pattern(source: str) -> bool:
    """Tell whether a name stands for many files, as ``'folder/*.parquet'``."""
    return any(sign in source for sign in "*?[") and not Path(source).exists()


def paths_of(pattern: str) -> list[str]:
    """Return the files that a pattern names, in order."""
    paths = sorted(glob(pattern, recursive=True))
    if not paths:
        raise ValueError(f"no file is called {pattern}")
    return paths


def learn_training(paths: list[str], reading: Reading) -> tuple[Data, list[int]]:
    """Return training rows whose texts are elsewhere: see `learn_many`."""
    note(f"reading {len(paths)} files, some rows at a time")
    with _told_in_options():
        data, n_rows = learn_many(paths, format=reading.format, **reading.options())
    for text in data.notes:
        note(in_options(f"note: {text}"))
    return _frequent(data, reading), n_rows


def _read_many(source: str, reading: Reading) -> Data:
    """Read all files that a pattern names as one table, some rows at a time."""
    paths = paths_of(source)
    note(f"reading {len(paths)} files, some rows at a time")
    with _told_in_options():
        return read_many(paths, format=reading.format, **reading.options())


def _frequent(data: Data, reading: Reading) -> Data:
    """Return the rows with the labels that ``--min-count`` and ``--max-labels`` keep."""
    kept = data.keep_labels(min_count=reading.min_count, max_labels=reading.max_labels)
    # Labels without rows are kept unless something was asked for: a model may be given more rows.
    if (reading.min_count, reading.max_labels) == (1, None):
        return data
    if not kept.Y.nnz:
        most = int(data.Y.sum(axis=0).max()) if data.Y.nnz else 0
        raise ValueError(
            f"--min-count {reading.min_count} leaves no label; the most frequent one has {most} "
            f"row{'s' * (most != 1)}"
        )
    n_before, n_after = data.Y.shape[1], kept.Y.shape[1]
    share = kept.Y.nnz / data.Y.nnz
    note(f"{n_after} of {n_before} labels are kept, {share:.0%} of all that rows have")
    return kept


def read_rows(
    source: str,
    preparation: Preparation,
    classes: Any,
    reading: Reading,
    *,
    labelled: bool,
    seed: int = 0,
) -> Rows:
    """Return rows as the ranker takes them."""
    raw = read_raw(source, preparation, classes, reading, labelled=labelled, seed=seed)
    return Rows(preparation.transform(raw.X), raw.Y)


def read_blocks(
    source: str, preparation: Preparation, reading: Reading, *, seed: int = 0
) -> Iterator[Any]:
    """Yield features as the ranker takes them, some rows at a time."""
    if is_catalogued(source):
        yield read_rows(source, preparation, None, reading, labelled=False, seed=seed).X
        return
    if is_pattern(source):
        require_one_table(source, reading, "many files")
        for name in paths_of(source):
            yield from read_blocks(name, preparation, reading)
        return
    is_noted = False
    with _as_file(source) as path, _told_in_options():
        name = reading.format or detect_format(path)
        for data in preparation.read_blocks(path, format=name, **_beside(reading)):
            is_noted = is_noted or _note_unknown(preparation, data)
            yield preparation.transform(data.X)


def read_raw(
    source: str,
    preparation: Preparation,
    classes: Any,
    reading: Reading,
    *,
    labelled: bool,
    seed: int = 0,
) -> Rows:
    """Return rows with the features, not yet scaled, and if wanted the labels of training.

    Of many files, the text of one is held at a time.
    """
    if is_pattern(source):
        require_one_table(source, reading, "many files")
        parts = [
            read_raw(name, preparation, classes, reading, labelled=labelled)
            for name in paths_of(source)
        ]
        Y = sparse.vstack([part.Y for part in parts], format="csr") if labelled else None
        return Rows(_stacked([part.X for part in parts]), Y)
    if is_catalogued(source):
        split = load(source, random_state=seed)
        data = Data(split.X_test, split.Y_test, split.feature_names, split.label_names)
        _require_like(source, preparation, data)
    else:
        data = _read_like(source, preparation, classes, reading, labelled)
    _note_unknown(preparation, data)
    return Rows(data.X, _aligned(data, classes) if labelled else None)


def _stacked(parts: list[Any]) -> Any:
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.vstack(parts)


def _note_unknown(preparation: Preparation, data: Data) -> bool:
    """Note that there are features unknown to the model; return whether there are."""
    unknown = data.X.shape[1] > preparation.n_features
    if unknown:
        note(f"note: features from number {preparation.n_features + preparation.first_number} on "
             "are unknown to the model and left out")  # fmt: skip
    return bool(unknown)


def _read_like(
    source: str, preparation: Preparation, classes: Any, reading: Reading, labelled: bool
) -> Data:
    with _as_file(source) as path:
        name = reading.format or detect_format(path)
        options = _beside(reading)
        if labelled:
            options = {**_label_options(name, preparation, classes), **reading.options()}
        with _told_in_options():
            return preparation.read(path, format=name, **options)


def _beside(reading: Reading) -> dict[str, Any]:
    """Return the options of rows without labels."""
    return {} if reading.vectors is None else {"vectors": reading.vectors}


def require_one_table(source: str, reading: Reading, why: str) -> None:
    """Refuse vectors beside anything but one file, whose rows they follow."""
    if reading.vectors is not None:
        raise ValueError(
            f"--vectors goes with one table, not with {why} ({source}): keep vectors in a column "
            "of lists, as Parquet and JSON lines have them"
        )


def _label_options(name: str, preparation: Preparation, classes: Any) -> dict[str, Any]:
    """Return the options that find labels where they were in training."""
    if name in NUMBERED:
        return {}
    if preparation.label_list is None or name == "arff":
        return {"labels": [str(label) for label in classes]}
    return {"labels": preparation.label_list, "separator": preparation.separator}


def _require_like(source: str, preparation: Preparation, data: Data) -> None:
    names = data.feature_names
    if data.X.shape[1] != preparation.n_features or (
        names is not None and list(names) != preparation.feature_names()
    ):
        raise ValueError(
            f"data set {source!r} has other features than the model was fitted on "
            f"({data.X.shape[1]}, not {preparation.n_features}, or by other names)"
        )


def _aligned(data: Data, classes: Any) -> sparse.csr_array:
    """Return label sets with a column for each label of the model, in its order."""
    names = range(data.Y.shape[1]) if data.label_names is None else data.label_names
    column_of = {str(name): column for column, name in enumerate(names)}
    wanted = [column_of.pop(str(label), -1) for label in classes]
    counts = data.Y.sum(axis=0)
    unknown = [name for name, column in column_of.items() if counts[column]]
    if unknown:
        shown = ", ".join(unknown[:_NAMES_SHOWN]) + (", ..." * (len(unknown) > _NAMES_SHOWN))
        note(f"note: labels unknown to the model are left out: {shown}")
    # A label of the model that occurs in no row here gets the empty column at the end.
    empty = sparse.csr_array((data.Y.shape[0], 1), dtype=data.Y.dtype)
    wide = sparse.csr_array(sparse.hstack([data.Y, empty], format="csr"))
    return sparse.csr_array(wide[:, np.asarray(wanted)])


def is_catalogued(source: str) -> bool:
    """Tell whether a name means a data set of the catalogue rather than a file."""
    return source in CATALOGUE and not Path(source).exists()


@contextmanager
def _as_file(source: str) -> Iterator[Path]:
    """Give the file; what can be read only once, as a pipe, is copied to a temporary one."""
    path = Path(source)
    if source == STDIN:
        if sys.stdin is None:
            raise ValueError("standard input is closed; give a file, or data on standard input")
        stream: Any = nullcontext(sys.stdin.buffer)
        name = "standard input"
    elif path.is_fifo() or path.is_char_device():
        stream, name = path.open("rb"), source
    else:
        if not path.exists() and path.name == source and not path.suffix:
            raise ValueError(
                f"no file and no data set of the catalogue is called {source!r}; "
                f"the sets are {', '.join(CATALOGUE)}"
            )
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stdin")
        with stream as content, path.open("wb") as file:
            shutil.copyfileobj(content, file)
        try:
            yield path
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), name)) from None


def _read(path: Path, name: str | None, options: dict[str, Any]) -> Data:
    with _told_in_options():
        return read(path, format=name, **options)


@contextmanager
def _told_in_options() -> Iterator[None]:
    """Let errors name options of commands."""
    try:
        yield
    except (TypeError, ValueError) as error:  # TypeError: an option that the format does not have
        raise ValueError(in_options(str(error))) from None


def in_options(text: str) -> str:
    """Return a message with options of commands in place of Python's arguments.

    Examples
    --------
    >>> in_options("pass ignore=[''] to leave it out")
    "pass --ignore '' to leave it out"
    >>> in_options("leave it out by ignore= (--ignore)")
    'leave it out by --ignore'
    """
    text = re.sub(r"\b\w+= ?\((--[\w-]+)\)", r"\1", text)
    text = re.sub(r"\w+=, (--[\w-]+)", r"\1", text)
    text = text.replace("labels= must name the column of label lists, or the columns of 0 and 1",
                        "--label-list must name the column of label lists, or --labels the columns "
                        "of 0 and 1")  # fmt: skip
    text = re.sub(r"\b(labels|ignore)=\[('[^']*')\]", r"--\1 \2", text)
    return re.sub(r"\b(labels|text|categorical|ignore|separator)= ?(?=\S)", r"--\1 ", text)
