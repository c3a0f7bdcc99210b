"""Thresholds that turn probabilities into label sets, best by a chosen metric of sets.

A label is in the set when its probability is above its threshold. Thresholds that tell the same
cells apart are equally good; the one chosen lies midway between two probabilities, and is 1 where
no cell, or -1 where every cell is to be in.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NONE_IN, ALL_IN = 1.0, -1.0


class Cells(NamedTuple):
    """Probabilities (n, m), which cells are relevant and known (n, m), and row weights (n,)."""

    chances: Floats
    relevant: NDArray[np.bool_]
    known: NDArray[np.bool_]
    counts: Floats


class _Sweep(NamedTuple):
    """What a label's threshold may be, and the weights of relevant and of all cells above it."""

    thresholds: Floats
    hits: Floats
    size: Floats


def _sweep(cells: Cells, label: int) -> _Sweep:
    rows = cells.known[:, label] & (cells.counts > 0)
    chances, counts = cells.chances[rows, label], cells.counts[rows]
    order = np.argsort(-chances, kind="stable")
    size = np.append(0.0, np.cumsum(counts[order]))
    hits = np.append(0.0, np.cumsum((counts * cells.relevant[rows, label])[order]))
    thresholds, at = _between(chances[order])
    return _Sweep(thresholds, hits[at], size[at])


def _between(descending: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the thresholds that differ, falling, and how many of the values are above each."""
    at = np.flatnonzero(np.diff(descending)) + 1
    middle = (descending[at - 1] + descending[at]) / 2
    thresholds = np.concatenate([[NONE_IN], middle, [ALL_IN]])
    return thresholds, np.concatenate([[0], at, [len(descending)]])


def _per_label(cells: Cells, gain: Callable[[_Sweep, float], Floats]) -> Floats:
    """Return each label's threshold of largest gain(sweep, relevant weight), the highest such."""
    best = np.empty(cells.chances.shape[1])
    for label in range(len(best)):
        sweep = _sweep(cells, label)
        best[label] = sweep.thresholds[np.argmax(gain(sweep, sweep.hits[-1]))]
    return best


def hamming(cells: Cells) -> Floats:
    """Lowest Hamming loss: labels apart, exactly."""
    return _per_label(cells, lambda sweep, _: 2 * sweep.hits - sweep.size)


def macro_f1(cells: Cells) -> Floats:
    """Highest mean over labels of F1: labels apart, exactly."""
    return _per_label(
        cells, lambda sweep, total: sweep.hits / np.maximum(sweep.size + total, 1e-300)
    )


def micro_f1(cells: Cells) -> Floats:
    """Highest F1 of all cells together, exactly, by Dinkelbach's method.

    F = 2 hits / (size + total) can be raised above f exactly if 2 hits - f size - f total can be
    raised above 0, and that is a sum over labels. Each round takes its best thresholds and their
    F, which rises until it is the largest.
    """
    sweeps = [_sweep(cells, label) for label in range(cells.chances.shape[1])]
    total = sum(sweep.hits[-1] for sweep in sweeps)
    best = 0.0
    while True:
        cuts = [int(np.argmax(2 * sweep.hits - best * sweep.size)) for sweep in sweeps]
        hits = sum(sweep.hits[k] for sweep, k in zip(sweeps, cuts, strict=True))
        size = sum(sweep.size[k] for sweep, k in zip(sweeps, cuts, strict=True))
        value = 2 * hits / (size + total) if size + total > 0 else 0.0
        if value <= best:
            picked = zip(sweeps, cuts, strict=True)
            return np.array([sweep.thresholds[k] for sweep, k in picked])
        best = value


def _shared(cells: Cells, value: Callable[..., Floats]) -> Floats:
    """Return the one threshold of all labels with the largest weighted sum of values of rows.

    ``value(hits, size, total)`` of a row whose `size` likeliest known labels are in, `hits` of
    them relevant, of `total`. Only the row of the cell that a falling threshold passes changes.
    """
    chances = np.where(cells.known, cells.chances, -np.inf)
    order = np.argsort(-chances, axis=1, kind="stable")
    ranked = np.take_along_axis(chances, order, axis=1)
    hits = np.cumsum(np.take_along_axis(cells.relevant & cells.known, order, axis=1), axis=1)
    total = hits[:, -1:]
    sizes = np.arange(1, chances.shape[1] + 1)
    before = value(np.zeros_like(total), np.zeros_like(total), total)
    changes = np.diff(np.hstack([before, value(hits, sizes, total)]), axis=1)
    changes = (changes * cells.counts[:, None])[ranked > -np.inf]
    ranked = ranked[ranked > -np.inf]
    falling = np.argsort(-ranked, kind="stable")
    thresholds, at = _between(ranked[falling])
    gains = np.append(0.0, np.cumsum(changes[falling]))[at]
    # Sums that differ by rounding alone are equal: the highest threshold wins.
    best = int(np.argmax(gains >= gains.max() - 1e-12 * max(1.0, float(np.abs(gains).max()))))
    return np.full(chances.shape[1], thresholds[best])


def example_f1(cells: Cells) -> Floats:
    """Highest mean over rows of F1 (1 where both sets are empty): one threshold, exactly."""

    def f1(hits: Any, size: Any, total: Any) -> Floats:
        return np.where(size + total > 0, 2 * hits / np.maximum(size + total, 1), 1.0)

    return _shared(cells, f1)


def subset_accuracy(cells: Cells) -> Floats:
    """Largest share of rows whose set is right: one threshold, exactly."""
    return _shared(cells, lambda hits, size, total: ((hits == total) & (size == total)) * 1.0)


SET_METRICS: dict[str, Callable[[Cells], Floats]] = {
    "micro_f1": micro_f1,
    "macro_f1": macro_f1,
    "example_f1": example_f1,
    "hamming": hamming,
    "subset_accuracy": subset_accuracy,
}
