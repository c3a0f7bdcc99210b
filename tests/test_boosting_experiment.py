"""The factorial of boosters: arms against plain definitions, contrasts, and a run in small."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from deltarank import AdaBoostMH, AdaBoostMR, AdaBoostRanker, instance_weights
from deltarank.datasets import SyntheticModel
from deltarank.paper.experiments import boosting, boosting_tables
from deltarank.paper.experiments.boosting_arms import (
    ARMS,
    FACTORIAL,
    MOST_20,
    PAPERS,
    OwnPairs,
    SharedLabels,
    SharedPairs,
)
from deltarank.paper.experiments.presets import FULL, QUICK
from deltarank.paper.experiments.runner import run_jobs
from slow_boosting import best_stump, branches_of

TINY = replace(QUICK, n_models=3, n_training_sets=1, sizes=(60,), n_labels=4, rounds=(10, 50))


def small_data(n=40, seed=0):
    X, Y = SyntheticModel.random(4, dependent=True, random_state=seed).sample(n, random_state=seed)
    ranked = (Y.sum(axis=1) > 0) & (Y.sum(axis=1) < 4)
    return X[ranked], Y[ranked]


def impurity(plus, minus, criterion):
    if criterion == "error":
        return np.minimum(plus, minus).sum()
    if criterion == "z":
        return 2 * np.sqrt(plus * minus).sum()
    total = np.where(plus + minus > 0, plus + minus, 1.0)
    return -sum(
        (part * np.log(np.where(part > 0, part / total, 1.0))).sum() for part in (plus, minus)
    )


def slow_own_pairs(X, Y, w, rounds, criterion):
    """AdaBoost.MR over triples (row, irrelevant, relevant); its hypothesis: a stump per label."""
    n, m = Y.shape
    triples = [
        (i, q, p)
        for i in range(n)
        for q, p in product(np.flatnonzero(Y[i] == 0), np.flatnonzero(Y[i] == 1))
    ]
    rows, low, high = np.array(triples).T
    D = w[rows] / w[rows].sum()
    scores = np.zeros((n, m))
    for _ in range(rounds):
        d = np.zeros((n, m))
        np.add.at(d, (rows, low), D / 2)
        np.add.at(d, (rows, high), D / 2)
        h = np.zeros((n, m))
        for label in range(m):
            mass, relevant = d[:, label], Y[:, label] == 1

            def sums(branches, mass=mass, relevant=relevant):
                return [
                    np.array([mass[(branches == b) & side].sum() for b in (0, 1)])
                    for side in (relevant, ~relevant)
                ]

            feature, threshold = best_stump(
                X, lambda branches, sums=sums: impurity(*sums(branches), criterion)
            )
            branches = branches_of(X[:, feature], threshold)
            plus, minus = sums(branches)
            if criterion == "z":
                e = 0.5 / (n * m)
                votes = 0.5 * np.log((plus + e) / (minus + e))
            else:
                votes = np.where(plus >= minus, 1.0, -1.0)
            h[:, label] = votes[branches]
        alpha = 1.0
        if criterion != "z":
            edge = (d * (2 * Y - 1) * h).sum()
            alpha = 0.5 * np.log((1 + edge) / (1 - edge))
        D = D * np.exp(-alpha / 2 * (h[rows, high] - h[rows, low]))
        D /= D.sum()
        scores += alpha * h
    return scores


@pytest.mark.parametrize("criterion", ["entropy", "error", "z"])
def test_pairs_with_stumps_of_their_own_are_those_of_the_definition(criterion):
    X, Y = small_data()
    ranker = OwnPairs(n_stumps=8, criterion=criterion).fit(X, Y)
    wanted = slow_own_pairs(X, Y, instance_weights(Y), 8, criterion)
    assert_allclose(ranker.decision_function(X), wanted, atol=1e-5)
    staged = [scores.copy() for scores in ranker.staged_decision_function(X, at=[3, 8])]
    assert_allclose(staged[0], slow_own_pairs(X, Y, instance_weights(Y), 3, criterion), atol=1e-5)
    assert_allclose(staged[1], wanted, atol=1e-5)


def test_the_loss_of_pairs_falls_by_their_normalizers():
    X, Y = small_data(80)
    ranker = OwnPairs(n_stumps=20, criterion="z", shrinkage=0.1).fit(X, Y)
    scores, w = ranker.decision_function(X), instance_weights(Y)
    losses = [
        w[i] * np.exp(-(scores[i, p] - scores[i, q]) / 2)
        for i in range(len(Y))
        for p in np.flatnonzero(Y[i])
        for q in np.flatnonzero(Y[i] == 0)
    ]
    start = (w * Y.sum(axis=1) * (4 - Y.sum(axis=1))).sum()
    assert_allclose(np.prod(ranker.normalizers_), sum(losses) / start, rtol=1e-4)
    assert np.prod(ranker.normalizers_) < 1


@pytest.mark.parametrize("criterion", ["error", "z"])
def test_shared_stumps_are_those_of_the_library(criterion):
    X, Y = small_data(100)
    votes = {"error": "discrete", "z": "real"}[criterion]
    for mine, theirs in ((SharedPairs, AdaBoostMR), (SharedLabels, AdaBoostMH)):
        one = mine(n_stumps=10, criterion=criterion).fit(X, Y)
        other = theirs(n_stumps=10, votes=votes, bins=None).fit(X, Y)
        assert (one.decision_function(X) == other.decision_function(X)).all()


def test_another_criterion_takes_other_stumps():
    X, Y = small_data(100)
    entropy, error = (SharedPairs(n_stumps=10, criterion=c).fit(X, Y) for c in ("entropy", "error"))
    assert (entropy.thresholds_ != error.thresholds_).any()


def test_the_arms_are_a_full_factorial_and_the_papers_own():
    assert len(FACTORIAL) == 2 * 2 * 3 * 2
    assert all(arm.bins is None and arm.most is None for arm in FACTORIAL.values())
    assert ARMS[MOST_20].grid(20_000) == [10, 20]
    search = PAPERS["WBR-AB"].search(20_000, 3, 0)
    assert isinstance(search.ranker, AdaBoostRanker)
    assert search.ranker.get_params() == AdaBoostRanker(bins=None).get_params()
    assert list(search.rounds) == [10, 20, 50, 100, 200]
    for arm in ARMS.values():
        assert arm.grid(20_000)[-1] == (arm.most or {1.0: 2000, 0.1: 5000}[arm.shrinkage])


def test_every_factor_is_varied_with_the_others_held():
    pairs = boosting_tables.contrasts()
    counts = {factor: 0 for factor, *_ in pairs}
    for factor, *_ in pairs:
        counts[factor] += 1
    assert counts["loss"] == counts["stumps"] == counts["shrinkage"] == 12
    assert counts["criterion"] == 8 * 3
    assert counts["bins"] == 3
    for _, one, other in pairs:
        assert {one, other} <= set(ARMS)


def test_the_full_run_has_ten_models_and_is_of_some_size():
    jobs = boosting.jobs(FULL)
    assert {job["model"] for job in jobs} == set(range(10))
    assert {job["n_rows"] for job in jobs} == {1000, 4000, 16_000}
    assert len(jobs) == 2 * 10 * 3 * len(ARMS)


@pytest.fixture(scope="module")
def tiny_rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("boosting") / "rows.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boosting, "N_DRAWS", 256)
        patch.setenv("DELTARANK_NUM_THREADS", "1")
        return run_jobs(boosting.answer, boosting.jobs(TINY), path)


def test_tables_and_figure_come_from_the_rows(tiny_rows):
    regrets, differences = boosting_tables.tables(tiny_rows)
    assert len(regrets.rows) == 2 * len(ARMS)
    line = next(row for row in regrets.rows if (row["case"], row["arm"]) == ("dependent", MOST_20))
    mine = [r["regret"] for r in tiny_rows if (r["case"], r["arm"]) == ("dependent", MOST_20)]
    assert_allclose(line["regret"], np.mean(mine))
    assert min(row["regret"] for row in tiny_rows) > 0
    loss = next(row for row in differences.rows if row["factor"] == "paper, at most 20")
    pair = ("AB.MR, at most 20", "WBR-AB, at most 200")
    of = {(r["model"], r["arm"]): r["regret"] for r in tiny_rows if r["case"] == loss["case"]}
    assert_allclose(
        loss["difference"], np.mean([of[m, pair[0]] - of[m, pair[1]] for m in range(3)])
    )
    figure = boosting.figures(tiny_rows)["boosting"]
    assert len(figure.axes) == 2
    assert len(figure.axes[0].get_yticks()) == len(ARMS)


def test_findings_answer_the_question_with_errors(tiny_rows):
    found = boosting_tables.findings(tiny_rows)
    assert len(found) == 2 * 8
    assert found[1].startswith("independent labels, 60 rows: AB.MR held to 20 stumps, WBR-AB less")
    assert all("(standard error" in text or "(no error" in text for text in found if "p =" in text)


def test_a_row_can_be_redone_from_itself(tiny_rows, monkeypatch):
    monkeypatch.setattr(boosting, "N_DRAWS", 256)
    row = tiny_rows[5]
    again = boosting.answer(**{key: row[key] for key in boosting.jobs(TINY)[0]})
    assert {key: row[key] for key in again} == again
