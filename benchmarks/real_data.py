"""Real data sets of the catalogue for benchmarks and tests, scaled as users would scale them."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from deltarank import datasets


class DataSet(NamedTuple):
    """Training and test rows; features dense float64 or CSR, labels CSR of 0 and 1."""

    X: object
    Y: sparse.csr_array
    X_test: object
    Y_test: sparse.csr_array


def load(name: str) -> DataSet:
    """Return a data set as it is in its files."""
    split = datasets.load(name)
    return DataSet(split.X_train, split.Y_train, split.X_test, split.Y_test)


def standardized(data: DataSet) -> DataSet:
    """Scale dense features to mean 0 and deviation 1 in training, as float32."""
    mean, deviation = data.X.mean(axis=0), data.X.std(axis=0)
    deviation[deviation == 0] = 1
    scaled = [((X - mean) / deviation).astype(np.float32) for X in (data.X, data.X_test)]
    return DataSet(scaled[0], data.Y, scaled[1], data.Y_test)


def unit_rows(data: DataSet) -> DataSet:
    """Scale sparse rows to length 1, as float32."""
    scaled = []
    for X in (data.X, data.X_test):
        lengths = np.sqrt(X.multiply(X).sum(axis=1))
        lengths[lengths == 0] = 1
        scaled.append(sparse.csr_array(X.multiply(1 / lengths[:, None])).astype(np.float32))
    return DataSet(scaled[0], data.Y, scaled[1], data.Y_test)
