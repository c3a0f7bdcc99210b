"""Labels for a batch of rows, row after row, each the best given those of all others."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.top_labels import select_top
from deltarank.decisions.kernels.utilities import COVERAGE, F1, H_MEAN, JACCARD, utility

# A label's gain in a row of chance p is (a + b p + c p^2) / (d + e p) + f: the rows of its terms.
# They depend on the other rows alone, so that a row changes those of the labels it gains and loses.
N_TERMS = 6


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
        Sum of the chances of each label.
    counts : array of shape (4, m)
        As `tally` writes them; kept up to date.
    chosen : array of shape (n, k)
        Labels of each row, -1 where none has been chosen yet; overwritten.
    gains : array of shape (n, m), or (1, m) for room only
        Filled with what each label adds to the objective, times m, in each row.
    """
    n_rows, n_labels = chances.shape
    k = chosen.shape[1]
    best, terms = np.empty((1, k), np.intp), np.empty((N_TERMS, n_labels))
    for label in range(n_labels):
        _set_terms(kind, terms, counts, label, relevant[label], n_rows)
    n_changed = 0
    for i in range(n_rows):
        for label in chosen[i]:
            if label >= 0:
                _count(counts, label, chances[i, label], -1.0)
                _set_terms(kind, terms, counts, label, relevant[label], n_rows)
        at = min(i, gains.shape[0] - 1)
        row = gains[at : at + 1]
        _fill_gains(kind, chances[i], terms, row[0])
        select_top(row, k, best)
        changed = False
        for place in range(k):
            label = best[0, place]
            changed |= label != chosen[i, place]
            chosen[i, place] = label
            _count(counts, label, chances[i, label], 1.0)
            _set_terms(kind, terms, counts, label, relevant[label], n_rows)
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
def _set_terms(kind, terms, counts, label, relevant, n_rows):
    """Write the terms of a label's gain: what choosing it once more is worth, less what it is."""
    hit, after = counts[0, label], counts[1, label] + 1
    terms[:, label] = 0.0
    terms[3, label] = 1.0
    if relevant <= 0:
        terms[0, label] = -1.0  # less than any other: a label without a chance is of no use
    elif kind == COVERAGE:
        # Nobody else finds the label, and this row does.
        terms[1, label] = np.exp(counts[2, label]) if counts[3, label] == 0 else 0.0
    elif kind == F1:
        terms[1, label] = 2 / (after + relevant)
        terms[0, label] = -hit * terms[1, label] / (after - 1 + relevant)
    elif kind == JACCARD:
        terms[0, label], terms[1, label] = hit, 1.0
        terms[3, label], terms[4, label] = after + relevant - hit, -1.0
        terms[5, label] = -hit / (after - 1 + relevant - hit)
    elif kind == H_MEAN and relevant < n_rows:
        per_hit, per_false = 1 / relevant, 1 / (n_rows - relevant)
        found, spared = hit * per_hit, 1 - (after - hit) * per_false
        terms[0, label] = 2 * found * spared
        terms[1, label] = 2 * (found * per_false + spared * per_hit)
        terms[2, label] = 2 * per_hit * per_false
        terms[3, label], terms[4, label] = found + spared, per_hit + per_false
        before = utility(kind, hit / n_rows, (after - 1) / n_rows, relevant / n_rows)
        terms[5, label] = -before


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_gains(kind, chances, terms, gains):
    """Write the gain of every label in a row: loops without branches, which the compiler widens."""
    a, b = terms[0], terms[1]
    if kind in (F1, COVERAGE):
        for label in range(gains.shape[0]):
            gains[label] = a[label] + b[label] * chances[label]
        return
    c, d, e, f = terms[2], terms[3], terms[4], terms[5]
    for label in range(gains.shape[0]):
        p = np.float64(chances[label])
        below = d[label] + e[label] * p
        value = (a[label] + p * (b[label] + p * c[label])) / below
        gains[label] = f[label] + (value if below > 0 else 0.0)


@njit(nogil=True, cache=True)
def batch_value(kind, counts, relevant, n_rows):
    """Return the mean over labels of what the choices are worth."""
    total = 0.0
    for label in range(relevant.shape[0]):
        if kind != COVERAGE:
            hit, chosen = counts[0, label] / n_rows, counts[1, label] / n_rows
            total += utility(kind, hit, chosen, relevant[label] / n_rows)
        elif counts[3, label] > 0:
            total += 1.0
        else:
            total -= np.expm1(counts[2, label])
    return total / relevant.shape[0]
