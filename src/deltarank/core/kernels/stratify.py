"""Iterative stratification of label sets."""

import numpy as np

from deltarank.core.compiling import njit


@njit(nogil=True, cache=True)
def assign_folds(starts, members, label_starts, label_rows, shuffle, n_folds):
    """Deal rows to folds, those of the rarest remaining label first.

    ``label_rows[label_starts[l]:label_starts[l + 1]]`` are the rows with label l. `shuffle` is a
    permutation of the rows that decides their order within a label and the order of the rest.
    """
    n_rows = starts.shape[0] - 1
    n_labels = label_starts.shape[0] - 1
    fold_of = np.full(n_rows, -1, np.int32)
    left = (label_starts[1:] - label_starts[:-1]).copy()
    wanted = np.empty((n_labels, n_folds))
    for label in range(n_labels):
        wanted[label, :] = left[label] / n_folds
    room = np.full(n_folds, n_rows / n_folds)
    while True:
        rarest = -1
        for label in range(n_labels):
            if left[label] > 0 and (rarest < 0 or left[label] < left[rarest]):
                rarest = label
        if rarest < 0:
            break
        rows = label_rows[label_starts[rarest] : label_starts[rarest + 1]].copy()
        for row in rows[np.argsort(shuffle[rows])]:
            if fold_of[row] < 0:
                fold = neediest(wanted[rarest], room)
                fold_of[row] = fold
                room[fold] -= 1
                for k in range(starts[row], starts[row + 1]):
                    wanted[members[k], fold] -= 1
                    left[members[k]] -= 1
    for row in np.argsort(shuffle):
        if fold_of[row] < 0:
            fold = neediest(room, room)
            fold_of[row] = fold
            room[fold] -= 1
    return fold_of


@njit(nogil=True, cache=True)
def neediest(wanted, room):
    """Return the fold that wants most; among equals the one with most room."""
    best = 0
    for fold in range(1, wanted.shape[0]):
        more = wanted[fold] - wanted[best]
        if more > 0 or (more == 0 and room[fold] > room[best]):
            best = fold
    return best
