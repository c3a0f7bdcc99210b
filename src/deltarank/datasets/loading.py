"""Data sets of the catalogue, by name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.core.choices import choose
from deltarank.datasets.catalogue import CATALOGUE, DataSet, Relevant, table1_row
from deltarank.datasets.data import Data
from deltarank.datasets.encoder import Encoder
from deltarank.datasets.fetch import fetch
from deltarank.datasets.readers.errors import DataFileError
from deltarank.datasets.readers.formats import read


@dataclass(frozen=True)
class Split:
    """Training and test rows of a data set; features dense or CSR, label sets CSR.

    `encoder` tells how columns became features, where they did.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> X, Y = np.eye(3), sparse.csr_array(np.eye(3, dtype=np.int8))
    >>> split = Split(X[:2], Y[:2], X[2:], Y[2:], label_names=("a", "b", "c"))
    >>> split.X_train.shape, split.Y_test.shape
    ((2, 3), (1, 3))
    """

    X_train: Any
    Y_train: sparse.csr_array
    X_test: Any
    Y_test: sparse.csr_array
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    encoder: Encoder | None = None


def load(name: str, *, random_state: Any = 0) -> Split:
    """Load a data set of the catalogue, as it is in its files.

    Files are looked for in the folder that the environment variable DELTARANK_DATA names, then in
    the user's cache, to which they are downloaded where an address is known. They are verified.

    Parameters
    ----------
    name : str
        As `deltarank datasets` lists them.
    random_state : int or generator
        Splits the rows of a set that comes in one piece; others have their original split.

    Examples
    --------
    With the files of yeast at hand, ``load("yeast")`` is a `Split`. Where they are not, the error
    says where they are looked for; to a wrong name it says which ones there are:

    >>> try:
    ...     load("beer")
    ... except ValueError as error:
    ...     print(str(error)[:36])
    unknown data set 'beer'; choose one
    """
    entry = choose(CATALOGUE, name, "data set")
    paths = fetch(entry)
    if len(entry.parts) == 1:
        return _split_at_random(entry, _read(entry, paths, 0), random_state)
    train = _read(entry, paths, 0)
    test = _read(entry, paths, 1, train)
    names = train.feature_names, train.label_names
    return Split(train.X, train.Y, test.X, test.Y, *names, train.encoder)


def statistics(name: str) -> dict[str, Any]:
    r"""Return the columns of the paper's Table 1 for a data set, counted from its files.

    Label sets are those of the training rows, or of all rows where there is no original split.

    Examples
    --------
    A set of three rows, made here and entered in the catalogue for the time of the example:

    >>> import os, tempfile
    >>> from pathlib import Path
    >>> from unittest.mock import patch
    >>> from deltarank.datasets.catalogue import File
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, rows in [("train.svm", "0 1:0.5\n0,1 2:1\n"), ("test.svm", "1 1:0.2 2:1\n")]:
    ...     _ = (folder / name).write_text(rows)
    >>> parts = (File("train.svm"), File("test.svm"))
    >>> tiny = DataSet("tiny", 2, 1, 2, 2, parts, format="libsvm")
    >>> with patch.dict(CATALOGUE, tiny=tiny), patch.dict(os.environ, DELTARANK_DATA=str(folder)):
    ...     row = statistics("tiny")
    >>> row["#train"], row["min"], row["ave."], row["max"]
    (2, 1, 1.5, 2)
    """
    entry = choose(CATALOGUE, name, "data set")
    split = load(name)
    sizes = np.diff(split.Y_train.indptr)
    if entry.split == "random":
        sizes = np.concatenate([sizes, np.diff(split.Y_test.indptr)])
    counted = Relevant(int(sizes.min()), int(sizes.sum()), int(sizes.max()))
    return table1_row(entry, counted, len(sizes))


def _read(entry: DataSet, paths: list[Path], part: int, train: Data | None = None) -> Data:
    options: dict[str, Any] = {}
    if entry.format == "arff":
        options["labels"] = paths[-1]
        options["encoder"] = None if train is None else train.encoder
    elif entry.format == "libsvm":
        options = {"n_features": entry.n_features, "n_labels": entry.n_labels}
    data = read(paths[part], format=entry.format, **options)
    _verify(entry, paths[part], part, data)
    X = data.X.toarray() if entry.dense else data.X
    return Data(X, data.Y, data.feature_names, data.label_names, data.encoder)


def _verify(entry: DataSet, path: Path, part: int, data: Data) -> None:
    """Refuse a file that does not hold what the catalogue says."""
    n_rows = (entry.n_train, entry.n_test)[part]
    if len(entry.parts) == 1:
        n_rows = entry.n_train + entry.n_test
    n_features = len(data.encoder.columns) if data.encoder else data.X.shape[1]
    counted = {"rows": data.X.shape[0], "features": n_features, "labels": data.Y.shape[1]}
    wanted = {"rows": n_rows, "features": entry.n_features, "labels": entry.n_labels}
    if entry.relevant:
        counted["relevant labels"] = data.Y.nnz
        wanted["relevant labels"] = entry.relevant[part].total
    if counted != wanted:
        raise DataFileError(
            path,
            f"not the data set {entry.name!r}: {_listed(wanted)} wanted; got {_listed(counted)}",
        )


def _listed(sizes: dict[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sizes.items())


def _split_at_random(entry: DataSet, data: Data, random_state: Any) -> Split:
    shuffled = np.random.default_rng(random_state).permutation(data.X.shape[0])
    train, test = shuffled[: entry.n_train], shuffled[entry.n_train :]
    X, Y = data.X, data.Y
    names = data.feature_names, data.label_names
    return Split(X[train], Y[train], X[test], Y[test], *names, data.encoder)
