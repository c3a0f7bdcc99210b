"""Pairwise losses against the loop over pairs, finite differences and the theory."""

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from deltarank import instance_weights
from deltarank.core.labels import label_sets
from deltarank.core.losses import LOSSES
from deltarank.metrics import pairwise_loss
from deltarank.metrics.kernels.pairs import ROUNDED
from deltarank.metrics.kernels.pairwise import PAIRWISE, rounded_hinge_pairs


def loss_by_pairs(name, y, h):
    """The definition, pair by pair, in float64; rows without a pair to rank have no loss."""
    if len(set(y)) == 1:
        return 0.0
    if name == "all_pairs_squared":
        pairs = product(range(len(y)), repeat=2)
        return sum(((y[i] - y[j]) - (h[i] - h[j])) ** 2 for i, j in pairs if i < j)
    base = "linear" if name == "penalized_linear" else name
    pairs = [h[i] - h[j] for i, j in product(range(len(y)), repeat=2) if y[i] > y[j]]
    total = LOSSES[base].value(np.array(pairs)).sum()
    return total + (np.sum(h**2) / 2 if name == "penalized_linear" else 0.0)


def evaluate(kernel, Y, scores, weights=None):
    labels = label_sets(Y)
    weights = np.ones((len(Y), 2)) if weights is None else weights
    residuals, losses = scores.copy(), np.empty(len(Y))
    kernel(residuals, np.arange(len(Y)), weights, (labels.starts, labels.members), losses)
    return losses, residuals


def random_rows(seed, n=40, m=23, spread=2.0):
    """Rows of every size, the trivial ones too."""
    generator = np.random.default_rng(seed)
    sizes = np.arange(n) % (m + 1)
    Y = (generator.random((n, m)).argsort(axis=1) < sizes[:, None]).astype(int)
    return Y, spread * generator.normal(size=(n, m))


@pytest.mark.parametrize("m", [2, 3, 8, 9, 40, 300])
@pytest.mark.parametrize("name", PAIRWISE)
def test_a_loss_is_the_sum_over_pairs(name, m):
    Y, scores = random_rows(0, n=12 if m > 100 else 60, m=m)
    losses, _ = evaluate(PAIRWISE[name], Y, scores)
    expected = [loss_by_pairs(name, y, h) for y, h in zip(Y, scores, strict=True)]
    assert_allclose(losses, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_row_whose_pairs_weigh_nothing_has_no_loss(name):
    Y, scores = random_rows(9, m=30)
    weights = np.ones((len(Y), 2))
    weights[::2, 0] = 0.0
    losses, residuals = evaluate(PAIRWISE[name], Y, scores, weights)
    assert_array_equal(losses[::2], 0)
    assert_array_equal(residuals[::2], 0)


MEASURE_AND_COUNT = """
import sys
from deltarank.metrics import pairwise_loss
from deltarank.metrics.kernels.pairwise import PAIRWISE
for name in sys.argv[1:]:
    hits = PAIRWISE[name].stats.cache_hits
    print(pairwise_loss([[1, 0, 0]], [[1.0, 0.0, 3.0]], loss=name), sum(hits.values()))
"""


def test_compiled_losses_are_found_again_by_another_process(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    outputs = []
    # In the other order: a loss must not be found under the name of another.
    for names in (["linear", "squared"], ["squared", "linear"]):
        command = [sys.executable, "-c", MEASURE_AND_COUNT, *names]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        outputs.append(dict(zip(names, done.stdout.split("\n"), strict=False)))
    # Margins are 1 and -2, and a pair of three labels counts a half.
    assert outputs[0] == {"linear": "0.5 0", "squared": "4.5 0"}
    assert outputs[1] == {"linear": "0.5 1", "squared": "4.5 1"}


@pytest.mark.parametrize(
    ("name", "m"), [*((name, 7) for name in [*PAIRWISE, "rounded_hinge"]), ("logistic", 30)]
)
def test_residuals_are_finite_differences_of_the_loss(name, m):
    kernel = PAIRWISE.get(name, rounded_hinge_pairs)
    Y, scores = random_rows(1, m=m)
    weights = np.random.default_rng(2).random((len(Y), 2)) + 0.1
    _, residuals = evaluate(kernel, Y, scores, weights)
    step = 1e-6
    for label in range(m):
        moved = np.zeros(m)
        moved[label] = step
        ahead, behind = (evaluate(kernel, Y, scores + s * moved, weights)[0] for s in (1, -1))
        assert_allclose(residuals[:, label], (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6)


def test_a_row_of_scores_far_apart_does_not_disturb_its_neighbours():
    Y, scores = random_rows(8, m=9)
    alone = evaluate(PAIRWISE["logistic"], Y, scores)
    scores[5, 3] = 1e5
    losses, residuals = evaluate(PAIRWISE["logistic"], Y, scores)
    rest = np.arange(len(Y)) != 5
    assert_array_equal(losses[rest], alone[0][rest])
    assert_array_equal(residuals[rest], alone[1][rest])
    assert_allclose(losses[5], loss_by_pairs("logistic", Y[5], scores[5]), rtol=1e-12)


@pytest.mark.parametrize("name", PAIRWISE)
def test_float32_scores_give_the_same_to_their_precision(name):
    Y, scores = random_rows(3)
    narrow = scores.astype(np.float32)
    losses, residuals = evaluate(PAIRWISE[name], Y, narrow.astype(float))
    found, slopes = evaluate(PAIRWISE[name], Y, narrow)
    assert_allclose(found, losses, rtol=1e-12)
    assert slopes.dtype == np.float32
    assert_allclose(slopes, residuals, rtol=1e-6, atol=1e-6)


def test_the_rounded_hinge_is_within_half_its_width_of_the_hinge():
    Y, scores = random_rows(4)
    n_pairs = Y.sum(axis=1) * (Y.shape[1] - Y.sum(axis=1))
    short = evaluate(PAIRWISE["hinge"], Y, scores)[0] - evaluate(rounded_hinge_pairs, Y, scores)[0]
    assert (short >= -1e-9).all()
    assert (short <= n_pairs * ROUNDED / 2 + 1e-9).all()
    assert short.max() > 0


@pytest.mark.parametrize("size", [100.0, 1e4, 1e8])
@pytest.mark.parametrize("name", [name for name in PAIRWISE if name != "exponential"])
def test_large_scores_keep_their_loss(name, size):
    Y, scores = random_rows(5, spread=size)
    losses, residuals = evaluate(PAIRWISE[name], Y, scores)
    expected = [loss_by_pairs(name, y, h) for y, h in zip(Y, scores, strict=True)]
    assert_allclose(losses, expected, rtol=1e-9)
    assert np.isfinite(residuals).all()


def test_the_exponential_loss_of_large_scores_vanishes_or_stays_a_number():
    Y = np.array([[1, 0, 0], [0, 1, 1]])
    right, wrong = 1e4 * (2.0 * Y - 1), 1e4 * (1 - 2.0 * Y)
    losses, residuals = evaluate(PAIRWISE["exponential"], Y, right)
    assert_array_equal(losses, 0)
    assert_array_equal(residuals, 0)
    losses, residuals = evaluate(PAIRWISE["exponential"], Y, wrong)
    assert np.isfinite(losses).all()
    assert (losses > 1e280).all()
    assert (np.sign(residuals) == 1 - 2 * Y).all()


def test_small_logistic_losses_keep_their_digits():
    Y, scores = np.array([[1, 0, 0, 0]]), np.array([[0.0, -20.0, -21.0, -22.0]])
    losses, _ = evaluate(PAIRWISE["logistic"], Y, scores)
    assert_allclose(losses[0], np.log1p(np.exp([-20.0, -21.0, -22.0])).sum(), rtol=1e-6)


@pytest.mark.parametrize("name", PAIRWISE)
@pytest.mark.parametrize("weight", ["rank", "recall"])
def test_the_metric_is_the_mean_of_weighted_losses(name, weight):
    Y, scores = random_rows(6, n=3000)
    weights = instance_weights(Y, weight, normalize=False)
    penalty = (scores**2).sum(axis=1) / 2 if name == "penalized_linear" else np.zeros(len(Y))
    expected = [
        w * loss_by_pairs("linear" if name == "penalized_linear" else name, y, h) + (w > 0) * p
        for w, y, h, p in zip(weights[:200], Y[:200], scores[:200], penalty[:200], strict=True)
    ]
    found = pairwise_loss(Y, scores, name, weight, per_instance=True)
    assert_allclose(found[:200], expected, rtol=1e-10)
    assert_allclose(pairwise_loss(sparse.csr_array(Y), scores, name, weight), found.mean())
