"""Labels for a batch of rows, row after row, each the best given those of all others."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.top_labels import select_top
from deltarank.decisions.kernels.utilities import COVERAGE, utility


@njit(nogil=True, cache=True)
def tally(chances, chosen, counts):
    """Write the sums over rows of chance where chosen, of choices, of log of one minus chance.

    Of chances of 1, whose logarithm is none, the number goes into the last row of ``counts``.
    """
    counts[:] = 0.0
    for i in range(chosen.shape[0]):
        for label in chosen[i]:
            if label >= 0:
                _count(counts, label, chances[i, label], 1.0)


@njit(nogil=True, cache=True)
def improve(kind, chances, relevant, counts, chosen, gains):
    """Choose each row's labels again, all others' staying; return how many rows changed.

    Parameters
    ----------
    kind : int
        One of the kinds of `utility`, or COVERAGE.
    chances : array of shape (n, m)
    relevant : array of shape (m,)
        Mean chance of each label.
    counts : array of shape (4, m)
        As `tally` writes them; kept up to date.
    chosen : array of shape (n, k)
        Labels of each row, -1 where none has been chosen yet; overwritten.
    gains : array of shape (n, m)
        Filled with what each label adds to the objective in each row.
    """
    n_rows, n_labels = chances.shape
    k = chosen.shape[1]
    best = np.empty((1, k), np.intp)
    n_changed = 0
    for i in range(n_rows):
        for label in chosen[i]:
            if label >= 0:
                _count(counts, label, chances[i, label], -1.0)
        for label in range(n_labels):
            gains[i, label] = _gain(kind, chances[i, label], counts, label, relevant, n_rows)
        select_top(gains[i : i + 1], k, best)
        changed = False
        for place in range(k):
            changed |= best[0, place] != chosen[i, place]
            chosen[i, place] = best[0, place]
            _count(counts, best[0, place], chances[i, best[0, place]], 1.0)
        n_changed += changed
    return n_changed


@njit(nogil=True, cache=True)
def _count(counts, label, chance, sign):
    counts[0, label] += sign * chance
    counts[1, label] += sign
    if chance < 1:
        counts[2, label] += sign * np.log1p(-chance)
    else:
        counts[3, label] += sign


@njit(nogil=True, cache=True)
def _gain(kind, chance, counts, label, relevant, n_rows):
    if relevant[label] <= 0:
        return -1.0  # less than any other gain: a label without a chance is of no use to anyone
    if kind == COVERAGE:
        # Nobody else finds the label, and this row does.
        return chance * np.exp(counts[2, label]) if counts[3, label] == 0 else 0.0
    hit, chosen = counts[0, label], counts[1, label]
    after = utility(kind, (hit + chance) / n_rows, (chosen + 1) / n_rows, relevant[label])
    return after - utility(kind, hit / n_rows, chosen / n_rows, relevant[label])


@njit(nogil=True, cache=True)
def batch_value(kind, counts, relevant, n_rows):
    """Return the mean over labels of what the choices are worth."""
    total = 0.0
    for label in range(relevant.shape[0]):
        if kind != COVERAGE:
            hit, chosen = counts[0, label] / n_rows, counts[1, label] / n_rows
            total += utility(kind, hit, chosen, relevant[label])
        elif counts[3, label] > 0:
            total += 1.0
        else:
            total -= np.expm1(counts[2, label])
    return total / relevant.shape[0]
