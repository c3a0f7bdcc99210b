"""Reader of ARFF, dense and sparse, as MULAN and MEKA use it for label sets."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.datasets.data import Data
from deltarank.datasets.encoder import CategoryColumn, Column, Encoder, NumberColumn, TextColumn
from deltarank.datasets.readers.arff_cells import read_cells
from deltarank.datasets.readers.arff_header import Header, label_columns, parse_header
from deltarank.datasets.readers.errors import DataFileError, shown
from deltarank.datasets.readers.kernels import arff_text as kernel
from deltarank.datasets.readers.streams import CHUNK_BYTES, chunks_of_lines
from deltarank.datasets.readers.undecided import read_undecided

_DATA = re.compile(rb"^[ \t]*@data[^\n]*\n", re.I | re.M)


def read_arff(
    path: str | PathLike[str],
    *,
    labels: int | str | PathLike[str] | Sequence[str] | None = None,
    encoder: Encoder | None = None,
) -> Data:
    """Read ARFF, dense or sparse.

    Parameters
    ----------
    path : path
        The file, plain or packed by gzip, bzip2 or xz.
    labels : int, path or sequence of str, optional
        Number of label attributes (from the front; negative, from the back), the XML file that
        names them, or their names; ``[]`` for none. By default the XML beside the file
        (``set.xml`` for ``set-train.arff``), else MEKA's ``-C`` in the relation's name.
    encoder : Encoder, optional
        From other rows, to get the same features.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.arff")
    >>> _ = path.write_text('''@relation 'tiny: -C -2'
    ... @attribute size numeric
    ... @attribute colour {red, blue}
    ... @attribute good {0, 1}
    ... @attribute cheap {0, 1}
    ... @data
    ... 1.5,blue,0,1
    ... ?,red,1,1
    ... ''')
    >>> data = read_arff(path)
    >>> data.X
    array([[1.5, 0. , 1. ],
           [1.5, 1. , 0. ]])
    >>> data.label_names, data.Y.toarray().tolist()
    (('good', 'cheap'), [[0, 1], [1, 1]])
    """
    path = Path(path)
    header, chunks = _open(path, CHUNK_BYTES)
    columns = label_columns(path, header, labels)
    first = next(chunks, b"")
    is_sparse = _first_row(first).startswith(b"{")
    return _read_rows(path, _with_first(first, chunks), header, is_sparse, columns, encoder)


def arff_blocks(path: Path, encoder: Encoder | None, n_bytes: int) -> Iterator[Data]:
    """Yield the features of ARFF, about this many bytes at a time.

    Without an encoder only sparse numbers can be cut: else what a column is depends on all rows.
    """
    header, chunks = _open(path, n_bytes)
    first = next(chunks, b"")
    is_sparse = _first_row(first).startswith(b"{")
    are_numbers = all(attribute.is_number for attribute in header.attributes)
    if encoder is None and not (is_sparse and are_numbers):
        yield read_arff(path, labels=[])
        return
    read = False
    for chunk in _with_first(first, chunks):
        if _first_row(chunk):
            read = True
            yield _read_rows(path, iter([chunk]), header, is_sparse, [], encoder)
        header = replace(header, n_lines=header.n_lines + chunk.count(b"\n"))
    if not read:
        raise DataFileError(path, "the file holds no rows")


def _read_rows(
    path: Path,
    chunks: Iterator[bytes],
    header: Header,
    is_sparse: bool,
    labels: list[int],
    encoder: Encoder | None,
) -> Data:
    if all(attribute.is_number for attribute in header.attributes):
        table = _read_numbers(path, chunks, header, is_sparse, labels)
        return _from_numbers(header, table, labels, encoder)
    cells = read_cells(path, chunks, header, is_sparse)
    return _from_cells(path, header, cells, labels, encoder)


def _open(path: Path, n_bytes: int) -> tuple[Header, Iterator[bytes]]:
    """Read up to ``@data``; give the header and the rest."""
    chunks = chunks_of_lines(path, n_bytes)
    text = b""
    for chunk in chunks:
        text += chunk
        if match := _DATA.search(text):
            header = parse_header(path, _decoded(text[: match.end() - 1]))
            return header, _with_first(text[match.end() :], chunks)
    raise DataFileError(path, "no line @data", line=max(1, text.count(b"\n")))


def _with_first(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from others


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")  # what Weka wrote before it wrote UTF-8


def _first_row(text: bytes) -> bytes:
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith(b"%"):
            return line.strip()
    return b""


def _read_numbers(
    path: Path, chunks: Iterator[bytes], header: Header, is_sparse: bool, labels: list[int]
) -> Any:
    """Return all columns as one matrix of numbers, dense or CSR."""
    n_columns = len(header.attributes)
    blocks: list[Any] = []
    before = header.n_lines
    for chunk in chunks:
        text = np.frombuffer(chunk, np.uint8)
        parse = kernel.parse_sparse if is_sparse else kernel.parse_dense
        parsed, row_at, n_undecided, problem, place = parse(text, n_columns)
        if problem != kernel.FINE:
            _refuse(path, chunk, problem, place, n_columns, before)
        if n_undecided:
            at = read_undecided(chunk, parsed[2] if is_sparse else parsed)
            if at is not None:
                _refuse(path, chunk, kernel.LARGE_VALUE, at, n_columns, before)
        if is_sparse:
            starts, indices, values = parsed
            block = sparse.csr_array((values, indices, starts), (len(row_at), n_columns))
            block.sort_indices()
        else:
            block = parsed
        _check_values(path, chunk, header, block, labels, row_at, before)
        blocks.append(block)
        before += chunk.count(b"\n")
    if not sum(block.shape[0] for block in blocks):
        raise DataFileError(path, "the file holds no rows")
    return sparse.csr_array(sparse.vstack(blocks)) if is_sparse else np.concatenate(blocks)


def _check_values(
    path: Path,
    chunk: bytes,
    header: Header,
    block: Any,
    labels: list[int],
    row_at: NDArray[np.int64],
    before: int,
) -> None:
    """Refuse labels that are not 0 or 1, values that no choice lists, and gaps in sparse rows."""
    is_sparse, marked = sparse.issparse(block), set(labels)
    columns = block.tocsc() if is_sparse else block
    for j, attribute in enumerate(header.attributes):
        allowed = [0.0, 1.0] if j in marked else _allowed(attribute.values)
        if is_sparse:
            part = slice(columns.indptr[j], columns.indptr[j + 1])
            values, rows = columns.data[part], columns.indices[part]
            declared = _allowed(attribute.values)
            if declared is not None and declared[0] != 0:
                problem = (
                    f"{attribute.name!r} leaves out {declared[0]:g}, not 0: write rows in full"
                )
                raise DataFileError(path, problem)
            wrong = np.isnan(values)
        else:
            values, rows = columns[:, j], None
            wrong = np.isnan(values) if j in marked else np.zeros(len(values), bool)
        if allowed is not None:
            wrong |= ~np.isnan(values) & ~np.isin(values, allowed)
        if wrong.any():
            row = np.flatnonzero(wrong)[0]
            value = "?" if np.isnan(values[row]) else f"{values[row]:g}"
            wanted = "a number" if allowed is None else " or ".join(f"{v:g}" for v in allowed[:9])
            at = int(row_at[row if rows is None else rows[row]])
            line = before + chunk.count(b"\n", 0, at) + 1
            problem = f"{wanted} is wanted; got {value}"
            raise DataFileError(path, problem, line=line, column=attribute.name)


def _allowed(values: tuple[str, ...] | None) -> list[float] | None:
    return None if values is None else [float(value) for value in values]


def _from_numbers(header: Header, table: Any, labels: list[int], encoder: Encoder | None) -> Data:
    others = np.setdiff1d(np.arange(len(header.attributes)), labels)
    names = header.names
    Y = sparse.csr_array(table[:, labels]).astype(np.int8)
    Y.eliminate_zeros()
    X = table[:, others]
    features = tuple(names[j] for j in others)
    label_names = tuple(names[j] for j in labels)
    if sparse.issparse(X) and encoder is None:
        return Data(sparse.csr_array(X), Y, features, label_names)
    if sparse.issparse(X):
        X = X.toarray()
    cells = {name: X[:, j] for j, name in enumerate(features)}
    encoder = encoder or Encoder(tuple(NumberColumn.fit(n, c) for n, c in cells.items()))
    return Data(encoder.transform(cells), Y, tuple(encoder.feature_names()), label_names, encoder)


def _from_cells(
    path: Path,
    header: Header,
    cells: dict[str, Any],
    labels: list[int],
    encoder: Encoder | None,
) -> Data:
    names = header.names
    label_names = tuple(names[j] for j in labels)
    for j in labels:
        if header.attributes[j].values != ("0", "1"):
            raise DataFileError(path, f"a label must be declared {{0,1}}; got {names[j]!r}")
    marks, marked = [np.asarray(cells[name]) for name in label_names], set(label_names)
    for name, column in zip(label_names, marks, strict=True):
        if np.isnan(column).any():
            raise DataFileError(path, "a label must be 0 or 1; got ?", column=name)
    n_rows = len(next(iter(cells.values())))
    Y = sparse.csr_array(np.column_stack([np.empty((n_rows, 0)), *marks]).astype(np.int8))
    if encoder is None:
        encoder = Encoder(
            tuple(
                _fit_column(attribute, cells[attribute.name])
                for j, attribute in enumerate(header.attributes)
                if attribute.name not in marked
            )
        )
    return Data(encoder.transform(cells), Y, tuple(encoder.feature_names()), label_names, encoder)


def _fit_column(attribute: Any, cells: Any) -> Column:
    if attribute.is_number:
        return NumberColumn.fit(attribute.name, cells)
    if attribute.is_string:
        return TextColumn.fit(attribute.name, cells)
    return CategoryColumn(attribute.name, attribute.values)


_PROBLEMS = {
    kernel.BAD_VALUE: "a number is wanted; got {got}",
    kernel.LARGE_VALUE: "a number must be finite; got {got}",
    kernel.ROW_LENGTH: "a row must have {n} values; got {count}",
    kernel.NO_BRACE: "a sparse row must start with a brace, as the first does; got {got}",
    kernel.BAD_INDEX: "a cell must be written 'index value', with an index below {n}; got {got}",
    kernel.TWICE: "an attribute may occur only once in a row; the line has one twice",
    kernel.AFTER_ROW: "nothing may follow the brace that ends a row; got {got}",
}


def _refuse(
    path: Path, text: bytes, problem: int, at: int, n_columns: int, before: int
) -> NoReturn:
    if problem == kernel.ROW_LENGTH:
        at = text.rfind(b"\n", 0, at) + 1
    count = text.count(b",", at, text.index(b"\n", at)) + 1
    token = re.match(rb"[^,\n}]*", text[at:]).group().strip()  # type: ignore[union-attr]
    raise DataFileError(
        path,
        _PROBLEMS[problem].format(got=shown(token), n=n_columns, count=count),
        line=before + text.count(b"\n", 0, at) + 1,
        column=at - text.rfind(b"\n", 0, at),
    )
