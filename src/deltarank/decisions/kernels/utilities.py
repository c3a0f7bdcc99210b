"""What a label is worth, given how often it is chosen, rightly chosen and relevant.

All three are shares of the rows: ``hit`` relevant and chosen, ``chosen``, ``relevant``.
"""

import numpy as np

from deltarank.core.compiling import njit

F1, JACCARD, H_MEAN, COVERAGE = 0, 1, 2, 3


@njit(nogil=True, cache=True, error_model="numpy")
def utility(kind, hit, chosen, relevant):
    """Return F1, Jaccard's index, or the harmonic mean of the rates of both classes; 0 for 0/0."""
    if kind == F1:
        return 2 * hit / (chosen + relevant) if chosen + relevant > 0 else 0.0
    if kind == JACCARD:
        return hit / (chosen + relevant - hit) if chosen + relevant - hit > 0 else 0.0
    if relevant <= 0 or relevant >= 1:
        return 0.0
    hit_rate, spared = hit / relevant, 1 - (chosen - hit) / (1 - relevant)
    return 2 * hit_rate * spared / (hit_rate + spared) if hit_rate + spared > 0 else 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def slopes(kind, hit, chosen, relevant):
    """Return the derivatives of `utility` by ``hit`` and by ``chosen``."""
    if kind == F1:
        total = chosen + relevant
        return (2 / total, -2 * hit / total**2) if total > 0 else (0.0, 0.0)
    if kind == JACCARD:
        union = chosen + relevant - hit
        return ((chosen + relevant) / union**2, -hit / union**2) if union > 0 else (0.0, 0.0)
    if relevant <= 0 or relevant >= 1:
        return 0.0, 0.0
    hit_rate, spared = hit / relevant, 1 - (chosen - hit) / (1 - relevant)
    both = hit_rate + spared
    if both <= 0:
        return 0.0, 0.0
    by_hit_rate, by_spared = 2 * (spared / both) ** 2, 2 * (hit_rate / both) ** 2
    false = by_spared / (1 - relevant)
    return by_hit_rate / relevant + false, -false


@njit(nogil=True, cache=True)
def mean_utility(kind, hit, chosen, relevant):
    """Return the mean of `utility` over labels."""
    total = 0.0
    for label in range(len(hit)):
        total += utility(kind, hit[label], chosen[label], relevant[label])
    return total / len(hit)


@njit(nogil=True, cache=True)
def all_slopes(kind, hit, chosen, relevant):
    """Return the derivatives of every label's utility, shape (2, m)."""
    slopes_of_labels = np.empty((2, len(hit)))
    for label in range(len(hit)):
        slopes_of_labels[0, label], slopes_of_labels[1, label] = slopes(
            kind, hit[label], chosen[label], relevant[label]
        )
    return slopes_of_labels
