"""Real data sets of the catalogue for benchmarks and tests, scaled as users would scale them.

Where DELTARANK_BENCH_SCALE is below 1, made-up data of the same kind stand in for them.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from deltarank import datasets
from deltarank.datasets import CATALOGUE, long_tailed, write
from deltarank.datasets.fetch import fetch
from measure import SCALE, LeftOut, scaled

# The sets of the catalogue with fewer features are dense, the others sparse.
FEWEST_SPARSE = 300


class DataSet(NamedTuple):
    """Training and test rows; features dense float64 or CSR, labels CSR of 0 and 1."""

    X: object
    Y: sparse.csr_array
    X_test: object
    Y_test: sparse.csr_array


def load(name: str) -> DataSet:
    """Return a data set as it is in its files."""
    if SCALE < 1:
        return stand_in(name)
    _fetched(name)
    split = datasets.load(name)
    return DataSet(split.X_train, split.Y_train, split.X_test, split.Y_test)


def training_file(name: str, folder: Path) -> Path:
    """Return the file of the training rows; that of a stand-in is written into the folder."""
    if SCALE >= 1:
        return _fetched(name)[0]
    entry, data = CATALOGUE[name], stand_in(name)
    path = folder / Path(entry.parts[0].name).name
    if entry.format == "arff":
        _write_arff(path, data.X, data.Y)
        return path
    packed = path.with_name(f"{path.name}.xz")
    write(packed, data.X, data.Y, format=entry.format)
    return packed


def _fetched(name: str) -> list[Path]:
    try:
        return fetch(CATALOGUE[name])
    except FileNotFoundError as error:
        raise LeftOut(str(error)) from None


def stand_in(name: str) -> DataSet:
    """Make up a small data set: dense or sparse like the real one, labels few and a long tail."""
    entry = CATALOGUE[name]
    n_train, n_test = scaled(entry.n_train, 1000), scaled(entry.n_test, 200)
    n_features, n_labels = scaled(entry.n_features, 100), scaled(entry.n_labels, 100)
    X, Y = long_tailed(n_train + n_test, n_features, n_labels, random_state=0)
    # As in most real sets, some rows have no label.
    Y.data[np.repeat(np.arange(Y.shape[0]) % 50 == 0, np.diff(Y.indptr))] = 0
    Y.eliminate_zeros()
    X = X.astype(np.float64)
    if entry.n_features < FEWEST_SPARSE:
        X = X @ np.random.default_rng(0).standard_normal((n_features, n_features))
    return DataSet(X[:n_train], Y[:n_train], X[n_train:], Y[n_train:])


def _write_arff(path: Path, X: object, Y: sparse.csr_array) -> None:
    """Write dense rows of numbers, or sparse rows of ones, labels last."""
    lines = [f"@relation 'stand-in: -C -{Y.shape[1]}'"]
    lines += [f"@attribute feature{i} numeric" for i in range(X.shape[1])]
    lines += [f"@attribute label{i} {{0,1}}" for i in range(Y.shape[1])]
    lines += ["@data"]
    if sparse.issparse(X):
        both = sparse.hstack([X, Y], format="csr")
        members = np.split(both.indices, both.indptr[1:-1])
        lines += ["{" + ",".join(f"{i} 1" for i in np.sort(row)) + "}" for row in members]
    else:
        pairs = zip(X.tolist(), Y.toarray().tolist(), strict=True)
        lines += [",".join(map(str, features + labels)) for features, labels in pairs]
    path.write_text("\n".join(lines) + "\n")


def standardized(data: DataSet) -> DataSet:
    """Scale dense features to mean 0 and deviation 1 in training, as float32."""
    mean, deviation = data.X.mean(axis=0), data.X.std(axis=0)
    deviation[deviation == 0] = 1
    X, X_test = (((X - mean) / deviation).astype(np.float32) for X in (data.X, data.X_test))
    return DataSet(X, data.Y, X_test, data.Y_test)


def unit_rows(data: DataSet) -> DataSet:
    """Scale sparse rows to length 1, as float32."""
    parts = []
    for X in (data.X, data.X_test):
        lengths = np.sqrt(X.multiply(X).sum(axis=1))
        lengths[lengths == 0] = 1
        parts.append(sparse.csr_array(X.multiply(1 / lengths[:, None])).astype(np.float32))
    return DataSet(parts[0], data.Y, parts[1], data.Y_test)
