"""The device engine, run by torch on the CPU, against our own kernels: the same minimum."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from deltarank import AdaBoostRanker, LogisticRanker, LogisticRankerCV, rank_loss
from deltarank.boosting import places
from deltarank.core import devices
from deltarank.core.labels import label_sets
from deltarank.linear.coordinates import Coordinates
from deltarank.linear.objective import Objective
from deltarank.linear.rows import tuning
from deltarank.linear.solvers.precision import Precision

torch = pytest.importorskip("torch", reason="needs PyTorch")
from deltarank.linear.rows.cuda import DeviceRows  # noqa: E402

RNG = np.random.default_rng(0)
N, D, M = 3000, 12, 15
X = RNG.normal(size=(N, D)) * 10.0 ** RNG.uniform(-2, 2, D) + RNG.normal(size=D) * 5
Z = (X - X.mean(axis=0)) / X.std(axis=0)
Y = (Z @ RNG.normal(size=(D, M)) + 2 * RNG.logistic(size=(N, M)) > RNG.uniform(0, 8, M)).astype(int)
SPARSE = sparse.random_array((N, 400), density=0.008, format="csr", rng=RNG)


@pytest.fixture(params=["newton", "lbfgs"])
def on_device(monkeypatch, request):
    """Let "cuda" stand for torch's CPU device, and no product be too small for it."""
    torch.set_num_threads(1)
    if request.param == "lbfgs":
        monkeypatch.setattr(tuning.DEVICE, "largest_work", 0)
    monkeypatch.setattr(
        devices, "find_device", lambda name: None if name == "cpu" else torch.device("cpu")
    )
    monkeypatch.setattr(devices, "SMALL_PRODUCT", 0)


def objectives(ranker, X, weights):
    """The objective of every label, in float64, from its definition."""
    scores = X @ ranker.coef_.T + ranker.intercept_
    losses = np.logaddexp(0, np.where(Y == 1, -scores, scores))
    norms = (ranker.coef_**2).sum(axis=1)
    return weights @ losses + norms / (2 * ranker.C)


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"C": 100.0, "weight": "uniform"},
        {"C": 0.01, "penalize_intercept": True},
        {"positive_cost": 3.0},
        {"balance": 1.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("features", ["dense", "sparse"])
def test_the_minimum_is_that_of_the_kernels(features, options):
    data = X if features == "dense" else SPARSE
    ours = LogisticRanker(**options, tol=1e-9).fit(data, Y)
    other = LogisticRanker(**options, device="cuda").fit(data, Y)
    assert other.converged_.all()
    assert_allclose(other.objective_, ours.objective_, rtol=1e-6)
    one, two = (r.decision_function(data) for r in (ours, other))
    assert abs(rank_loss(Y, one) - rank_loss(Y, two)) < 1e-4
    # A relative gap of 1e-6 leaves scores free by about its root.
    assert_allclose(two, one, atol=0.02 * np.abs(one).max())


@pytest.mark.usefixtures("on_device")
def test_the_objective_reported_is_the_objective():
    ranker = LogisticRanker(weight="uniform", device="cuda").fit(X, Y)
    ranked = (Y.sum(axis=1) > 0) & (Y.sum(axis=1) < M)
    assert_allclose(ranker.objective_, objectives(ranker, X, ranked * 1.0), rtol=1e-5)


@pytest.mark.usefixtures("on_device")
def test_one_round_is_not_enough_and_is_said_to_be():
    with pytest.warns(ConvergenceWarning, match=r"\d+ of 15 labels .* max_iter=1"):
        ranker = LogisticRanker(device="cuda", max_iter=1).fit(X, Y)
    assert np.isfinite(ranker.coef_).all()


@pytest.mark.usefixtures("on_device")
def test_rows_without_weight_change_nothing():
    counts = (np.arange(N) % 3 > 0).astype(float)
    kept = counts > 0
    one = LogisticRanker(device="cuda").fit(X, Y, sample_weight=counts)
    two = LogisticRanker(device="cuda").fit(X[kept], Y[kept])
    assert_allclose(one.coef_, two.coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("features", ["dense", "sparse"])
def test_small_blocks_change_nothing(monkeypatch, features):
    data = X if features == "dense" else SPARSE
    whole = LogisticRanker(device="cuda", positive_cost=2.0).fit(data, Y)
    monkeypatch.setattr(tuning.DEVICE, "rows_per_block", 700)
    monkeypatch.setattr(tuning.DEVICE, "cells_per_block", 100 * M)
    blocks = LogisticRanker(device="cuda", positive_cost=2.0).fit(data, Y)
    assert_allclose(blocks.objective_, whole.objective_, rtol=1e-6)


@pytest.mark.usefixtures("on_device")
def test_labels_in_blocks_change_nothing(monkeypatch):
    whole = LogisticRanker(device="cuda").fit(X, Y)
    monkeypatch.setattr(DeviceRows, "bytes_per_block", 4 * 13 * 144)
    blocks = LogisticRanker(device="cuda").fit(X, Y)
    assert_allclose(blocks.objective_, whole.objective_, rtol=1e-6)


@pytest.mark.usefixtures("on_device")
def test_labels_never_and_always_relevant_take_their_places():
    labels = Y.copy()
    labels[:, 0], labels[:, 1] = 0, 1
    ranker = LogisticRanker(device="cuda").fit(X, labels)
    ranked = ranker.rank(X[:50])
    assert (ranked[:, 0] == 1).all()
    assert (ranked[:, -1] == 0).all()


@pytest.mark.usefixtures("on_device")
def test_cross_validation_chooses_alike():
    ours = LogisticRankerCV(Cs=[0.001, 0.1, 10.0], cv=3, random_state=0).fit(X, Y)
    other = LogisticRankerCV(Cs=[0.001, 0.1, 10.0], cv=3, random_state=0, device="cuda").fit(X, Y)
    assert other.C_ == ours.C_
    # Held-out fits stop early, each engine at its own place.
    assert_allclose(
        other.cv_results_["mean_test_score"], ours.cv_results_["mean_test_score"], atol=3e-3
    )
    assert_allclose(other.objective_, ours.objective_, rtol=2e-6)


@pytest.mark.usefixtures("on_device")
def test_a_warm_start_needs_few_passes():
    ranker = LogisticRanker(device="cuda", warm_start=True).fit(X, Y)
    fresh = ranker.n_iter_.sum()
    again = ranker.fit(X, Y)
    assert again.n_iter_.sum() < fresh / 2


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_and_ranks_on_the_device(dtype, monkeypatch):
    rows = X.astype(dtype)
    here = LogisticRanker().fit(rows, Y)
    scores, ranked = here.decision_function(rows), here.rank(rows, top=4)
    here.device = "cuda"
    monkeypatch.setattr(devices, "CELLS_PER_CHUNK", 500 * M)
    found = here.decision_function(rows)
    assert found.dtype == dtype
    assert_allclose(found, scores, rtol=1e-4, atol=1e-4)
    assert (here.rank(rows, top=4) == ranked).mean() > 0.999
    assert_array_equal(here.rank(rows[:1]), here.rank(rows)[:1])
    ties = LogisticRanker(device="cuda").fit(X[:, :1] * 0, Y * 0 + (np.arange(N) % 2)[:, None])
    assert_array_equal(ties.rank(X[:5, :1]), np.tile(np.arange(M), (5, 1)))


def test_devices_that_are_not_there_are_named(monkeypatch):
    with pytest.raises(ValueError, match='device must be "cpu", "cuda"'):
        LogisticRanker(device="gpu").fit(X, Y)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match='PyTorch sees 0 CUDA devices; use device="auto"'):
        LogisticRanker(device="cuda").fit(X, Y)
    assert LogisticRanker(device="auto").fit(X, Y).converged_.all()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"needs PyTorch: pip install 'deltarank\[gpu\]'"):
        LogisticRanker(device="cuda").fit(X, Y)
    assert LogisticRanker(device="auto").fit(X, Y).converged_.all()


@pytest.mark.usefixtures("on_device")
def test_too_little_memory_takes_smaller_blocks_and_then_says_so(monkeypatch):
    monkeypatch.setattr(tuning.DEVICE, "largest_work", 0)
    sizes, plain = [], DeviceRows._evaluate

    def fits_below(limit):
        def evaluate(self, *args):
            sizes.append(self._cells)
            if self._cells > limit:
                raise torch.OutOfMemoryError
            return plain(self, *args)

        return evaluate

    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(DeviceRows, "_evaluate", fits_below(2**22))
    assert LogisticRanker(device="cuda").fit(X, Y).converged_.all()
    assert sizes[0] > 2**22 >= sizes[-1]
    monkeypatch.setattr(DeviceRows, "_evaluate", fits_below(0))
    with pytest.raises(MemoryError, match="too little memory for 15 labels and 12 features"):
        LogisticRanker(device="cuda").fit(X, Y)


@pytest.mark.usefixtures("on_device")
def test_a_checkpoint_tells_unknown_cells_from_irrelevant_ones(tmp_path):
    # All rows count the same, so that the unknown cell is all that differs.
    options = {"weight": lambda Y: np.ones(N), "checkpoint": str(tmp_path / "kept")}
    labels = Y.astype(float)
    LogisticRanker(device="cuda", **options).fit(X, labels)
    row = np.flatnonzero((Y[:, 0] == 0) & (Y.sum(axis=1) > 0) & (Y.sum(axis=1) < M - 1))[0]
    labels[row, 0] = np.nan
    with pytest.raises(ValueError, match="other data"):
        LogisticRanker(device="cuda", **options).fit(X, labels)


def _with_holes(x):
    holed = x.copy()
    holed[np.random.default_rng(1).random(x.shape) < 0.1] = np.nan
    return holed


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("on_device", ["newton"], indirect=True)
@pytest.mark.parametrize(
    ("data", "options"),
    [
        (X, {}),
        (X, {"criterion": "error", "bins": 16}),
        (X, {"criterion": "z", "votes": "real", "shrinkage": 0.5}),
        (X[:400], {"bins": None}),
        (_with_holes(X), {"weight": "uniform"}),
        (SPARSE[:, :30].tocsr(), {}),
        (np.column_stack([np.ones(N), X[:, 0]]), {}),
        (np.ones((N, 2)), {}),
    ],
    ids=["plain", "error", "z", "all values", "holes", "sparse", "constant", "nothing"],
)
def test_stumps_are_those_of_the_kernels(data, options, monkeypatch):
    # The kernels too take float32 here, and call splits equal that differ by less than 1e-6.
    monkeypatch.setattr(places, "FLOAT64_CELLS", 0)
    labels = Y[: data.shape[0]]
    ours = AdaBoostRanker(n_stumps=8, **options).fit(data, labels)
    other = AdaBoostRanker(n_stumps=8, device="cuda", **options).fit(data, labels)
    assert_array_equal(other.features_, ours.features_)
    assert_array_equal(other.thresholds_, ours.thresholds_)
    # Where no value is missing, that branch votes by all rows, which boosting makes even.
    used = 3 if not sparse.issparse(data) and np.isnan(data).any() else 2
    assert_allclose(other.votes_[:, :used], ours.votes_[:, :used], rtol=1e-3, atol=1e-4)
    assert_allclose(other.decision_function(data), ours.decision_function(data), atol=2e-3)


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("on_device", ["newton"], indirect=True)
def test_unknown_labels_have_no_weight_on_the_device():
    labels = Y.astype(float)
    labels[np.random.default_rng(2).random(Y.shape) < 0.2] = np.nan
    ours = AdaBoostRanker(n_stumps=5).fit(X, labels)
    other = AdaBoostRanker(n_stumps=5, device="cuda").fit(X, labels)
    assert_allclose(other.decision_function(X), ours.decision_function(X), rtol=1e-3, atol=1e-3)


def objective_of(data, labels, penalize_intercept=False, **options):
    weights = RNG.uniform(0.5, 2, N)
    rows = DeviceRows(data, label_sets(labels), weights, device=torch.device("cpu"), **options)
    coordinates = Coordinates.rotated(rows.moments(), rows)
    return Objective(rows, C=3.0, penalize_intercept=penalize_intercept, coordinates=coordinates)


def hessians_of(objective, points, problems):
    diagonals = objective.evaluate(points, problems, Precision.DOUBLE).diagonal
    hessians, owner = objective.hessians(points, problems, diagonals)
    return hessians[owner]


@pytest.mark.parametrize("on_device", ["lbfgs"], indirect=True)
@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize(
    "options", [{}, {"penalize_intercept": True}, {"positive_cost": 3.0}], ids=str
)
@pytest.mark.parametrize("case", ["dense", "sparse", "unknown labels", "folds"])
def test_hessians_are_the_slopes_of_gradients(monkeypatch, case, options):
    monkeypatch.setattr(tuning.DEVICE, "rows_per_variable", N)
    labels = Y.astype(float)
    if case == "unknown labels":
        labels[RNG.random(Y.shape) < 0.2] = np.nan
    objective = objective_of(SPARSE[:, :30] if case == "sparse" else X, labels, **options)
    if case == "folds":
        objective = objective.with_folds(np.arange(N) % 3)
        # Folds of a frequent label would share one.
        monkeypatch.setattr(objective.rows, "frequencies", np.zeros(M))
    problems = torch.tensor([1, 4, 14])
    points = torch.as_tensor(RNG.normal(scale=0.1, size=(3, objective.shape[1]))) * 0.3
    found = hessians_of(objective, points, problems)
    for place in (0, objective.shape[1] // 2, objective.shape[1] - 1):
        # Sums in float64 allow a step so small that the gradient is straight along it.
        h = 1e-4
        aside = torch.zeros_like(points)
        aside[:, place] = h
        gradients = [
            objective.evaluate(points + sign * aside, problems, Precision.DOUBLE).gradient
            for sign in (1, -1)
        ]
        slopes = (gradients[0] - gradients[1]) / (2 * h)
        size = float(slopes.abs().max())
        assert_allclose(found[:, :, place], slopes, atol=1e-4 * size)


@pytest.mark.parametrize("on_device", ["lbfgs"], indirect=True)
@pytest.mark.usefixtures("on_device")
def test_sampled_hessians_are_about_right(monkeypatch):
    objective = objective_of(X, Y)
    problems = torch.arange(M)
    points = torch.as_tensor(RNG.normal(scale=0.1, size=(M, D + 1)))
    sampled = hessians_of(objective, points, problems)
    monkeypatch.setattr(tuning.DEVICE, "rows_per_variable", N)
    exact = hessians_of(objective, points, problems)
    factors = torch.linalg.cholesky(exact)
    seen = torch.linalg.solve_triangular(factors, sampled, upper=False)
    seen = torch.linalg.solve_triangular(factors, seen.mT, upper=False)
    share = torch.linalg.eigvalsh(seen)
    # About 2 / sqrt(32) either way.
    assert 0.5 < float(share.min()) < float(share.max()) < 1.7
    assert not torch.equal(sampled, exact)


@pytest.mark.parametrize("on_device", ["lbfgs"], indirect=True)
@pytest.mark.usefixtures("on_device")
def test_labels_that_can_almost_be_split_converge_too():
    """Without Hessians these take more than three hundred passes, and stop a little early."""
    ours = LogisticRanker(C=1e4, tol=1e-8).fit(SPARSE, Y)
    other = LogisticRanker(C=1e4, device="cuda").fit(SPARSE, Y)
    assert other.converged_.all()
    assert other.n_iter_.max() < 100
    assert_allclose(other.objective_, ours.objective_, rtol=1e-6)
