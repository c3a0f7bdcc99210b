"""Going on from an earlier fit: more rows, labels that come and go, the same minimum."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from deltarank import LogisticRanker
from deltarank.core import devices
from deltarank.linear.rows import tuning

RNG = np.random.default_rng(0)
N, D, M = 3000, 20, 8
X = RNG.normal(size=(N, D))
Y = (X @ RNG.normal(size=(D, M)) + 3 * RNG.logistic(size=(N, M)) > RNG.uniform(0, 5, M)) * 1
OLD = slice(0, 2800)


@pytest.fixture(params=["small", "local", "device"])
def engine(request, monkeypatch):
    """Make a ranker use one engine, whatever the size of the data."""
    monkeypatch.setattr(tuning.LOCAL, "largest_table", np.inf if request.param == "small" else 0)
    if request.param != "device":
        return {}
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    to_cpu = lambda name: None if name == "cpu" else torch.device("cpu")  # noqa: E731
    monkeypatch.setattr(devices, "find_device", to_cpu)
    return {"device": "cuda"}


@pytest.mark.parametrize("features", [np.asarray, sparse.csr_array])
def test_more_rows_lead_to_the_minimum_of_all_rows(engine, features):
    ranker = LogisticRanker(warm_start=True, **engine).fit(features(X[OLD]), Y[OLD])
    ranker.fit(features(X), Y)
    fresh = LogisticRanker(**engine).fit(features(X), Y)
    assert ranker.converged_.all()
    assert_allclose(ranker.objective_, fresh.objective_, rtol=2e-6)
    assert ranker.n_iter_.sum() < fresh.n_iter_.sum()


def test_labels_are_matched_by_name(engine):
    """A label goes, two come, one of them in between, and the others change places."""
    before = pd.DataFrame(Y[:, :6], columns=list("abcdef"))
    now = pd.DataFrame(Y[:, [7, 5, 0, 1, 2, 6, 3]], columns=list("hfabcgd"))
    ranker = LogisticRanker(warm_start=True, **engine).fit(X, before).fit(X, now)
    fresh = LogisticRanker(**engine).fit(X, now)
    assert ranker.classes_.tolist() == list("hfabcgd")
    assert_allclose(ranker.objective_, fresh.objective_, rtol=2e-6)
    # With new weights the old labels are near their minimum, the new ones are not.
    assert ranker.n_iter_[[1, 2, 3, 4, 6]].mean() <= ranker.n_iter_[[0, 5]].mean()


def test_names_come_from_label_sets_too():
    names = np.array(list("abcdefgh"))
    sets = [set(names[y == 1].tolist()) for y in Y]
    without = [row - {"a", "c"} for row in sets]
    ranker = LogisticRanker(warm_start=True).fit(X, without).fit(X, sets)
    fresh = LogisticRanker().fit(X, sets)
    assert_allclose(ranker.coef_, fresh.coef_, atol=2e-3)


def test_a_label_that_was_constant_starts_afresh(engine):
    """It scored -1e30: no place to go on from."""
    before = Y.copy()
    before[:, 0], before[:, 1] = 0, 1
    ranker = LogisticRanker(warm_start=True, **engine).fit(X, before).fit(X, Y)
    fresh = LogisticRanker(**engine).fit(X, Y)
    assert ranker.converged_.all()
    assert_allclose(ranker.objective_, fresh.objective_, rtol=2e-6)
    assert ranker.n_iter_.max() <= fresh.n_iter_.max() + 2


def test_classes_may_change_too():
    y = Y[:, :3].argmax(axis=1)
    ranker = LogisticRanker(warm_start=True).fit(X, y == 1).fit(X, y).fit(X, y == 2)
    assert_allclose(ranker.coef_, LogisticRanker().fit(X, y == 2).coef_, atol=1e-3)


def test_other_features_are_refused_with_a_way_out():
    ranker = LogisticRanker(warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match=r"a fit of 20 features, .* got 19; fit a new ranker"):
        ranker.fit(X[:, 1:], Y)
    frame = pd.DataFrame(X[:, :3], columns=list("pqr"))
    named = LogisticRanker(warm_start=True).fit(frame, Y)
    with pytest.raises(ValueError, match=r"column 0 was 'p' and is 'q'.* warm_start=False"):
        named.fit(frame[["q", "p", "r"]], Y)


def test_the_example_goes_on(run_example):
    example = run_example("plot_more_rows")
    assert all(
        warm < fresh for warm, fresh in zip(example["warm"][1:], example["fresh"][1:], strict=True)
    )
