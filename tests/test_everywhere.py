"""The table of options and places: every option of a fit works wherever rows lie.

A cell of the table is a fit with one option in one place, held to the same fit of plain rows in
memory, or to what the option promises. `docs/scaling.md` prints the table.
"""

from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize

from deltarank import KernelLogisticRanker, LogisticRanker, LogisticRankerCV, instance_weights
from deltarank.core import devices
from deltarank.core.losses import LOSSES
from deltarank.core.progress import listening
from deltarank.linear.rows import costs, tuning

RNG = np.random.default_rng(0)
N, D, M = 900, 8, 6
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.6)
SCORES = X @ RNG.normal(size=(D, M)) + RNG.logistic(size=(N, M))
Y = (RNG.uniform(0, 4, M) < SCORES).astype(int)
COUNTS = RNG.integers(0, 3, N).astype(float)
UNKNOWN = np.where(RNG.random(Y.shape) < 0.2, np.nan, Y)
WEIGHTS = instance_weights(Y)
TRAINABLE = [name for name, loss in LOSSES.items() if loss.link and loss.inverse_link]


class Place:
    """How rows get to a place: X, Y and weights as it takes them, and options that lead there."""

    def __init__(self, features=np.asarray, others=np.asarray, **options):
        self.features, self.others, self.options = features, others, options

    def fit(self, ranker, X=X, Y=Y, counts=None):
        given = None if counts is None else self.others(counts)
        return ranker.set_params(**self.options).fit(self.features(X), self.others(Y), given)


def in_chunks(array):
    da = pytest.importorskip("dask.array", reason="needs Dask")
    return da.from_array(np.asarray(array), chunks=(300, *np.shape(array)[1:]))


def in_sparse_chunks(array):
    return in_chunks(array).map_blocks(sparse.csr_array)


PLACES = {
    "dense": Place(),
    "sparse": Place(sparse.csr_array),
    "sparse, wide": Place(sparse.csr_array),
    "small": Place(),
    "cuda": Place(device="cuda"),
    "cuda, small": Place(device="cuda"),
    "cuda, sparse": Place(sparse.csr_array, device="cuda"),
    "dask": Place(in_chunks, in_chunks),
    "dask, sparse": Place(in_sparse_chunks, in_chunks),
}


@pytest.fixture(scope="module")
def cluster():
    """A cluster in this process; most places need none."""
    distributed = pytest.importorskip("distributed", reason="needs Dask")
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with (
        distributed.LocalCluster(**settings, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(params=PLACES)
def place(request, monkeypatch):
    name = request.param
    monkeypatch.setattr(tuning.LOCAL, "largest_table", np.inf if name == "small" else 0)
    if name == "sparse, wide":  # where dual coordinate ascent is quicker than passes
        monkeypatch.setattr(tuning.LOCAL, "most_rotated_sparse", 0)
        monkeypatch.setattr(costs, "EPOCHS", 0)
    if name.startswith("cuda"):
        torch = pytest.importorskip("torch", reason="needs PyTorch")

        torch.set_num_threads(1)
        here = torch.device("cpu")
        monkeypatch.setattr(devices, "find_device", lambda name: None if name == "cpu" else here)
        if name != "cuda, small":
            monkeypatch.setattr(tuning.DEVICE, "largest_work", 0)
    if name.startswith("dask"):
        request.getfixturevalue("cluster")
    return PLACES[name]


def assert_same_fit(one, other, digits=1e-6):
    """Two fits of the same problems end at the same least objectives, and score alike."""
    assert one.converged_.all()
    assert_allclose(one.objective_, other.objective_, rtol=2 * digits)
    scores = [ranker.decision_function(X) for ranker in (one, other)]
    # A relative gap of 1e-6 leaves scores free by about its root.
    assert_allclose(scores[0], scores[1], atol=0.02 * np.abs(scores[1]).max())


OPTIONS = [
    {"C": 0.03},
    {"weight": "uniform"},
    {"positive_cost": 3.0},
    {"balance": 0.5},
    {"balance": 1.0, "weight": "uniform", "positive_cost": 2.0},
    {"positive_cost": [1.0, 2.0, 0.5, 4.0, 1.0, 3.0], "balance": 0.5},
    {"label_weight": [1.0, 5.0, 0.2, 1.0, 0.01, 3.0]},
    {"penalize_intercept": True},
    {"n_jobs": 2},
    *({"loss": loss} for loss in TRAINABLE),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_is_minimised_is_the_same_everywhere(place, options):
    ranker = place.fit(LogisticRanker(**options))
    assert_same_fit(ranker, LogisticRanker(**options, tol=1e-9).fit(X, Y))


def test_sample_weights_count_everywhere(place):
    ranker = place.fit(LogisticRanker(), counts=COUNTS)
    assert_same_fit(ranker, LogisticRanker(tol=1e-9).fit(X, Y, COUNTS))


def test_unknown_labels_are_left_out_everywhere(place):
    ranker = place.fit(LogisticRanker(unknown="known_part"), Y=UNKNOWN)
    assert_same_fit(ranker, LogisticRanker(tol=1e-9, unknown="known_part").fit(X, UNKNOWN))


def test_weights_are_averaged_over_unknown_labels_everywhere(place):
    ranker = place.fit(LogisticRanker(), Y=UNKNOWN)
    # Chances that the weights come from are found to the same few digits, hence one digit less.
    assert_same_fit(ranker, LogisticRanker(tol=1e-9).fit(X, UNKNOWN), digits=1e-5)


def test_rows_are_completed_everywhere_but_on_a_cluster(place):
    ranker = LogisticRanker(unknown="completed")
    if place.features in (in_chunks, in_sparse_chunks):
        with pytest.raises(ValueError, match="not for rows on a cluster"):
            place.fit(ranker, Y=UNKNOWN)
        return
    expected = LogisticRanker(tol=1e-9, unknown="completed").fit(X, UNKNOWN)
    # Targets move with the chances, which a relative gap of 1e-6 leaves free by about 1e-3.
    assert_same_fit(place.fit(ranker, Y=UNKNOWN), expected, digits=1e-4)


def test_small_coefficients_are_pruned_everywhere(place):
    ranker = place.fit(LogisticRanker(prune=0.3))
    whole = LogisticRanker(tol=1e-9).fit(X, Y)
    assert sparse.issparse(ranker.coef_)
    assert_allclose(
        ranker.coef_.toarray(), np.where(np.abs(whole.coef_) < 0.3, 0, whole.coef_), atol=0.02
    )
    assert ranker.prune_effect_.max() > 0


def test_a_checkpoint_is_gone_on_from_everywhere(place, tmp_path):
    options = {"checkpoint": str(tmp_path / "blocks")}
    first = place.fit(LogisticRanker(**options))
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "blocks").iterdir()}
    again = place.fit(LogisticRanker(**options))
    assert len(written) >= 2
    assert written == {path: path.stat().st_mtime_ns for path in (tmp_path / "blocks").iterdir()}
    assert_allclose(again.coef_, first.coef_)
    with pytest.raises(ValueError, match="other data or other parameters"):
        place.fit(LogisticRanker(**options, C=2.0))


def test_a_warm_start_saves_passes_everywhere(place):
    ranker = place.fit(LogisticRanker(warm_start=True))
    fresh = ranker.n_iter_.sum()
    assert place.fit(ranker).n_iter_.sum() < fresh
    assert_same_fit(ranker, LogisticRanker(tol=1e-9).fit(X, Y))


def test_progress_is_told_everywhere(place):
    shares = []

    @contextmanager
    def listener(title):
        yield shares.append

    with listening(listener):
        place.fit(LogisticRanker())
    assert shares
    assert shares[-1] == pytest.approx(1.0)
    assert (np.diff(shares) >= -1e-9).all()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_jobs": 2},
        {"prune": 0.01},
        {"checkpoint": True},
        {"loss": "squared"},
        {"balance": 1.0},
        {"positive_cost": [1.0, 2.0, 0.5, 4.0, 1.0, 3.0]},
        {"label_weight": "inverse_frequency"},
    ],
    ids=str,
)
def test_c_is_chosen_and_all_rows_fitted_again_everywhere(place, options, tmp_path):
    if "checkpoint" in options:
        options = {"checkpoint": str(tmp_path)}
    common = {name: value for name, value in options.items() if name != "checkpoint"}
    ranker = place.fit(LogisticRankerCV(Cs=[1e-6, 1.0], cv=3, random_state=0, **options))
    assert ranker.C_ == 1.0
    assert ranker.cv_results_["mean_test_score"][0] < ranker.cv_results_["mean_test_score"][1]
    assert_same_fit(ranker, LogisticRanker(C=1.0, **common, tol=1e-9).fit(X, Y))
    if "checkpoint" in options:
        assert {path.name for path in tmp_path.iterdir()} == {"folds", "final"}
        again = place.fit(LogisticRankerCV(Cs=[1e-6, 1.0], cv=3, random_state=0, **options))
        assert_allclose(again.coef_, ranker.coef_)


def test_a_balance_is_chosen_with_c_everywhere(place):
    ranker = place.fit(
        LogisticRankerCV(Cs=[1e-6, 1.0], balances=[0.0, 0.5, 1.0], cv=3, random_state=0)
    )
    tried = list(zip(*(ranker.cv_results_[f"param_{p}"] for p in ("C", "balance")), strict=True))
    assert {(1e-6, 0.0), (1.0, 0.0), (1.0, 0.5), (1.0, 1.0)} <= set(tried)
    best = ranker.cv_results_["mean_test_score"].argmax()
    assert (ranker.C_, ranker.balance_) == tried[best]
    alone = LogisticRanker(C=ranker.C_, balance=ranker.balance_, tol=1e-9).fit(X, Y)
    assert_same_fit(ranker, alone)


@pytest.mark.parametrize(
    "options", [{}, {"n_jobs": 2}, {"checkpoint": True}, {"balance": 1.0}], ids=str
)
def test_kernels_are_chosen_everywhere(place, options, tmp_path):
    if "checkpoint" in options:
        options = {"checkpoint": str(tmp_path)}
    settings = {"n_landmarks": 30, "gamma": 0.1, "C": 1.0, "random_state": 0}
    ranker = place.fit(KernelLogisticRanker(**settings, **options))
    linear = LogisticRanker().fit(X, Y)
    assert ranker.score(X, Y) > linear.score(X, Y) - 0.02
    assert ranker.n_features_in_ == D
    assert any(tmp_path.iterdir()) == ("checkpoint" in options)


def test_what_a_cluster_cannot_do_is_refused_in_words(cluster):
    data = in_chunks(X), in_chunks(Y)
    with pytest.raises(ValueError, match=r"cv must be an integer .* for Dask collections"):
        LogisticRankerCV(cv=[(np.arange(10), np.arange(10, 20))]).fit(*data)
    with pytest.raises(ValueError, match="scoring must be a name for Dask collections"):
        LogisticRankerCV(scoring=lambda ranker, X, Y: 0.0).fit(*data)


def objective(coef, intercept, label, loss, weights, C=1.0):
    """Value and gradient of one label's objective, in float64, from its definition."""
    signs = 2.0 * Y[:, label] - 1
    value, slope = LOSSES[loss].value_and_derivative(signs * (X @ coef + intercept))
    residuals = weights * signs * slope
    gradient = np.append(X.T @ residuals + coef / C, residuals.sum())
    return weights @ value + coef @ coef / (2 * C), gradient


@pytest.mark.parametrize("loss", TRAINABLE)
def test_every_loss_is_minimised_to_what_scipy_finds(loss, monkeypatch):
    for largest in (0, np.inf):
        monkeypatch.setattr(tuning.LOCAL, "largest_table", largest)
        ranker = LogisticRanker(loss=loss, tol=1e-9).fit(X, Y)
        for label in range(M):
            peer = minimize(
                lambda p, label=label: objective(p[:-1], p[-1], label, loss, WEIGHTS),
                np.zeros(D + 1), jac=True, method="BFGS", options={"gtol": 1e-9},
            )  # fmt: skip
            own = objective(ranker.coef_[label], ranker.intercept_[label], label, loss, WEIGHTS)[0]
            assert own == pytest.approx(peer.fun, rel=1e-6)
            assert ranker.objective_[label] == pytest.approx(peer.fun, rel=1e-6)


@pytest.mark.parametrize("loss", TRAINABLE)
@pytest.mark.parametrize("cost", [1.0, 4.0])
def test_marginal_weights_undo_loss_and_cost(loss, cost):
    """Without features the best score stands for the share of rows that a label is relevant in."""
    shares = np.array([0.2, 0.5, 0.8])
    labels = np.arange(1000)[:, None] < 1000 * shares
    ranker = LogisticRanker(loss=loss, positive_cost=cost, weight=lambda Y: np.ones(1000), C=1e6)
    ranker.fit(np.zeros((1000, 1)), labels.astype(int))
    assert_allclose(ranker.marginal_weights([[0.0]])[0], shares, atol=2e-3)


def test_a_loss_without_a_minimiser_is_refused():
    with pytest.raises(ValueError, match="unknown loss 'hinge'; choose one of"):
        LogisticRanker(loss="hinge").fit(X, Y)
