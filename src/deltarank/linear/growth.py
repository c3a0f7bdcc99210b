"""Going on from an earlier fit over the same rows and more: what was found over those still holds.

A sum over all rows is the sum over the old ones, which is known at the point where the earlier fit
ended, and that over the new ones. So the first pass is one over the new rows alone; coordinates and
curvature are those of the earlier fit. Whether the old rows are the same a checksum tells.
"""

import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from deltarank.core import threads
from deltarank.core.blas import one_blas_thread
from deltarank.core.labels import LabelSets
from deltarank.linear.kernels.checksum import checksum
from deltarank.linear.rows.local import LocalPass
from deltarank.linear.rows.matrices import Array, Frame, merged_moments
from deltarank.linear.solvers.states import Evaluation, State

ROWS_PER_CHECKSUM = 8192
# Of so many rows one is looked at for curvature.
ROWS_PER_SAMPLED = 8
# Weights are float32.
ROUNDING = 1e-6
# A frame serves until there are so many times the rows it was made of, or features that spread so
# many times as far.
LARGEST_GROWTH = 2.0


class Memory(NamedTuple):
    """What a fit leaves to a later one.

    Attributes
    ----------
    state : State
        Of all problems, in the coordinates of the frame.
    frame : Frame
    n_framed : int
        Number of rows that the frame was made of.
    weights : ndarray of float32, shape (n,)
        Of the rows that were fitted.
    checksum : int
        Of those rows, their labels and costs.
    settings : tuple
        What else decides the objectives.
    """

    state: State
    frame: Frame
    n_framed: int
    weights: Array
    checksum: int
    settings: tuple[Any, ...]


def remembered(data: LocalPass, before: Memory | None) -> Memory | None:
    """Return the memory of a pass whose problems were all solved at once; None of any other.

    Parameters
    ----------
    data : LocalPass
    before : Memory or None
        The one that the pass was grown from.
    """
    if data.state is None:
        return None
    frame, n_rows = data.matrix.frame, len(data.weights)
    small = Frame(frame.moments._replace(covariance=None), frame.coordinates)
    n_framed, n_known, known = n_rows, 0, 0
    if before is not None:
        n_framed, n_known, known = before.n_framed, len(before.weights), before.checksum
    found = _checksum(data, n_rows, n_known, known)
    return Memory(data.state, small, n_framed, data.weights, found, _settings(data))


def grown(
    memory: Memory, X: Any, labels: LabelSets, weights: Array, **options: Any
) -> tuple[LocalPass, State] | None:
    """Return the pass over old and new rows and the state to go on from.

    None if the first rows are not those of the earlier fit, or if too much is new.
    """
    n_old, (n_rows, n_features) = len(memory.weights), X.shape
    if (labels.n_labels, n_features + 1) != memory.state.point.shape:
        return None
    if not n_old <= n_rows <= LARGEST_GROWTH * memory.n_framed:
        return None
    data = LocalPass.over(X, labels, weights, frame=memory.frame, **options)
    # Weights have a mean of one over all rows, so those of the old ones may all have changed alike.
    before, now = memory.weights, data.weights[:n_old]
    factor = float(now.sum(dtype=np.float64) / before.sum(dtype=np.float64))
    alike = np.allclose(now, factor * before, rtol=ROUNDING, atol=0)
    if not alike or _settings(data) != memory.settings:
        return None
    if _checksum(data, n_old) != memory.checksum:
        return None
    rows = data.parts[0][np.searchsorted(data.parts[0], n_old) :]
    if _labels_awoke(data, n_old) or _spreads(data, X, rows, memory):
        return None
    with one_blas_thread():
        state = _with_rows(data, rows, memory.state, factor)
        _look_ahead(data, state)
    return data, state


def _with_rows(data: LocalPass, rows: Array, old: State, factor: float) -> State:
    """Return the state with values and derivatives over the old rows, reweighted, and new ones."""
    added, penalty = _losses(data, rows, old.point), data.penalty(old.point)
    parts = zip(old.found, penalty, added, strict=True)
    return old._replace(found=Evaluation(*(factor * (o - p) + p + a for o, p, a in parts)))


def _look_ahead(data: LocalPass, state: State) -> None:
    """Let the state know of the curvature along the way that the new rows lead, from a few rows.

    The last steps of the earlier fit tell little of it: they went where little was left to gain.
    """
    step = -state.found.gradient / state.found.diagonal
    rows = data.parts[0][::ROWS_PER_SAMPLED]
    share = data.weights[rows].sum(dtype=np.float64) / data.weights.sum(dtype=np.float64)
    before, after = (_losses(data, rows, p).gradient for p in (state.point, state.point + step))
    # The penalty's gradient is linear.
    state.add_pair(step, (after - before) / share + data.penalty(step).gradient)


def _losses(data: LocalPass, rows: Array, points: Array) -> Evaluation:
    """Evaluate the losses of some rows, without the penalty."""
    part = copy.copy(data)
    part.C, part.parts = np.inf, [rows]
    return part.value_and_gradient(points, np.arange(data.shape[0]))


def _labels_awoke(data: LocalPass, n_old: int) -> bool:
    """Tell whether a label was constant in the old rows and is so no more.

    At the infinite intercept that it was fitted with, there is no curvature to go on with.
    """
    labels, now = data.labels, data.frequencies()
    before = np.bincount(labels.members[: labels.starts[n_old]], minlength=labels.n_labels)
    first, last = (before == 0) & (now > 0), (before == n_old) & (now < labels.n_rows)
    return bool((first | last).any())


def _spreads(data: LocalPass, X: Any, rows: Array, memory: Memory) -> bool:
    """Tell whether new rows lie so far from the old ones that the frame is no longer theirs."""
    old = memory.frame.moments
    moments = merged_moments([old, data.matrix.moments(X, rows, data.weights)])
    return bool((moments.variance > LARGEST_GROWTH * old.variance).any())


def _settings(data: LocalPass) -> tuple[Any, ...]:
    return data.C, data.penalize_intercept, str(data.dtype)


def _words(array: Array) -> Array:
    """Return the bits of an array's rows as unsigned integers (n, k), as long ones as may be."""
    if array.ndim == 1:
        return array.view(f"u{array.itemsize}")[:, None]
    is_even = array.flags.c_contiguous and array.shape[1] * array.itemsize % 8 == 0
    return array.view("u8" if is_even else f"u{array.itemsize}")


def _checksum(data: LocalPass, n_rows: int, n_known: int = 0, known_sum: int = 0) -> int:
    """Return a number that tells the first rows of a pass from others.

    It is a sum, modulo 2^64, in which the first of those rows need not be added up anew.
    """
    total = known_sum
    arrays = zip(data.first_rows(n_rows), data.first_rows(n_known), strict=True)
    for number, (array, known) in enumerate(arrays):
        words = _words(array)[len(known) :]
        blocks = threads.row_blocks(len(words), ROWS_PER_CHECKSUM)
        parts = threads.run([partial(checksum, words[b], len(known) + b.start) for b in blocks])
        total += (2 * number + 1) * sum(map(int, parts))
    return total % 2**64
