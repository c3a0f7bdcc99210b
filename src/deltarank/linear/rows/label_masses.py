"""What the cells of each label weigh together, over all rows or without a fold of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.labels import LabelSets

Array = NDArray[Any]


def sums_by_label(labels: LabelSets, parts: list[Array], weights: Array, costs: Array) -> Array:
    """Return the sums (3, p) of relevant cells, of their costs, and of the other cells.

    Parameters
    ----------
    labels : LabelSets
    parts : list of ndarray
        The rows of each fold that count. With several, problem ``l * len(parts) + f`` is label l
        without the rows of fold f.
    weights : ndarray of shape (n,)
    costs : ndarray of shape (n,)
        What a row's relevant cells cost.
    """
    n_folds = len(parts)
    folds, counted = np.zeros(len(weights), np.int64), np.zeros(len(weights))
    for fold, part in enumerate(parts):
        folds[part], counted[part] = fold, weights[part]
    known = np.bincount(folds, counted, minlength=n_folds)[None, :]
    relevant = _by_label_and_fold(labels, folds, counted, n_folds)
    costly = _by_label_and_fold(labels, folds, counted * costs, n_folds)
    if labels.unknown is not None:
        known = known - _by_label_and_fold(labels.unknown, folds, counted, n_folds)
    sums = np.stack([relevant, costly, np.maximum(known - relevant, 0.0)])
    if n_folds > 1:
        sums = np.maximum(sums.sum(axis=2, keepdims=True) - sums, 0.0)
    return sums.reshape(3, -1)


def _by_label_and_fold(labels: LabelSets, folds: Array, weights: Array, n_folds: int) -> Array:
    cells = labels.members.astype(np.int64) * n_folds + folds[labels.rows]
    size = labels.n_labels * n_folds
    return np.bincount(cells, weights[labels.rows], minlength=size).reshape(-1, n_folds)
