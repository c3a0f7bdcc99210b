"""What a reader gives back."""

from dataclasses import dataclass
from typing import Any

from scipy import sparse

from deltarank.datasets.encoder import Encoder


@dataclass(frozen=True)
class Data:
    r"""Rows read from a file.

    Attributes
    ----------
    X : array or CSR array of shape (n, d)
    Y : CSR array of shape (n, m)
        Label sets as 0 and 1, int8.
    feature_names, label_names : tuple of str, or None
        None where the file has no names, only numbers.
    encoder : Encoder or None
        How columns of a table became features, to do the same to other rows.
    label_column : str or None
        The column of label lists, of a table that has one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deltarank.datasets import read
    >>> path = Path(tempfile.mkdtemp(), "items.csv")
    >>> _ = path.write_text("size,tags\n1,small\n9,large\n")
    >>> data = read(path)
    >>> data
    <Data: 2 rows, 1 dense features, 2 labels>
    >>> data.label_names, data.Y.toarray().tolist(), data.label_column
    (('large', 'small'), [[0, 1], [1, 0]], 'tags')
    """

    X: Any
    Y: sparse.csr_array
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    encoder: Encoder | None = None
    label_column: str | None = None

    def __repr__(self) -> str:
        kind = "sparse" if sparse.issparse(self.X) else "dense"
        n, d = self.X.shape
        return f"<Data: {n} rows, {d} {kind} features, {self.Y.shape[1]} labels>"
