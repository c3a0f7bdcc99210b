"""Writers of LIBSVM multilabel and XMC text."""

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.core.arguments import refuse_hidden
from deltarank.core.choices import choose
from deltarank.core.labels import LabelSets, label_sets
from deltarank.core.progress import progress
from deltarank.core.threads import row_blocks
from deltarank.datasets.readers.streams import COMPRESSIONS, written

ROWS_PER_BLOCK = 4096


def write_libsvm(path: str | PathLike[str], X: Any, Y: Any) -> None:
    r"""Write LIBSVM multilabel text: features from 1, labels from 0, zeros left out.

    Values are written with the digits that tell them apart, so that reading gives them back. A name
    that ends in .gz, .bz2 or .xz is packed. The file appears whole or not at all.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.svm")
    >>> write_libsvm(path, [[0.5, 0], [0, -1]], [[1, 1], [0, 0]])
    >>> path.read_text()
    '0,1 1:0.5\n 2:-1\n'
    """
    _write(Path(path), X, Y, first_feature=1, with_header=False)


def write_xmc(path: str | PathLike[str], X: Any, Y: Any) -> None:
    r"""Write XMC text: a line with the sizes, then rows with features and labels from 0.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.txt")
    >>> write_xmc(path, [[0.5, 0], [0, -1]], [[1, 1], [0, 0]])
    >>> path.read_text()
    '2 2 2\n0,1 0:0.5\n 1:-1\n'
    """
    _write(Path(path), X, Y, first_feature=0, with_header=True)


WRITERS: dict[str, Callable[[Any, Any, Any], None]] = {"libsvm": write_libsvm, "xmc": write_xmc}
_SUFFIXES = {".svm": "libsvm", ".libsvm": "libsvm", ".xmc": "xmc", ".txt": "xmc"}


def write(path: str | PathLike[str], X: Any, Y: Any, *, format: str | None = None) -> None:
    """Write rows in the format named, or told by the name: .svm or .libsvm, .xmc or .txt.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp(), "items.svm")
    >>> write(path, [[0.5, 0.0], [0.0, 2.0]], [[1, 0, 1], [0, 0, 0]])
    >>> print(path.read_text(), end="")
    0,2 1:0.5
     2:2
    """
    find_writer(path, format)(path, X, Y)


def find_writer(path: str | PathLike[str], format: str | None) -> Callable[[Any, Any, Any], None]:
    """Return the writer of the format named, or told by the name of the file."""
    if format is None:
        bare = Path(path)
        while bare.suffix in COMPRESSIONS:
            bare = bare.with_suffix("")
        if bare.suffix not in _SUFFIXES:
            raise ValueError(
                f"the name {Path(path).name!r} does not tell a format to write: end it in .svm "
                "(LIBSVM) or .txt (XMC), or name the format"
            )
        format = _SUFFIXES[bare.suffix]
    return choose(WRITERS, format, "format")


def _write(path: Path, X: Any, Y: Any, *, first_feature: int, with_header: bool) -> None:
    refuse_hidden(X, "X")
    features = sparse.csr_array(X)
    features.sum_duplicates()
    if not np.isfinite(features.data).all():
        raise ValueError("X must be finite; got NaN or infinity")
    n_rows = features.shape[0]
    labels = None
    if np.shape(Y)[1:] != (0,):
        labels = label_sets(Y, without_unknown="these files have no mark for unknown labels")
    if labels is not None and labels.n_rows != n_rows:
        raise ValueError(
            f"X and Y must have the same number of rows; X has {n_rows} and Y has {labels.n_rows}"
        )
    with written(path) as file, progress(f"writing {path.name}", n_rows) as done:
        if with_header:
            n_labels = 0 if labels is None else labels.n_labels
            file.write(f"{n_rows} {features.shape[1]} {n_labels}\n".encode())
        for rows in row_blocks(n_rows, ROWS_PER_BLOCK):
            file.write("".join(_lines(features, labels, rows, first_feature)).encode())
            done(rows.stop)


def _lines(
    features: sparse.csr_array, labels: LabelSets | None, rows: slice, first_feature: int
) -> Iterator[str]:
    block = features[rows]
    cells = [
        f"{index}:{value.removesuffix('.0')}"
        for index, value in zip(
            (block.indices + first_feature).tolist(), block.data.astype(str).tolist(), strict=True
        )
        if value not in ("0", "0.0", "-0.0")
    ]
    starts = np.concatenate([[0], np.cumsum(block.data != 0)])[block.indptr].tolist()
    for i in range(block.shape[0]):
        row = rows.start + i
        relevant: Any = []
        if labels is not None:
            relevant = labels.members[labels.starts[row] : labels.starts[row + 1]].tolist()
        words = [",".join(map(str, relevant)), *cells[starts[i] : starts[i + 1]]]
        yield " ".join(words) + "\n"
