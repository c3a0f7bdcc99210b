"""F sets from chances of labels with their number: against enumeration of sets and label sets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deltarank import CalibratedRanker, LogisticRanker, MetricRanker, load, save
from deltarank.core.labels import label_sets
from deltarank.decisions.f_measure import best_f_sets
from deltarank.decisions.joint import best_joint_f_sets, joint_targets, sums_by_label
from deltarank.storage import ModelFileError
from oracles import all_label_sets

M = 5
SETS = np.array(all_label_sets(M))
SEEDS = pytest.mark.parametrize("seed", range(8))
PLAIN = LogisticRanker(weight="uniform", C=1e4)


def f_of(y, chosen, beta):
    size = beta**2 * y.sum() + chosen.sum()
    return (1 + beta**2) * (y * chosen).sum() / size if size else 1.0


def expected_f(table, chosen, beta):
    """Add up F over all label sets."""
    return sum(chance * f_of(y, chosen, beta) for chance, y in zip(table, SETS, strict=True))


def drawn(table, n=4000, seed=1):
    """Draw label sets by their chances."""
    return SETS[np.random.default_rng(seed).choice(len(SETS), n, p=table)]


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("most", [2, M])
@SEEDS
def test_no_set_has_a_larger_expected_f_however_labels_depend(beta, most, seed):
    table = np.random.default_rng(seed).dirichlet(np.full(len(SETS), 0.1))
    joint, targets = joint_targets(label_sets(SETS))
    chances = table[None] @ targets.toarray()
    found = best_joint_f_sets(joint, chances, M, beta, most)[0]
    best = max(expected_f(table, y, beta) for y in SETS if y.sum() <= most)
    assert_allclose(expected_f(table, found, beta), best, rtol=1e-12)
    assert found.sum() <= most
    assert_allclose(sums_by_label(joint, chances, M), table[None] @ SETS)


@SEEDS
def test_wrong_chances_cost_at_most_twice_their_weighted_errors(seed):
    generator = np.random.default_rng(seed)
    table = generator.dirichlet(np.full(len(SETS), 0.1))
    joint, targets = joint_targets(label_sets(SETS))
    right = table[None] @ targets.toarray()
    wrong = np.clip(right + generator.normal(size=right.shape) / 20, 0, 1)
    found = best_joint_f_sets(joint, wrong, M, 1.0, M)[0]
    lost = max(expected_f(table, y, 1.0) for y in SETS) - expected_f(table, found, 1.0)
    errors = np.abs(wrong - right)[0]
    worst = max(
        sum(2 / (joint.sizes + j) * errors[:-1] * np.isin(joint.labels, y.nonzero()[0]))
        for j in range(1, M + 1)
        for y in SETS
        if y.sum() == j
    )
    assert -1e-12 <= lost <= 2 * errors[-1] + 2 * worst


@SEEDS
def test_of_independent_labels_both_rules_choose_the_same(seed):
    chances = np.random.default_rng(seed).beta(0.5, 1.0, size=M)
    table = np.prod(np.where(SETS == 1, chances, 1 - chances), axis=1)
    joint, targets = joint_targets(label_sets(SETS))
    found = best_joint_f_sets(joint, table[None] @ targets.toarray(), M, 1.0, M)
    assert_array_equal(found, best_f_sets(chances[None], 1.0, M))


def test_it_is_learnt_where_independence_goes_wrong():
    """All of three labels or none: the empty set is best where that is likelier than not."""
    generator = np.random.default_rng(0)
    X = generator.choice([-1.0, 1.0], size=(4000, 1))
    together = generator.random(4000) < np.where(X[:, 0] < 0, 0.4, 0.8)
    Y = np.repeat(together[:, None], 3, axis=1).astype(int)
    rows = [[-1.0], [1.0]]
    # Rows without labels count for plain chances only where they are calibrated.
    for ranker in (PLAIN, CalibratedRanker(PLAIN, random_state=0)):
        joint = MetricRanker(ranker, metric="f-beta", k=None, joint=True).fit(X, Y)
        assert_array_equal(joint.predict(rows), [[0, 0, 0], [1, 1, 1]])
        assert_allclose(joint.marginal_weights(rows)[:, 0], [0.4, 0.8], atol=0.03)
        assert_array_equal(joint.predict(rows), joint.predict([*rows, *rows])[:2])
    apart = MetricRanker(CalibratedRanker(PLAIN, random_state=0), metric="f-beta", k=None)
    assert_array_equal(apart.fit(X, Y).predict(rows), [[1, 1, 1], [1, 1, 1]])


@SEEDS
def test_a_fit_to_draws_comes_close_to_the_best_set_of_the_distribution(seed):
    table = np.random.default_rng(seed).dirichlet(np.full(len(SETS), 0.05))
    Y = drawn(table)
    ranker = MetricRanker(PLAIN, metric="f-beta", k=None, joint=True).fit(np.zeros((len(Y), 1)), Y)
    found = ranker.predict([[0.0]])[0]
    best = max(expected_f(table, y, 1.0) for y in SETS)
    assert expected_f(table, found, 1.0) > best - 0.02


def test_names_files_and_limits(tmp_path):
    names = np.array(list("abcde"))
    rows = [set(names[y == 1].tolist()) for y in drawn(np.full(32, 1 / 32), n=300)]
    X = np.arange(300.0)[:, None] / 300
    ranker = MetricRanker(LogisticRanker(weight="uniform"), metric="f-beta", k=2, joint=True)
    chosen = ranker.fit(X, rows).predict(X)
    assert max(map(len, chosen)) == 2
    save(ranker, tmp_path / "joint.delta")
    assert load(tmp_path / "joint.delta").predict(X) == chosen
    assert ranker.rank(X[:1], top=5).shape == (1, 5)
    with pytest.raises(ValueError, match="metric='macro-f1' needs chances of single labels only"):
        MetricRanker(PLAIN, metric="macro-f1", k=2, joint=True).fit(X, rows)
    with pytest.raises(ValueError, match=r"plain chances .* has weight='rank'"):
        MetricRanker(LogisticRanker(), metric="f-beta", joint=True).fit(X, rows)
    for wrong in (ranker.pair_labels_ + 1, ranker.pair_labels_[1:]):
        ranker.pair_labels_, ranker.pair_sizes_ = wrong, ranker.pair_sizes_[: len(wrong)]
        save(ranker, tmp_path / "wrong.delta")
        with pytest.raises(ModelFileError, match="pair_labels_ must"):
            load(tmp_path / "wrong.delta")
