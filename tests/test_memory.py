"""Memory is bounded by a budget, and what cannot fit is refused before the work, in words."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from deltarank import LogisticRanker, LogisticRankerCV, rank_loss, rankers
from deltarank.core import memory
from deltarank.core.splits import LabelStratifiedKFold

RNG = np.random.default_rng(0)
# What is wanted, what there is, and what to do.
REFUSAL = r"refused: .+ needs [\d.]+ [kMG]B of memory, and [\d.]+ [kMG]B are free; \w+"


def text_like(n_rows, n_features, n_labels, words=20):
    columns = np.minimum(RNG.zipf(1.2, size=(n_rows, words)), n_features) - 1
    rows = np.repeat(np.arange(n_rows), words)
    X = sparse.csr_array(
        (np.ones(columns.size), (rows, columns.reshape(-1))), shape=(n_rows, n_features)
    )
    X.sum_duplicates()
    Y = sparse.random_array((n_rows, n_labels), density=2 / n_labels, rng=RNG, format="csr")
    Y.data[:] = 1
    # A label follows a word of its own, so that there is something to learn.
    words_of_labels = X[:, np.arange(n_labels) + 3].astype(bool).astype(float)
    return X / np.sqrt(words), ((Y + words_of_labels) > 0).astype(float)


class TestAmounts:
    def test_amounts_are_read_as_people_write_them(self):
        assert memory.to_bytes("2g", "--memory") == 2 * 1024**3
        assert memory.to_bytes(" 1.5 GiB ", "--memory") == 1.5 * 1024**3
        assert memory.to_bytes("1000", "--memory") == 1000

    @pytest.mark.parametrize("text", ["", "lots", "-1G", "0", "1e9", "4GX"])
    def test_others_are_refused(self, text):
        with pytest.raises(ValueError, match="--memory must be an amount of memory such as"):
            memory.to_bytes(text, "--memory")

    def test_the_variable_sets_the_budget(self, monkeypatch):
        monkeypatch.setenv("DELTARANK_MEMORY", "300M")
        assert memory.budget() == 300 * 2**20
        monkeypatch.delenv("DELTARANK_MEMORY")
        assert 0 < memory.budget() <= memory.available()

    def test_what_is_free_follows_the_kernel(self):
        path = Path("/proc/meminfo")
        if not path.exists():
            pytest.skip("needs Linux")
        total = int(path.read_text().split()[1]) * 1024
        assert 0 < memory.available() <= total


def test_a_model_that_cannot_fit_is_refused_at_once(monkeypatch):
    X, Y = text_like(60, 3000, 8)
    monkeypatch.setattr(memory, "available", lambda: 100_000)
    with pytest.raises(MemoryError, match=r"8 labels and 3000 features needs 797 kB .*prune"):
        LogisticRanker().fit(X, Y)


def test_a_search_that_cannot_fit_is_refused_at_once(monkeypatch):
    X, Y = text_like(60, 3000, 8)
    monkeypatch.setattr(memory, "available", lambda: 100_000)
    with pytest.raises(MemoryError, match="labels"):
        LogisticRankerCV(cv=2, scoring=lambda ranker, X, Y: 0.0).fit(X, Y)


@pytest.mark.parametrize("is_dual", [True, False])
@pytest.mark.parametrize("sets", [False, True])
def test_cross_validation_in_blocks_is_that_of_separate_fits(monkeypatch, is_dual, sets):
    from deltarank.linear import logistic_cv
    from deltarank.linear.rows.csr import CSRMatrix

    monkeypatch.setattr(CSRMatrix, "takes_dual", lambda self, n_rows, *Cs: is_dual)
    monkeypatch.setattr(logistic_cv, "VALIDATION_TOL", 1e-6)
    monkeypatch.setenv("DELTARANK_MEMORY", "2M")  # several blocks
    X, Y = text_like(200, 1500, 30)
    given = [set(np.flatnonzero(row)) for row in Y.toarray()] if sets else Y
    counts = RNG.integers(0, 3, 200).astype(float)
    Cs = [0.1, 30.0]
    ranker = LogisticRankerCV(Cs=Cs, cv=3, random_state=0).fit(X, given, counts)
    splits = list(LabelStratifiedKFold(3, random_state=0).split(X, Y))
    for place, C in enumerate(Cs):
        for number, (train, test) in enumerate(splits):
            own = LogisticRanker(C=C).fit(X[train], Y[train], counts[train])
            loss = rank_loss(Y[test], own.decision_function(X[test]), sample_weight=counts[test])
            found = ranker.cv_results_[f"split{number}_test_score"][place]
            assert found == pytest.approx(-loss, abs=2e-3)
    whole = LogisticRanker(C=ranker.C_).fit(X, Y, counts)
    assert_allclose(ranker.objective_, whole.objective_, rtol=1e-5)


def test_few_rows_are_measured_where_all_scores_would_not_fit(monkeypatch):
    from deltarank.linear import path_blocks

    monkeypatch.setattr(path_blocks, "FEWEST_MEASURED", 50)
    monkeypatch.setenv("DELTARANK_MEMORY", "60K")
    X, Y = text_like(300, 1500, 30)
    ranker = LogisticRankerCV(Cs=[1e-5, 30.0], cv=3, random_state=0).fit(X, Y)
    assert ranker.C_ == 30.0


# Rankers at their quickest, of which each is refused on the data of `WIDE` if these have this many
# megabytes, None where it fits any room: it goes label by label, or group by group.
RANKERS = {
    "LogisticRanker()": 60,
    "LogisticRanker(prune=0.1)": None,
    "LogisticRankerCV(cv=2, Cs=[1.0, 10.0])": 60,
    "KernelLogisticRanker(C=1.0, cv=2, n_landmarks=100)": 1,
    "LabelTreeRanker()": None,
    "AdaBoostRanker(n_stumps=2)": 20,
    "AdaBoostMR(n_stumps=2)": 20,
    "AdaBoostMH(n_stumps=2)": 20,
    "BoostedTreeRanker(n_trees=2)": 20,
    "StagedSearchCV(AdaBoostMH(), rounds=[1, 2], cv=2)": 10,
    "PairwiseRanker(max_iter=2)": 60,
    "LogLinearRanker(n_iterations=2)": 60,
    "WeightedBinaryRelevance(LogisticRegression(max_iter=2))": 60,
    "CalibratedRanker(LogisticRanker(prune=0.1), cv=2)": 60,
    "ConformalRanker(LogisticRanker(prune=0.1))": 10,
    "MetricRanker(LogisticRanker(weight='uniform', prune=0.1), k=3, cv=2)": 30,
}
WIDE = """
    import resource, sys, warnings
    sys.path[:0] = {path!r}
    warnings.simplefilter("ignore")
    from sklearn.linear_model import LogisticRegression
    from test_memory import text_like
    from deltarank import *
    X, Y = text_like(800, {n_features}, 2000)
    {ranker}.fit(*text_like(100, 400, 5))  # compiled, and threads started, before the limit is set
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + {room}, size + {room}))
    try:
        {ranker}.fit(X, Y)
        print("fitted")
    except MemoryError as error:
        print("refused:", error)
"""


def test_every_ranker_is_tried_with_little_memory():
    tried = " ".join(RANKERS)
    assert [name for name in rankers.__all__ if name.endswith(("Ranker", "CV", "MR", "MH", "ce"))
            and name not in tried] == []  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("room", ["little", "enough"])
def test_wide_text_is_refused_in_words_or_fits_the_room(ranker, room):
    path = [p for p in sys.path if p]
    little = 2**20 * (RANKERS[ranker] or 300)
    given = {"room": little if room == "little" else 2**31, "n_features": 5000}
    code = textwrap.dedent(WIDE).format(path=path, ranker=ranker, **given)
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
    )
    assert found.returncode == 0, found.stderr[-2000:]
    if room == "little" and RANKERS[ranker] is not None:
        assert re.match(REFUSAL, found.stdout), found.stdout
    else:
        assert found.stdout == "fitted\n"


BOUNDED = """
    import resource, sys
    import numpy as np
    sys.path[:0] = {path!r}
    from test_memory import text_like
    from deltarank import LogisticRanker, LogisticRankerCV
    from deltarank.core import memory
    X, Y = text_like(600, 12_000, 600)
    small = text_like(100, 1_200, 5)
    LogisticRankerCV(cv=2).fit(*small)  # compiled, and threads started, before the limit is set
    LogisticRanker(C=100.0).fit(*small)
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + {room}, size + {room}))
    try:
        LogisticRankerCV(cv=3, random_state=0).fit(X, Y)
        print("fitted")
    except MemoryError as error:
        print("refused:", error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
@pytest.mark.parametrize(
    ("room", "answer"), [(600 * 2**20, "fitted"), (40 * 2**20, "refused: a fit of 600 labels")]
)
def test_a_limit_of_the_process_is_kept(room, answer):
    """All folds and labels at a time would hold 600 x 3 x 12,000 numbers six times: 1 GB."""
    path = [p for p in sys.path if p]
    code = textwrap.dedent(BOUNDED).format(path=path, room=room)
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240
    )
    assert found.stdout.startswith(answer), found.stderr[-2000:]
