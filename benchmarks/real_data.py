"""Plain loaders of the real data sets for benchmarks and tests; DELTARANK_DATA names their folder.

Simple and slow on purpose: they serve as a second opinion on any reader.
"""

import lzma
import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse


class DataSet(NamedTuple):
    """Training and test rows; features dense float64 or CSR, labels CSR of 0 and 1."""

    X: object
    Y: sparse.csr_array
    X_test: object
    Y_test: sparse.csr_array


def data_folder() -> Path:
    """Return the folder, or say what to set."""
    folder = os.environ.get("DELTARANK_DATA", "")
    if not Path(folder).is_dir() or not folder:
        raise SystemExit("set DELTARANK_DATA to the folder of the real data sets")
    return Path(folder)


def _label_names(path):
    return re.findall(r'<label\s+name="([^"]*)"', path.read_text())


def read_arff(path, names):
    """Read dense or sparse ARFF; the columns called as in `names` are labels."""
    columns, rows, in_data = [], [], False
    for line in path.read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        if not in_data:
            if line.lower().startswith("@attribute"):
                found = re.match(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)", line, re.I)
                columns.append(found.group(1).strip("'\""))
            in_data = line.lower().startswith("@data")
        else:
            rows.append(line)
    table = np.zeros((len(rows), len(columns)))
    for i, line in enumerate(rows):
        if line.startswith("{"):
            for cell in filter(None, line.strip("{}").split(",")):
                column, value = cell.split()
                table[i, int(column)] = float(value)
        else:
            table[i] = line.split(",")
    is_label = np.isin(columns, names)
    assert is_label.sum() == len(names), path
    features, labels = table[:, ~is_label], table[:, is_label]
    if rows[0].startswith("{"):
        features = sparse.csr_array(features)
    return features, sparse.csr_array(labels.astype(np.int8))


def read_svm(path, *, n_features, n_labels, first_feature, header):
    """Read LIBSVM multilabel or XMC text, .xz; a line that starts with a blank has no label."""
    with lzma.open(path, "rt") as file:
        lines = file.read().splitlines()[header:]
    label_rows, feature_rows, starts_y, starts_x, values = [], [], [0], [0], []
    for line in lines:
        labels, *cells = line.split(" ") if not line.startswith(" ") else ["", *line.split()]
        label_rows.extend(int(label) for label in labels.split(",") if label)
        for cell in cells:
            if cell:
                column, value = cell.split(":")
                feature_rows.append(int(column) - first_feature)
                values.append(float(value))
        starts_y.append(len(label_rows))
        starts_x.append(len(values))
    Y = sparse.csr_array(
        (np.ones(len(label_rows), np.int8), label_rows, starts_y), shape=(len(lines), n_labels)
    )
    X = sparse.csr_array((values, feature_rows, starts_x), shape=(len(lines), n_features))
    Y.sort_indices()
    X.sort_indices()
    return X, Y


def _mulan(name):
    folder = data_folder() / name
    names = _label_names(folder / f"{name}.xml")
    train = read_arff(folder / f"{name}-train.arff", names)
    return DataSet(*train, *read_arff(folder / f"{name}-test.arff", names))


def _image():
    folder = data_folder() / "image"
    X, Y = read_arff(folder / "image.arff", _label_names(folder / "image.xml"))
    shuffled = np.random.default_rng(0).permutation(len(X))
    train, test = shuffled[:1200], shuffled[1200:]
    return DataSet(X[train], Y[train], X[test], Y[test])


def _mediamill():
    folder = data_folder() / "mediamill"
    parts = []
    for part in ("train", "test"):
        X, Y = read_svm(
            folder / f"mediamill-{part}.svm.xz",
            n_features=120, n_labels=101, first_feature=1, header=0,
        )  # fmt: skip
        parts += [X.toarray(), Y]
    return DataSet(*parts)


def _eurlex():
    folder = data_folder() / "eurlex-4k"
    parts = []
    for part in ("train", "test"):
        parts += read_svm(
            folder / f"eurlex_{part}.txt.xz",
            n_features=5000, n_labels=3993, first_feature=0, header=1,
        )  # fmt: skip
    return DataSet(*parts)


LOADERS = {
    "emotions": lambda: _mulan("emotions"),
    "scene": lambda: _mulan("scene"),
    "yeast": lambda: _mulan("yeast"),
    "image": _image,
    "delicious": lambda: _mulan("delicious"),
    "mediamill": _mediamill,
    "eurlex-4k": _eurlex,
}


def load(name: str) -> DataSet:
    """Return a data set as it is in its files."""
    return LOADERS[name]()


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
