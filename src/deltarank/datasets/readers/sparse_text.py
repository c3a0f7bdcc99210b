"""Readers of LIBSVM multilabel and XMC text."""

import re
from collections.abc import Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.threads import n_threads, run
from deltarank.datasets.data import Data
from deltarank.datasets.readers.cache import cached
from deltarank.datasets.readers.errors import DataFileError, shown
from deltarank.datasets.readers.growing import Growing
from deltarank.datasets.readers.kernels import sparse_text as kernel
from deltarank.datasets.readers.streams import CHUNK_BYTES, chunks_of_lines
from deltarank.datasets.readers.undecided import read_undecided

LARGEST_INDEX = 2**31 - 1


class Ranges(NamedTuple):
    """Least and largest index of features and labels that may occur, and why no larger ones."""

    features: tuple[int, int]
    labels: tuple[int, int]
    reason: str = ""


def read_libsvm(
    path: str | PathLike[str],
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    first_feature: int = 1,
    first_label: int = 0,
    cache: str | PathLike[str] | None = None,
) -> Data:
    r"""Read LIBSVM multilabel text: ``label,label feature:value feature:value``, one row per line.

    A line without labels starts with a blank or with its first feature; an empty line is a row
    without labels and features; a line that starts with ``#`` is none.

    Parameters
    ----------
    path : path
        The file, plain or packed by gzip, bzip2 or xz.
    n_features, n_labels : int, optional
        Their numbers; by default the largest index that occurs.
    first_feature, first_label : int
        The least index, 1 for features and 0 for labels unless the file does otherwise.
    cache : path, optional
        Folder to keep what was read in, for a quicker second time; the file is parsed again when it
        has changed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.svm")
    >>> _ = path.write_text("0,2 1:0.5 3:2\n 2:-1\n")
    >>> data = read_libsvm(path)
    >>> data.X.toarray()
    array([[ 0.5,  0. ,  2. ],
           [ 0. , -1. ,  0. ]])
    >>> data.Y.toarray()
    array([[1, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    path = Path(path)
    ranges = Ranges(
        (first_feature, _last(first_feature, n_features)),
        (first_label, _last(first_label, n_labels)),
        "by n_features= or n_labels=",
    )

    def parse() -> Data:
        X, Y = _read(path, chunks_of_lines(path), ranges, 0)
        _require_rows(path, X.shape[0])
        return Data(_widened(X, n_features), _widened(Y, n_labels))

    sizes = [n_features, n_labels, first_feature, first_label]
    return cached(path, cache, {"format": "libsvm", "sizes": sizes}, parse)


def read_xmc(path: str | PathLike[str], *, cache: str | PathLike[str] | None = None) -> Data:
    r"""Read the text format of the extreme classification repository.

    Its first line gives the numbers of rows, features and labels; the others are as in
    `read_libsvm`, with all indices from 0; `cache` is as there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.txt")
    >>> _ = path.write_text("2 3 4\n0,3 0:0.5 2:2\n 1:-1\n")
    >>> read_xmc(path)
    <Data: 2 rows, 3 sparse features, 4 labels>
    """
    path = Path(path)
    return cached(path, cache, {"format": "xmc"}, lambda: _parse_xmc(path))


def _parse_xmc(path: Path) -> Data:
    (n_rows, n_features, n_labels), ranges, chunks = _open_xmc(path, CHUNK_BYTES)
    X, Y = _read(path, chunks, ranges, 1)
    _require_rows(path, X.shape[0], n_rows)
    return Data(_widened(X, n_features), _widened(Y, n_labels))


def _open_xmc(path: Path, n_bytes: int) -> tuple[list[int], Ranges, Iterator[bytes]]:
    chunks = chunks_of_lines(path, n_bytes)
    first = next(chunks, b"\n")
    header, _, rest = first.partition(b"\n")
    sizes = _read_header(path, header)
    ranges = Ranges((0, sizes[1] - 1), (0, sizes[2] - 1), "by the first line")
    return sizes, ranges, _with_first(rest, chunks)


def libsvm_blocks(path: Path, n_bytes: int) -> Iterator[Data]:
    """Yield the rows of LIBSVM text, about this many bytes at a time."""
    ranges = Ranges((1, LARGEST_INDEX), (0, LARGEST_INDEX))
    return _blocks(path, chunks_of_lines(path, n_bytes), ranges, 0, None)


def xmc_blocks(path: Path, n_bytes: int) -> Iterator[Data]:
    """Yield the rows of XMC text, about this many bytes at a time."""
    (n_rows, _, _), ranges, chunks = _open_xmc(path, n_bytes)
    return _blocks(path, chunks, ranges, 1, n_rows)


def _blocks(
    path: Path, chunks: Iterator[bytes], ranges: Ranges, n_lines: int, promised: int | None
) -> Iterator[Data]:
    n_rows = 0
    for chunk in chunks:
        X, Y = _read(path, iter([chunk]), ranges, n_lines)
        n_lines += chunk.count(b"\n")
        n_rows += X.shape[0]
        if X.shape[0]:
            yield Data(X, Y)
    _require_rows(path, n_rows, promised)


def _require_rows(path: Path, n_rows: int, promised: int | None = None) -> None:
    if n_rows == 0:
        raise DataFileError(path, "the file holds no rows")
    if promised is not None and n_rows != promised:
        raise DataFileError(
            path,
            f"the first line promises {promised} rows; got {n_rows} "
            "(an empty line is a row without labels and features)",
            line=1,
        )


def _read_header(path: Path, header: bytes) -> list[int]:
    numbers = header.split()
    if len(numbers) != 3 or not all(re.fullmatch(rb"\d{1,18}", number) for number in numbers):
        raise DataFileError(
            path,
            f"the first line must be the numbers of rows, features and labels; got {shown(header)}",
            line=1,
            column=1,
        )
    sizes = [int(number) for number in numbers]
    if max(sizes[1:]) > LARGEST_INDEX:
        raise DataFileError(
            path, f"at most {LARGEST_INDEX} features and labels can be read", line=1, column=1
        )
    return sizes


def _with_first(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from others


def _last(first: int, count: int | None) -> int:
    return LARGEST_INDEX if count is None else first + count - 1


def _widened(matrix: sparse.csr_array, width: int | None) -> sparse.csr_array:
    if width is not None:
        matrix.resize(matrix.shape[0], width)
    return matrix


def _read(
    path: Path, chunks: Iterator[bytes], ranges: Ranges, n_lines: int
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Parse chunk after chunk, pieces of a chunk in threads, and put them one after the other."""
    kinds = (np.int64, np.int32, np.float64, np.int64, np.int32)
    fields = [Growing(kind) for kind in kinds]
    starts, indices, values, label_starts, members = fields
    starts.append(np.zeros(1, np.int64))
    label_starts.append(np.zeros(1, np.int64))
    parse = partial(kernel.parse_rows, feature_range=ranges.features, label_range=ranges.labels)
    width = height = unordered = 0
    for chunk in chunks:
        pieces = _cut(chunk, n_threads())
        for piece, (rows, seen, problem) in zip(
            pieces, run([partial(parse, piece) for piece in pieces]), strict=True
        ):
            if problem[0] != kernel.FINE:
                _refuse(path, piece.tobytes(), problem, ranges, n_lines)
            if seen[4]:
                _decide(path, piece.tobytes(), rows[2], ranges, n_lines)
            starts.append(rows[0][1:] + indices.size)
            label_starts.append(rows[3][1:] + members.size)
            for field, array in ((indices, rows[1]), (values, rows[2]), (members, rows[4])):
                field.append(array)
            n_lines += seen[0]
            width, height = max(width, seen[1]), max(height, seen[2])
            unordered += seen[3]
    n_rows = starts.size - 1
    matrix = (values.finish(), indices.finish(), starts.finish())
    X = sparse.csr_array(matrix, (n_rows, width))
    ones = np.ones(members.size, np.int8)
    Y = sparse.csr_array((ones, members.finish(), label_starts.finish()), (n_rows, height))
    if unordered:
        X.sort_indices()
    return X, Y


def _decide(
    path: Path, text: bytes, values: NDArray[np.float64], ranges: Ranges, before: int
) -> None:
    """Read the numbers that the kernel left undecided, and refuse an infinite one."""
    at = read_undecided(text, values)
    if at is not None:
        line_at = text.rfind(b"\n", 0, at) + 1
        _refuse(path, text, (kernel.LARGE_VALUE, line_at, at), ranges, before)


def _cut(chunk: bytes, n_pieces: int) -> list[NDArray[np.uint8]]:
    """Cut whole lines into about equal pieces of whole lines."""
    cuts = [0]
    for i in range(1, n_pieces):
        cut = chunk.find(b"\n", max(cuts[-1], i * len(chunk) // n_pieces)) + 1
        if cuts[-1] < cut < len(chunk):
            cuts.append(cut)
    text = np.frombuffer(chunk, np.uint8)
    return np.split(text, cuts[1:])


def _refuse(
    path: Path, text: bytes, problem: tuple[int, int, int], ranges: Ranges, before: int
) -> NoReturn:
    """Raise an error that says what was wrong, and where."""
    kind, line_at, at = problem
    if kind == kernel.TWICE:
        at = _second_twin(text, line_at)
    word = re.match(rb"[^\s#]*", text[at:]).group()  # type: ignore[union-attr]
    piece = word.partition(b"," if kind in (kernel.BAD_LABEL, kernel.LABEL_RANGE) else b" ")[0]
    if kind in (kernel.FEATURE_RANGE, kernel.TWICE):
        piece = word.partition(b":")[0]
    raise DataFileError(
        path,
        _PROBLEMS[kind].format(got=shown(piece), bounds=_bounds(kind, ranges)),
        line=before + text.count(b"\n", 0, at) + 1,
        column=at - line_at + 1,
    )


_PROBLEMS = {
    kernel.BAD_LABEL: "labels must be whole numbers joined by commas; got {got}",
    kernel.BAD_FEATURE: "features must be written index:value; got {got}",
    kernel.BAD_VALUE: "a value must be a number; got {got}",
    kernel.LARGE_VALUE: "a value must be finite; got {got}",
    kernel.LABEL_RANGE: "labels must be {bounds}; got {got}",
    kernel.FEATURE_RANGE: "features must be {bounds}; got {got}",
    kernel.TWICE: "a feature may occur only once in a row; got {got} again",
}


def _bounds(kind: int, ranges: Ranges) -> str:
    is_label = kind == kernel.LABEL_RANGE
    first, last = ranges.labels if is_label else ranges.features
    if last < first:
        return f"none at all, {ranges.reason}"
    if last == LARGEST_INDEX:
        option = "first_label" if is_label else "first_feature"
        return f"from {first} (see {option}=) to {LARGEST_INDEX}"
    return f"from {first} to {last}, {ranges.reason}"


def _second_twin(text: bytes, line_at: int) -> int:
    """Return where a feature of the line occurs for the second time."""
    line = text[line_at : text.index(b"\n", line_at)].partition(b"#")[0]
    seen = set()
    for word in re.finditer(rb"(?:^|(?<=\s))(\d+):", line):
        feature = word.group(1).lstrip(b"0")
        if feature in seen:
            return line_at + word.start()
        seen.add(feature)
    return line_at
