"""What a reader gives back, and what it says when it cannot."""

from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from scipy import sparse

from deltarank.datasets.encoder import Encoder


class DataFileError(ValueError):
    """A data file that cannot be read as it should be: which file, where in it, and why.

    Examples
    --------
    >>> print(DataFileError("bad.svm", "a value must be a number; got 'x'", line=3, column=7))
    bad.svm, line 3, column 7: a value must be a number; got 'x'
    """

    def __init__(
        self,
        path: str | PathLike[str],
        problem: str,
        *,
        line: int | None = None,
        column: int | str | None = None,
    ) -> None:
        self.path, self.problem, self.line, self.column = fspath(path), problem, line, column
        place = [self.path]
        if line is not None:
            place.append(f"line {line}")
        if column is not None:
            place.append(f"column {column!r}")
        super().__init__(f"{', '.join(place)}: {problem}")


@dataclass(frozen=True)
class Data:
    """Rows read from a file.

    Attributes
    ----------
    X : array or CSR array of shape (n, d)
    Y : CSR array of shape (n, m)
        Label sets as 0 and 1, int8.
    feature_names, label_names : tuple of str, or None
        None where the file has no names, only numbers.
    encoder : Encoder or None
        How columns of a table became features, to do the same to other rows.
    """

    X: Any
    Y: sparse.csr_array
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    encoder: Encoder | None = None

    def __repr__(self) -> str:
        kind = "sparse" if sparse.issparse(self.X) else "dense"
        n, d = self.X.shape
        return f"<Data: {n} rows, {d} {kind} features, {self.Y.shape[1]} labels>"


def shown(token: str | bytes) -> str:
    """Quote a piece of a file for an error message, shortened.

    Examples
    --------
    >>> shown(b"abc"), shown("x" * 50)
    ("'abc'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'")
    """
    text = token.decode("utf-8", "replace") if isinstance(token, bytes) else token
    return repr(text if len(text) <= 30 else text[:30] + "...")
