"""Where each relevant label stands in its row's ranking."""

import numpy as np

from deltarank.core.compiling import njit

# Up to this many relevant labels, comparing each with the whole row beats sorting the row: the
# comparisons are branch-free and vectorised, several a cycle.
COMPARE_UP_TO = 64


@njit(nogil=True, cache=True)
def count_above_and_tied(row, score):
    """Count the entries of `row` above and equal to `score`."""
    above = 0
    tied = 0
    for j in range(row.shape[0]):  # by index: numba's array iterator would not be vectorised
        if row[j] > score:
            above += 1
        if row[j] == score:
            tied += 1
    return above, tied


# Reordering the sum lets it be vectorised; NaN and infinity keep their meaning.
@njit(nogil=True, cache=True, fastmath={"reassoc"})
def is_finite(row):
    """Tell whether no entry is NaN or infinite: x - x is 0 but for those."""
    total = row[0] - row[0]
    for j in range(row.shape[0]):
        total += row[j] - row[j]
    return total == 0


@njit(nogil=True, cache=True)
def compare(row, members, above, tied):
    """Place each member by comparing it with the whole row."""
    for k in range(members.shape[0]):
        above[k], tied[k] = count_above_and_tied(row, row[members[k]])


@njit(nogil=True, cache=True)
def locate(row, ordered, members, above, tied):
    """Place each member by looking it up in the sorted row."""
    for k in range(members.shape[0]):
        score = row[members[k]]
        not_above = np.searchsorted(ordered, score, side="right")
        above[k] = ordered.shape[0] - not_above
        tied[k] = not_above - np.searchsorted(ordered, score, side="left")


# Among the members themselves: one ranks before another exactly when fewer labels are above it.


@njit(nogil=True, cache=True)
def compare_among(above, better, equal):
    """Count, for each member, the members before and level with it, by comparing all."""
    for k in range(above.shape[0]):
        n_better = 0
        n_equal = 0
        for j in range(above.shape[0]):
            if above[j] < above[k]:
                n_better += 1
            if above[j] == above[k]:
                n_equal += 1
        better[k] = n_better
        equal[k] = n_equal


@njit(nogil=True, cache=True)
def locate_among(above, better, equal):
    """Count, for each member, the members before and level with it, by sorting."""
    ordered = np.sort(above)
    for k in range(above.shape[0]):
        n_better = np.searchsorted(ordered, above[k], side="left")
        better[k] = n_better
        equal[k] = np.searchsorted(ordered, above[k], side="right") - n_better


@njit(nogil=True, cache=True)
def place_relevant(starts, members, scores, first, last, above, tied, better, equal):
    """Place the relevant labels of the rows ``first`` to ``last - 1`` in their rankings.

    For each relevant label write how many labels score above it and the same (itself included),
    and how many of those are relevant too: `above`, `tied`, `better`, `equal`, aligned with
    `members`. Return the first row with a score that is not finite, or -1.
    """
    n_labels = scores.shape[1]
    ordered = np.empty(n_labels, scores.dtype)
    for i in range(first, last):
        row = scores[i]
        if not is_finite(row):
            return i
        relevant = slice(starts[i], starts[i + 1])
        if starts[i + 1] - starts[i] <= COMPARE_UP_TO:
            compare(row, members[relevant], above[relevant], tied[relevant])
            compare_among(above[relevant], better[relevant], equal[relevant])
        else:
            ordered[:] = row
            ordered.sort()
            locate(row, ordered, members[relevant], above[relevant], tied[relevant])
            locate_among(above[relevant], better[relevant], equal[relevant])
    return -1


@njit(nogil=True, cache=True)
def leave_out(starts, members, unknown_starts, unknown_members, scores, above, tied):
    """Take unknown labels off the counts of labels above and level with each relevant one.

    Relevant labels among themselves, `better` and `equal`, do not change.
    """
    for i in range(scores.shape[0]):
        for k in range(starts[i], starts[i + 1]):
            score = scores[i, members[k]]
            for q in range(unknown_starts[i], unknown_starts[i + 1]):
                hidden = scores[i, unknown_members[q]]
                above[k] -= hidden > score
                tied[k] -= hidden == score
