"""One way to read a file: its format is recognised by its content."""

import inspect
import re
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from deltarank.core.choices import choose
from deltarank.datasets.data import Data
from deltarank.datasets.encoder import Encoder
from deltarank.datasets.readers.arff import arff_blocks, read_arff
from deltarank.datasets.readers.errors import DataFileError
from deltarank.datasets.readers.sparse_text import libsvm_blocks, read_libsvm, read_xmc, xmc_blocks
from deltarank.datasets.readers.streams import beginning, limited
from deltarank.datasets.readers.table_files import TABLES
from deltarank.datasets.readers.tables import (
    read_arrow,
    read_csv,
    read_jsonl,
    read_parquet,
    read_table,
    read_tsv,
    table_blocks,
)

FORMATS: dict[str, Callable[..., Data]] = {
    "arff": read_arff,
    "libsvm": read_libsvm,
    "xmc": read_xmc,
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "arrow": read_arrow,
}
# How each format is read some rows at a time, features only; with the encoder of other rows.
_BLOCKS: dict[str, Callable[..., Iterator[Data]]] = {
    "arff": arff_blocks,
    "libsvm": lambda path, encoder, n_bytes: libsvm_blocks(path, n_bytes),
    "xmc": lambda path, encoder, n_bytes: xmc_blocks(path, n_bytes),
    **{name: table_blocks(tables) for name, tables in TABLES.items()},
}
BLOCK_BYTES = 1 << 22
_SPARSE_ROW = re.compile(rb"(?:[\d,]*[ \t]+)?\d+:[^\s:,]+(?:[ \t]+\d+:[^\s:,]+)*\s*(?:#.*)?")


def read(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    max_line: int | None = None,
    max_unpacked: int | None = None,
    **options: Any,
) -> Data:
    r"""Read features and label sets from a file.

    Parameters
    ----------
    path : path
        The file, plain or packed by gzip, bzip2 or xz.
    format : {"arff", "libsvm", "xmc", "csv", "tsv", "jsonl", "parquet", "arrow"}, optional
        Told by the content if not given.
    max_line : int, optional
        Most bytes of a line of text; 64 MB by default.
    max_unpacked : int, optional
        Most bytes of text that a packed file unpacks to; 64 GB by default.
    **options
        Of the format's reader: see `read_arff`, `read_libsvm`, `read_xmc` and `read_table`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "films.csv")
    >>> _ = path.write_text("title,year,tags\nAlien,1979,horror|space\nUp,2009,\n")
    >>> data = read(path, labels="tags", separator="|", ignore=["title"])
    >>> data
    <Data: 2 rows, 1 dense features, 2 labels>
    >>> data.label_names
    ('horror', 'space')
    """
    name = detect_format(path) if format is None else format
    reader = choose(FORMATS, name, "format")
    _check_options(name, reader, options)
    with limited(max_line, max_unpacked):
        return reader(path, **options)


def read_blocks(
    path: str | PathLike[str],
    encoder: Encoder | None,
    *,
    format: str,
    n_bytes: int = BLOCK_BYTES,
    **options: Any,
) -> Iterator[Data]:
    r"""Yield the features of a file, some rows at a time, so that memory does not grow with it.

    Parameters
    ----------
    path : path
    encoder : Encoder or None
        From training rows; None for features that have numbers, and for sparse ARFF.
    format : str
    n_bytes : int
        About how much of the file a block is.
    **options
        Of tables: ``vectors``, as in `read_table`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.csv")
    >>> _ = path.write_text("size\n1\n2\n3\n")
    >>> encoder = Encoder.fit({"size": [5]})
    >>> [block.X.ravel().tolist() for block in read_blocks(path, encoder, format="csv", n_bytes=9)]
    [[1.0, 2.0], [3.0]]
    """
    _check_options(format, choose(FORMATS, format, "format"), options)
    return _BLOCKS[format](Path(path), encoder, n_bytes, **options)


def _check_options(name: str, reader: Callable[..., Data], options: dict[str, Any]) -> None:
    known = [
        parameter.name
        for function in (reader, read_table)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
        and (function is reader or "options" in inspect.signature(reader).parameters)
    ]
    for option in options:
        if option not in known:
            allowed = ", ".join(known) if known else "none"
            raise TypeError(f"format {name} has no option {option!r}; its options are {allowed}")


def detect_format(path: str | PathLike[str]) -> str:
    r"""Tell the format of a file by its first bytes.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data")
    >>> _ = path.write_text("3,5 1:0.5 2:1\n")
    >>> detect_format(path)
    'libsvm'
    """
    head = beginning(Path(path))
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if not head.strip():
        raise DataFileError(path, "the file is empty, so its format is unknown")
    whole = head if len(head) < 1 << 16 else head[: head.rfind(b"\n") + 1] or head
    lines = [line for line in whole.split(b"\n") if line.strip()]
    if re.match(rb"\s*@(relation|attribute|data)\b", _after_comments(lines), re.I):
        return "arff"
    if re.match(rb"\s*(\{|\[\s*(\{|$))", lines[0]):  # of an array the reader says what is wrong
        return "jsonl"
    if re.fullmatch(rb"\d+[ \t]+\d+[ \t]+\d+\s*", lines[0]):
        return "xmc"
    if any(_SPARSE_ROW.fullmatch(line) for line in lines[:20]):
        return "libsvm"
    if b"\0" in head:
        raise DataFileError(path, "the format is unknown; name it by format=")
    return "tsv" if lines[0].count(b"\t") > lines[0].count(b",") else "csv"


def _after_comments(lines: list[bytes]) -> bytes:
    return next((line for line in lines if not line.lstrip().startswith(b"%")), b"")
