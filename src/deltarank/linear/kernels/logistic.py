"""Fused logistic kernels: scores of a row block in, losses, residuals and curvatures out.

Exponentials and logarithms are polynomials without branches or calls, so that LLVM turns the loop
over cells into vector code: see `core.kernels.elementary`.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.elementary import FAST, exp_negative, log1p_unit

# A score whose loss and derivative, as a negative, vanish.
NEVER = np.float32(-1e30)
# Sums of this many rows stay in float32; longer ones go to float64.
ROWS_PER_SUM = 16


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def logistic_block(scores, offsets, rows, weights, labels, costs, sums):
    """Replace scores by residuals; add losses, curvatures and residuals up, one column per problem.

    The few positive cells of a row are done first, one by one, and then given a score so low
    that the vector loop, which takes every cell as negative, adds nothing for them. Correcting
    them afterwards would be simpler, but 1 - p and log(1 + exp(s)) - s cancel in float32.
    An unknown cell is a positive one of cost 0.

    Parameters
    ----------
    scores : ndarray of float32, shape (b, p)
        Scores without ``offsets``; overwritten by the derivatives of the loss.
    offsets : ndarray of float32, shape (p,)
        Intercepts.
    rows : ndarray of int64, shape (b,)
        The data rows of the block; they index ``weights`` and ``labels``.
    weights : ndarray of float32, shape (n,)
    labels : tuple (starts, members, first_column)
        Row i is positive (or unknown) for ``members[starts[i]:starts[i + 1]]``; label l owns the
        columns ``first_column[l]:first_column[l + 1]`` (none when all its problems have
        converged, several when folds are solved together).
    costs : ndarray of float32, one value per member
        What a positive cell costs beside a negative one; 0 if it is unknown.
    sums : ndarray of float64, shape (3, p)
        Added to: losses, curvatures w c p (1 - p), residuals.
    """
    starts, members, first_column = labels
    n_columns = scores.shape[1]
    zero, one = np.float32(0.0), np.float32(1.0)
    partial = np.zeros((3, n_columns), np.float32)
    loss, curvature, residual = partial[0], partial[1], partial[2]
    kept = np.empty(n_columns, np.float32)
    for b in range(rows.shape[0]):
        i = rows[b]
        w = weights[i]
        row = scores[b]
        for k in range(starts[i], starts[i + 1]):
            cost = costs[k]
            for j in range(first_column[members[k]], first_column[members[k] + 1]):
                s = row[j] + offsets[j]
                e = exp_negative(-abs(s))
                inverse = one / (one + e)
                kept[j] = -cost * w * (e * inverse if s >= zero else inverse)
                loss[j] += cost * w * ((-s if s < zero else zero) + log1p_unit(e))
                curvature[j] += cost * w * (e * inverse * inverse)
                residual[j] += kept[j]
                row[j] = NEVER
        for j in range(n_columns):
            s = row[j] + offsets[j]
            e = exp_negative(-abs(s))
            inverse = one / (one + e)
            derivative = w * (inverse if s >= zero else e * inverse)
            loss[j] += w * ((s if s > zero else zero) + log1p_unit(e))
            curvature[j] += w * (e * inverse * inverse)
            residual[j] += derivative
            row[j] = derivative
        for k in range(starts[i], starts[i + 1]):
            for j in range(first_column[members[k]], first_column[members[k] + 1]):
                row[j] = kept[j]
        if b % ROWS_PER_SUM == ROWS_PER_SUM - 1 or b == rows.shape[0] - 1:
            for j in range(n_columns):
                sums[0, j] += loss[j]
                sums[1, j] += curvature[j]
                sums[2, j] += residual[j]
            partial[:] = zero


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def curvature_block(scores, offsets, rows, weights, labels, costs):
    """Replace scores by curvatures w c p (1 - p); see `logistic_block` for the arguments."""
    starts, members, first_column = labels
    one = np.float32(1.0)
    for b in range(rows.shape[0]):
        i = rows[b]
        row = scores[b]
        for j in range(scores.shape[1]):
            e = exp_negative(-abs(row[j] + offsets[j]))
            row[j] = weights[i] * (e / ((one + e) * (one + e)))
        for k in range(starts[i], starts[i + 1]):
            for j in range(first_column[members[k]], first_column[members[k] + 1]):
                row[j] *= costs[k]


@njit(nogil=True, cache=True, error_model="numpy")
def sample_rows(curvatures, rows, spacing, totals, counts, chosen, multiplicity):
    """Choose rows with frequency proportional to their curvature, separately for each column.

    Systematic sampling: down a column, a row is chosen each time the running sum of curvatures,
    in units of ``spacing``, passes an integer; it then stands for a curvature of ``spacing``.
    No random numbers, so the same rows come out for any number of threads.
    """
    for b in range(rows.shape[0]):
        for j in range(curvatures.shape[1]):
            before = totals[j]
            totals[j] += curvatures[b, j] / spacing[j]
            times = int(totals[j]) - int(before)
            if times > 0 and counts[j] < chosen.shape[1]:
                chosen[j, counts[j]] = rows[b]
                multiplicity[j, counts[j]] = times
                counts[j] += 1
