"""What a reader gives back."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
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
    separator : str or None
        What stands between the labels of those lists, as given or as guessed.
    notes : tuple of str
        What the reader decided that one may want to know: columns left out, labels skipped.

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
    separator: str | None = None
    notes: tuple[str, ...] = ()

    def keep_labels(self, *, min_count: int = 1, max_labels: int | None = None) -> "Data":
        """Return the same rows with the labels that occur often enough, the most frequent at most.

        Examples
        --------
        >>> Y = sparse.csr_array([[1, 0, 1], [1, 1, 0]])
        >>> data = Data([[1], [2]], Y, label_names=("a", "b", "c"))
        >>> data.keep_labels(min_count=2).label_names, data.keep_labels(max_labels=2).label_names
        (('a',), ('a', 'b'))
        """
        counts = np.asarray(self.Y.sum(axis=0)).reshape(-1)
        frequent = np.argsort(-counts, kind="stable")[:max_labels]
        kept = np.sort(frequent[counts[frequent] >= min_count])
        names = self.label_names
        if names is not None:
            names = tuple(names[label] for label in kept)
        return replace(self, Y=sparse.csr_array(self.Y[:, kept]), label_names=names)

    def __repr__(self) -> str:
        kind = "sparse" if sparse.issparse(self.X) else "dense"
        n, d = self.X.shape
        return f"<Data: {n} rows, {d} {kind} features, {self.Y.shape[1]} labels>"
