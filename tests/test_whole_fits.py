"""A fit changes an estimator once, at its end, whole: failed, interrupted and rival fits."""

import inspect
import os
import pickle
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import deltarank
from deltarank import AdaBoostRanker, LogisticRanker, LogLinearRanker, rankers
from test_estimator_checks import RANKERS

OURS = str(Path(deltarank.__file__).parent) + os.sep
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
OLD = [{"a", "b", "c"} if row[0] > 0.5 else {"a"} if row[1] > 0 else {"b"} for row in X]
NEW = [{"v", "w"} if row[2] > 0.5 else {"x", "y"} if row[1] > 0 else {"z"} for row in X]
ONE_OF_A_KIND = {
    type(ranker): clone(ranker).set_params(random_state=0)
    if "random_state" in ranker.get_params()
    else ranker
    for ranker in reversed(RANKERS)
}
EVERY = pytest.mark.parametrize("ranker", ONE_OF_A_KIND.values(), ids=lambda it: type(it).__name__)
POINTS = 10


@pytest.fixture(autouse=True)
def without_warnings():
    """Few rounds suffice here."""
    from warnings import catch_warnings, simplefilter

    from sklearn.exceptions import ConvergenceWarning

    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)
        yield


class InterruptedAt:
    """Press Ctrl-C when so many functions of the library have been called.

    Generators are passed over: they are also called to be closed, as when `any` has seen enough,
    and Python ignores whatever is raised there.
    """

    def __init__(self, call):
        self.call, self.n_calls = call, 0

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def __call__(self, frame, event, _):
        code = frame.f_code
        if event == "call" and not code.co_flags & inspect.CO_GENERATOR:
            self.n_calls += code.co_filename.startswith(OURS)
            if self.n_calls == self.call:
                raise KeyboardInterrupt


def state(ranker):
    return pickle.dumps({name: vars(ranker)[name] for name in sorted(vars(ranker))})


def test_every_exported_ranker_is_tried():
    exported = {it for it in map(vars(rankers).get, rankers.__all__) if isinstance(it, type)}
    assert set(ONE_OF_A_KIND) == exported


@EVERY
def test_a_failed_refit_leaves_the_ranker_as_it_was(ranker):
    fitted = clone(ranker).fit(X, OLD)
    before, order = state(fitted), fitted.rank(X)
    for bad in ({"sample_weight": -np.ones(len(X))}, {"sample_weight": np.ones(3)}):
        with pytest.raises(ValueError, match="sample_weight"):
            fitted.fit(X, NEW, **bad)
    with pytest.raises(ValueError):  # noqa: PT011 - each ranker says it in words of its own
        fitted.fit(X[:, :2], NEW[:-1])
    assert state(fitted) == before
    assert_array_equal(fitted.rank(X), order)


@EVERY
def test_a_failed_first_fit_leaves_nothing(ranker):
    ranker = clone(ranker)
    before = state(ranker)
    with pytest.raises(ValueError, match="sample_weight"):
        ranker.fit(X, NEW, sample_weight=-np.ones(len(X)))
    assert state(ranker) == before


@EVERY
def test_an_interrupted_refit_leaves_the_ranker_as_it_was(ranker):
    fitted = clone(ranker).fit(X, OLD)
    before, order = state(fitted), fitted.rank(X)
    again = clone(fitted).fit(X, OLD)
    with InterruptedAt(None) as full:
        again.fit(X, NEW)
    for call in np.unique(np.linspace(1, full.n_calls, POINTS).astype(int)):
        with pytest.raises(KeyboardInterrupt), InterruptedAt(call):
            fitted.fit(X, NEW)
        assert state(fitted) == before
    assert_array_equal(fitted.rank(X), order)
    assert set(fitted.fit(X, NEW).rank(X[:1])[0]) == set("vwxyz")


@EVERY
def test_of_two_threads_that_fit_one_ranker_one_wins_whole(ranker):
    shared, either = clone(ranker), [clone(ranker).fit(X, Y) for Y in (OLD, NEW)]
    orders = [fitted.rank(X).tolist() for fitted in either]
    for _ in range(3):
        together = threading.Barrier(2)

        def fit(Y, together=together):
            together.wait()
            shared.fit(X, Y)

        threads = [threading.Thread(target=fit, args=(Y,)) for Y in (OLD, NEW)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert shared.rank(X).tolist() in orders


@EVERY
def test_scores_that_do_not_fit_the_labels_are_refused(ranker):
    fitted = clone(ranker).fit(X, OLD)
    fitted.classes_ = np.array(list("abcde"))
    for call in (fitted.rank, fitted.decision_function):
        with pytest.raises(ValueError, match=r"one column for each of the 5 labels.*fit it again"):
            call(X)
    with pytest.raises(ValueError, match="one column for each of the 5 labels"):
        fitted.rank(X[:1])


@pytest.mark.parametrize("ranker", [AdaBoostRanker(n_stumps=9), LogLinearRanker(n_iterations=9)])
def test_stages_are_published_one_by_one(ranker):
    fitted = clone(ranker).fit(X, OLD)
    before = state(fitted)
    stages = fitted.fit_stages(X, NEW, stages=[2, 9])
    assert state(fitted) == before
    assert next(stages) is fitted
    wanted = clone(ranker).set_params(**{ranker.rounds_parameter: 2}).fit(X, NEW)
    assert_array_equal(fitted.decision_function(X), wanted.decision_function(X))
    stages.close()
    if isinstance(ranker, LogLinearRanker):
        with pytest.raises(ValueError, match=r"last iteration fitted, 2.*got 9"):
            list(fitted.staged_decision_function(X))


def test_a_ranker_of_somebody_else_publishes_at_the_end_too():
    class Late(LogisticRanker):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y, sample_weight)
            raise KeyboardInterrupt

    ranker = Late()
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(X, OLD)
    assert not hasattr(ranker, "classes_")
