"""Tables in many files, read some rows at a time: their texts are never in memory as a whole."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.core.choices import choose
from deltarank.datasets.data import Data
from deltarank.datasets.encoder import Encoder
from deltarank.datasets.readers.errors import DataFileError
from deltarank.datasets.readers.formats import BLOCK_BYTES, detect_format
from deltarank.datasets.readers.kinds import guess_kind
from deltarank.datasets.readers.label_columns import marked_columns, obvious_column
from deltarank.datasets.readers.table_files import TABLES, Table
from deltarank.datasets.readers.tables import read_table
from deltarank.datasets.readers.vectors_beside import require_rows


@dataclass(frozen=True)
class TextsOfFiles:
    """A column of texts that is read anew whenever somebody goes through it."""

    name: str
    n_rows: int
    files: "_Files"

    def __len__(self) -> int:
        return self.n_rows

    def __iter__(self) -> Iterator[Any]:
        for _, _, table in self.files.tables():
            yield from table.columns.get(self.name, [None] * table.n_rows)


@dataclass(frozen=True)
class _Files:
    """Files of tables with the same columns."""

    paths: tuple[Path, ...]
    format: str | None
    n_bytes: int

    def tables(self) -> Iterator[tuple[Path, str, Table]]:
        """Yield the rows, some at a time, with their file and its format."""
        for path in self.paths:
            name = self.format or detect_format(path)
            if name not in TABLES:
                raise ValueError(
                    f"{path}: many files are read together if they are tables "
                    f"({', '.join(TABLES)}); got {name}"
                )
            for table in choose(TABLES, name, "format")(path, self.n_bytes):
                yield path, name, table


def read_many(
    paths: Sequence[str | PathLike[str]],
    *,
    format: str | None = None,
    n_bytes: int = BLOCK_BYTES,
    **options: Any,
) -> Data:
    r"""Read tables with the same columns as one; their texts are never held as a whole.

    Texts are read twice, once to tell the columns, once for their words; numbers, categories and
    labels are held. What is text is told by the first rows, unless it is named.

    Parameters
    ----------
    paths : sequence of paths
        CSV, TSV, JSON lines, Parquet or Arrow, plain or packed.
    format : str, optional
        Of all files; told by their contents if not given.
    n_bytes : int
        About how much of a file is held at a time.
    **options
        As in `read_table`; vectors are those of all rows, file after file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "1.csv").write_text("plot,tags\na signal from far space,space\n")
    >>> _ = (folder / "2.csv").write_text("plot,tags\ntwo old friends in love,love\n")
    >>> read_many(sorted(folder.glob("*.csv")))
    <Data: 2 rows, 9 sparse features, 2 labels>
    """
    return _read(_files_of(paths, format, n_bytes), options)[0]


def learn_many(
    paths: Sequence[str | PathLike[str]],
    *,
    format: str | None = None,
    n_bytes: int = BLOCK_BYTES,
    **options: Any,
) -> tuple[Data, list[int]]:
    r"""Return what `read_many` does with the features of texts empty, and the rows of each file.

    What is learned of the texts is the same; their features, which are about as large as the texts,
    come file by file from `features_of_file`, here or on other machines.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "1.csv").write_text("plot,tags\na signal from far space,space\n")
    >>> _ = (folder / "2.csv").write_text("plot,tags\ntwo old friends in love,love\n")
    >>> paths = sorted(folder.glob("*.csv"))
    >>> data, n_rows = learn_many(paths)
    >>> data.X.shape, data.X.nnz, n_rows
    ((2, 9), 0, [1, 1])
    >>> [features_of_file(path, data.encoder).nnz for path in paths]
    [4, 5]
    """
    return _read(_files_of(paths, format, n_bytes), options, fill_text=False)


def features_of_file(
    path: str | PathLike[str],
    encoder: Encoder,
    *,
    format: str | None = None,
    n_bytes: int = BLOCK_BYTES,
) -> Any:
    """Return the features of one of many files; its text is not held as a whole."""
    blocks = []
    for _, _, table in _files_of([path], format, n_bytes).tables():
        nothing = [None] * table.n_rows  # objects may leave a name out
        cells = {c.name: table.columns.get(c.name, nothing) for c in encoder.columns}
        blocks.append(encoder.transform(cells))
    return sparse.vstack(blocks, format="csr") if encoder.is_sparse else np.vstack(blocks)


def _files_of(paths: Sequence[str | PathLike[str]], format: str | None, n_bytes: int) -> _Files:
    if not paths:
        raise ValueError("paths must name at least one file; got none")
    return _Files(tuple(map(Path, paths)), format, n_bytes)


def _read(
    files: _Files, options: dict[str, Any], *, fill_text: bool = True
) -> tuple[Data, list[int]]:
    """Return the rows of all files, and how many each of them has."""
    columns, texts, rows_of = _columns(files, options)
    n_rows = sum(rows_of.values())
    if options.get("vectors") is not None:
        require_rows(files.paths[0].parent, n_rows, options["vectors"])
    for name in texts:
        columns[name] = TextsOfFiles(name, n_rows, files)
    reading = {**options, "text": list(texts)} if texts else options
    table = Table(columns, n_rows)
    data = read_table(files.paths[0].parent, table, **reading, fill_text=fill_text)
    return data, [rows_of[path] for path in files.paths]


def _columns(
    files: _Files, options: dict[str, Any]
) -> tuple[dict[str, Any], list[str], dict[Path, int]]:
    """Return columns whole but for those of texts, the names of these, and the rows of files."""
    parts: dict[str, list[Any]] = {}
    texts: list[str] = []
    rows_of = dict.fromkeys(files.paths, 0)
    ignored, n_rows = set(options.get("ignore", ())), 0
    for path, format, table in files.tables():
        names = table.columns.keys()
        if not n_rows:
            texts = _text_columns(table, options)
            parts = {name: [] for name in names}
        if format != "jsonl" and names != parts.keys():
            odd = sorted(names ^ parts.keys())[0]
            raise DataFileError(
                path, f"all files must have the same columns; {odd!r} is not in all"
            )
        # Objects may leave a name out, and bring one later.
        for name in [*parts, *(name for name in names if name not in parts)]:
            held = parts.setdefault(name, [[None] * n_rows])
            if name not in texts and name not in ignored:
                held.append(table.columns.get(name, [None] * table.n_rows))
        n_rows += table.n_rows
        rows_of[path] += table.n_rows
    return {name: _joined(cells) for name, cells in parts.items()}, texts, rows_of


def _text_columns(table: Table, options: dict[str, Any]) -> list[str]:
    """Return which columns are texts, by their first cells unless options say."""
    names, labels = table.columns.keys(), options.get("labels")
    labels = obvious_column(names) if labels is None else labels
    marked: Collection[str] = (
        ()
        if labels is None
        else [labels]
        if isinstance(labels, str)
        else (marked_columns(labels, names))
    )
    settled = {*marked, *options.get("categorical", ()), *options.get("ignore", ())}
    named = [name for name in options.get("text", ()) if name in names]
    rest = [name for name in names if name not in settled and name not in named]
    return named + [name for name in rest if guess_kind(name, table.columns[name]) == "text"]


def _joined(parts: list[Any]) -> Any:
    """Return cells of all blocks as one column: an array where all are numbers or like vectors."""
    shapes = {part.shape[1:] if isinstance(part, np.ndarray) else None for part in parts}
    if len(shapes) == 1 and None not in shapes:
        return np.concatenate(parts)
    return [cell for part in parts for cell in part]
