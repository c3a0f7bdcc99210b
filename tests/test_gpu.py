"""Device code on a real CUDA device, each part held to float64 on the CPU.

``python -m pytest -m gpu tests/test_gpu.py`` runs all of it where there is one; elsewhere it is
skipped, and `test_device` runs what torch can do on the CPU.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit

from deltarank import AdaBoostRanker, LogisticRanker, LogisticRankerCV, rank_loss
from deltarank.core.labels import label_sets
from deltarank.linear.rows import tuning
from deltarank.linear.solvers.precision import Precision

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

N, D, M = 6000, 40, 90
SHAPES = [(1, 1), (63, 127), (64, 128), (65, 129), (5000, 103)]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def sample():
    """Features of unlike scales, labels from one in two to one in a hundred."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, D)) * 10.0 ** rng.uniform(-2, 2, D) + rng.normal(size=D) * 5
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    scores = Z @ rng.normal(size=(D, M)) + 2 * rng.logistic(size=(N, M))
    return X, (scores > np.quantile(scores, np.linspace(0.5, 0.99, M), axis=0).diagonal()) * 1


@pytest.fixture(scope="module")
def words():
    """Sparse features, thin enough to stay sparse on the device."""
    return sparse.random_array(
        (N, 3000), density=0.004, format="csr", rng=np.random.default_rng(2), dtype=np.float64
    )


def on_gpu(array):
    return torch.as_tensor(np.ascontiguousarray(array), device="cuda")


def softplus(scores):
    return np.logaddexp(0, scores)


class TestTritonKernels:
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_scores_become_weighted_chances_and_their_sums(self, shape, rng):
        from deltarank.linear.kernels.device_cells import turn_scores

        scores = rng.normal(scale=10, size=shape).astype(np.float32)
        scores.flat[0] = 200.0
        weights = rng.uniform(0, 2, shape[0]).astype(np.float32)
        cells = on_gpu(scores)
        sums = turn_scores(cells, on_gpu(weights)).cpu().numpy()
        wide, mass = scores.astype(np.float64), weights[:, None].astype(np.float64)
        chances = expit(wide)
        assert_allclose(cells.cpu().numpy(), mass * chances, rtol=1e-5, atol=1e-30)
        expected = [mass * softplus(wide), mass * chances * (1 - chances), mass * chances]
        for found, cells in zip(sums, expected, strict=True):
            assert_allclose(found, cells.sum(axis=0), rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_weighted_scores_become_residuals_losses_and_curvatures(self, shape, rng):
        from deltarank.linear.kernels.device_cells import turn_weighted

        scores = rng.normal(scale=5, size=shape).astype(np.float32)
        costs = rng.uniform(0, 3, shape).astype(np.float32)
        targets = costs * rng.integers(0, 2, shape).astype(np.float32)
        cells = on_gpu(scores)
        losses, curvatures = turn_weighted(cells, on_gpu(costs), on_gpu(targets))
        wide, chances = scores.astype(np.float64), expit(scores.astype(np.float64))
        assert_allclose(cells.cpu().numpy(), costs * chances - targets, atol=1e-5)
        expected = costs * chances * (1 - chances)
        assert_allclose(curvatures.cpu().numpy(), expected, rtol=1e-4, atol=1e-6)
        expected = (costs * softplus(wide) - targets * wide).sum(axis=0)
        assert_allclose(losses.cpu().numpy(), expected, rtol=1e-5, atol=1e-4)

    @pytest.mark.parametrize("n_rows", [1, 64, 1000, 20_001])
    @pytest.mark.parametrize("width", [128, 256])
    @pytest.mark.parametrize(("careful", "digits"), [(False, 1e-2), (True, 2e-5)])
    def test_weighted_products_of_rows(self, n_rows, width, careful, digits, rng):
        from deltarank.linear.kernels.device_cells import weighted_products

        x = rng.normal(size=(n_rows, width)).astype(np.float32)
        curvatures = (10.0 ** rng.uniform(-5, 0, (n_rows, 3))).astype(np.float32)
        rows = on_gpu(x)
        high = rows.half()
        factors = (high, (rows - high.float()).half()) if careful else (rows.bfloat16(),)
        found = weighted_products(on_gpu(curvatures), *factors).cpu().numpy()
        wide = x.astype(np.float64)
        for problem in range(3):
            exact = wide.T @ (wide * curvatures[:, problem, None])
            assert_allclose(found[problem], exact, atol=digits * np.abs(exact).max())

    @pytest.mark.parametrize("shape", [(1, 1), (300, 5), (4000, 130)], ids=str)
    def test_histograms_are_sums_by_bin(self, shape, rng):
        from deltarank.boosting.kernels.device_histograms import bin_sums

        n_rows, n_labels, n_features, n_bins = *shape, 7, 16
        codes = rng.integers(0, n_bins - 1, (n_features, n_rows))  # the last bin stays empty
        cells = rng.normal(size=shape).astype(np.float32)
        order = np.argsort(codes, axis=1, kind="stable").astype(np.int32)
        starts = np.stack([np.searchsorted(np.sort(c), np.arange(n_bins + 1)) for c in codes])
        found = bin_sums(on_gpu(cells), on_gpu(order), on_gpu(starts.astype(np.int32)))
        assert found.shape == (n_features, n_bins, 2, n_labels)
        for feature, code in enumerate(codes):
            for bin_number in range(n_bins):
                mine = cells[code == bin_number].astype(np.float64)
                sums = found[feature, bin_number].cpu().numpy()
                assert_allclose(sums[0], np.abs(mine).sum(axis=0), rtol=1e-5, atol=1e-5)
                assert_allclose(sums[1], np.maximum(mine, 0).sum(axis=0), rtol=1e-5, atol=1e-5)


def exact_objective(X, Y, weights, costs, C, coef, intercept):
    """Values and gradients (of features, then intercept) in float64, from the definition."""
    scores = X @ coef.T + intercept
    mass = weights[:, None] * np.where(Y == 1, costs[:, None], 1.0)
    values = (mass * softplus(np.where(Y == 1, -scores, scores))).sum(axis=0)
    residuals = mass * (expit(scores) - Y)
    gradient = np.column_stack([residuals.T @ X + coef / C, residuals.sum(axis=0)])
    return values + (coef**2).sum(axis=1) / (2 * C), gradient


# Relative errors of values, and of gradients beside the largest gradient.
DIGITS = {
    Precision.COARSE: (2e-3, 2e-3),
    Precision.FINE: (2e-5, 2e-5),
    Precision.EXACT: (2e-6, 2e-5),
    # Features lie on the device as float32, scaled: what is computed from them is exact.
    Precision.DOUBLE: (1e-7, 1e-7),
}


@pytest.mark.parametrize("precision", list(Precision), ids=lambda p: p.name)
@pytest.mark.parametrize("positive_cost", [1.0, 3.0])
def test_each_precision_has_the_digits_that_it_promises(
    sample, precision, positive_cost, rng, monkeypatch
):
    from deltarank.linear.coordinates import Coordinates
    from deltarank.linear.objective import Objective
    from deltarank.linear.rows.cuda import DeviceRows

    X, Y = sample
    # Already standardised and as float32 as the device holds them, so that rounding of X is none.
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    weights = rng.uniform(0.5, 2, N)
    costs = np.full(N, positive_cost)
    device = torch.device("cuda")
    with monkeypatch.context() as patch:
        patch.setattr(tuning.DEVICE, "largest_work", 0)
        rows = DeviceRows(X, label_sets(Y), weights, positive_cost=positive_cost, device=device)
    data = Objective(rows, C=3.0, coordinates=Coordinates.rotated(rows.moments(), rows))
    point = on_gpu(rng.normal(scale=0.1, size=data.shape))
    found = data.evaluate(point, torch.arange(M, device="cuda"), precision)
    coef, intercept = data.to_features(point)
    wide = X.astype(np.float64)
    values, gradient = exact_objective(wide, Y, weights, costs, 3.0, coef, intercept)
    of_value, of_gradient = DIGITS[precision]
    assert_allclose(found.value.cpu().numpy(), values, rtol=of_value)
    # The gradient along the variables, by the chain rule through `to_features`.
    base = data.to_features(torch.zeros_like(point))[1]
    for variable in (0, D // 2, D):
        unit = torch.zeros_like(point)
        unit[:, variable] = 1.0
        slope_coef, moved = data.to_features(unit)
        along = (gradient[:, :-1] * slope_coef).sum(axis=1) + gradient[:, -1] * (moved - base)
        scale = np.abs(gradient).max()
        assert_allclose(found.gradient[:, variable].cpu().numpy(), along, atol=of_gradient * scale)


OPTIONS = [
    {},
    {"C": 100.0, "weight": "uniform"},
    {"C": 0.01, "penalize_intercept": True},
    {"positive_cost": 3.0},
]


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_fit_reaches_the_minimum_of_the_cpu(
    sample, words, features, options, solver, monkeypatch
):

    if solver == "lbfgs":
        monkeypatch.setattr(tuning.DEVICE, "largest_work", 0)
    X, Y = sample
    data = X if features == "dense" else words
    ours = LogisticRanker(**options, tol=1e-9).fit(data, Y)
    # The gap is estimated: with a strongly penalised intercept it was seen to be 14 times tol.
    other = LogisticRanker(**options, tol=1e-7, device="cuda").fit(data, Y)
    assert other.converged_.all()
    assert_allclose(other.objective_, ours.objective_, rtol=2e-6)
    one, two = (ranker.decision_function(data) for ranker in (ours, other))
    assert abs(rank_loss(Y, one) - rank_loss(Y, two)) < 1e-4


def test_unknown_labels_are_left_out(sample):
    X, Y = sample
    labels = Y.astype(float)
    labels[np.random.default_rng(3).random(Y.shape) < 0.2] = np.nan
    ours = LogisticRanker(tol=1e-9, unknown="known_part").fit(X, labels)
    other = LogisticRanker(device="cuda", unknown="known_part").fit(X, labels)
    assert_allclose(other.objective_, ours.objective_, rtol=2e-6)


def test_cross_validation_chooses_alike(sample):
    X, Y = sample
    options = {"Cs": [0.001, 0.1, 10.0], "cv": 3, "random_state": 0}
    ours = LogisticRankerCV(**options).fit(X, Y)
    other = LogisticRankerCV(**options, device="cuda").fit(X, Y)
    assert other.C_ == ours.C_
    assert_allclose(other.objective_, ours.objective_, rtol=2e-6)


@pytest.mark.parametrize("criterion", ["entropy", "error", "z"])
def test_boosting_finds_the_stumps_of_the_cpu(sample, criterion):
    X, Y = sample
    ours = AdaBoostRanker(n_stumps=10, criterion=criterion).fit(X, Y)
    other = AdaBoostRanker(n_stumps=10, criterion=criterion, device="cuda").fit(X, Y)
    # Float32 sums may turn a tie the other way; a label then goes its own way.
    assert (other.features_ == ours.features_).mean() > 0.97
    same = (other.features_ == ours.features_).all(axis=0) & np.isclose(
        other.thresholds_, ours.thresholds_
    ).all(axis=0)
    scores = [ranker.decision_function(X)[:, same] for ranker in (ours, other)]
    assert same.mean() > 0.9
    assert_allclose(scores[1], scores[0], atol=5e-3)


def test_scores_and_rankings_on_the_device_are_those_of_the_cpu(sample):
    X, Y = sample
    ranker = LogisticRanker().fit(X, Y)
    rows = np.tile(X, (8, 1))
    scores, ranked = ranker.decision_function(rows), ranker.rank(rows, top=4)
    ranker.device = "cuda"
    assert_allclose(ranker.decision_function(rows), scores, rtol=1e-9, atol=1e-9)
    assert_array_equal(ranker.rank(rows, top=4), ranked)


def test_auto_takes_the_device_for_large_work_only(sample):
    from deltarank.core.devices import fitting_device

    assert fitting_device("auto", 1_000_000, 1000, 1000) == torch.device("cuda")
    assert fitting_device("auto", 100, 10, 10) is None
    with pytest.raises(RuntimeError, match="is not there"):
        LogisticRanker(device=f"cuda:{torch.cuda.device_count()}").fit(*sample)


@pytest.fixture
def little_memory():
    """Let torch have so many bytes more of the device than it has now."""

    def limit(n_bytes):
        torch.cuda.empty_cache()
        total = torch.cuda.mem_get_info()[1]
        allowed = torch.cuda.memory_reserved() + n_bytes
        torch.cuda.set_per_process_memory_fraction(allowed / total)

    yield limit
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()


def test_little_memory_takes_smaller_blocks_and_too_little_says_so(rng, little_memory):
    X = rng.normal(size=(200_000, 20)).astype(np.float32)
    scores = X @ rng.normal(size=(20, 500)).astype(np.float32)
    Y = sparse.csr_array(scores > np.quantile(scores, 0.98, axis=0))
    # All scores at once take 400 MB, and the sums and steps of 500 labels next to nothing.
    plenty = LogisticRanker(device="cuda").fit(X, Y)
    little_memory(300 * 2**20)
    less = LogisticRanker(device="cuda").fit(X, Y)
    assert less.converged_.all()
    assert_allclose(less.objective_, plenty.objective_, rtol=2e-6)
    little_memory(2**20)
    with pytest.raises(MemoryError, match=r'too little memory .* device="cpu"'):
        LogisticRanker(device="cuda").fit(X, Y)
