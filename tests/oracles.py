"""Slow, obviously right versions of what the library computes, and random inputs for both."""

from itertools import pairwise, permutations, product

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deltarank.theory import LabelDistribution


def rank_loss_by_pairs(y, h, w, tie=0.5):
    """Eq. (4), pair by pair."""
    total = 0.0
    for i, j in product(range(len(y)), repeat=2):
        if y[i] > y[j]:
            total += (h[i] < h[j]) + tie * (h[i] == h[j])
    return w * total


def inverse_pairs(y):
    """Eq. (21)."""
    s, m = sum(y), len(y)
    return 1 / (s * (m - s)) if 0 < s < m else 0.0


def rankings_of(h):
    """All rankings that agree with the scores, as orders of labels."""
    return [
        ranking
        for ranking in permutations(range(len(h)))
        if all(h[a] >= h[b] for a, b in pairwise(ranking))
    ]


def mean_over_tie_orders(measure, y, h):
    """Mean of measure(y in ranked order) over all rankings that agree with the scores."""
    return np.mean([measure([y[label] for label in ranking]) for ranking in rankings_of(h)])


def all_label_sets(m):
    return [np.array(y) for y in product((0, 1), repeat=m)]


def risk_by_enumeration(distribution, scores, weight):
    """Expected rank loss, Eq. (1) with (4), label set by label set."""
    return sum(
        p * rank_loss_by_pairs(y, scores, weight(y))
        for y, p in zip(
            all_label_sets(distribution.n_labels), distribution.probabilities, strict=True
        )
    )


@st.composite
def distributions(draw, min_labels=2, max_labels=6, full_support=False):
    """Random label distributions, many of them with few possible label sets."""
    m = draw(st.integers(min_labels, max_labels))
    seed = draw(st.integers(0, 2**32 - 1))
    concentration = draw(st.sampled_from([0.05, 0.4, 3.0]))
    table = np.random.default_rng(seed).dirichlet(np.full(2**m, concentration))
    if full_support:
        table = 0.9 * table + 0.1 / 2**m
    return LabelDistribution(table)


def score_vectors(m):
    """Scores with ties in about half the cases."""
    coarse = hnp.arrays(float, m, elements=st.integers(-2, 2).map(float))
    fine = hnp.arrays(float, m, elements=st.floats(-3, 3))
    return st.one_of(coarse, fine)


@st.composite
def weight_tables(draw, m):
    """A random weight a label set, as a callable on label matrices."""
    seed = draw(st.integers(0, 2**32 - 1))
    table = np.random.default_rng(seed).exponential(size=2**m)
    digits = 2 ** np.arange(m - 1, -1, -1)
    return lambda Y: table[np.asarray(Y) @ digits]
