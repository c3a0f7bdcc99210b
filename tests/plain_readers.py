"""Plain readers of ARFF, LIBSVM and XMC text, slow on purpose: a second opinion."""

import lzma
import re

import numpy as np
from scipy import sparse


def label_names(path):
    """Return the names in a MULAN file of labels."""
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
