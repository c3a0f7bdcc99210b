"""Do the weights matter? Held to distributions whose best orders are known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from deltarank import (
    AdaBoostMR,
    KernelLogisticRanker,
    LogisticRanker,
    WeightedBinaryRelevance,
    instance_weights,
    rank_loss,
    weight_diagnostics,
)
from deltarank.core.splits import LabelStratifiedKFold
from deltarank.datasets import SyntheticModel
from deltarank.theory import LabelDistribution

# By rank loss the first label belongs first, with equal weights the next three do.
FLIPPED = LabelDistribution({"100000": 0.45, "011100": 0.55})


def draw(distribution, n, seed):
    """Draw label sets that do not depend on the features drawn with them."""
    generator = np.random.default_rng(seed)
    rows = generator.choice(len(distribution.labelings), n, p=distribution.probabilities)
    return generator.normal(size=(n, 2)), distribution.labelings[rows]


def independent(seed, n=800):
    return SyntheticModel.random(10, random_state=seed).sample(n, random_state=[seed, 1])


def three_of_ten(seed, n=800):
    """Draw labels that depend on each other strongly: three of ten in each row."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 2))
    scores = X @ generator.normal(size=(2, 10)) + generator.gumbel(size=(n, 10))
    Y = np.zeros((n, 10), int)
    np.put_along_axis(Y, np.argsort(-scores, axis=1)[:, :3], 1, axis=1)
    return X, Y


def test_where_the_best_order_flips_the_gain_is_the_difference_of_risks():
    X, Y = draw(FLIPPED, 4000, seed=0)
    effect = weight_diagnostics(Y, X=X).effect
    best, other = (FLIPPED.marginal_weights(weight) for weight in ("rank", "uniform"))
    gain = FLIPPED.risk(other) - FLIPPED.risk(best)
    assert gain == pytest.approx(0.45 * 3 / 5 - 0.55 * 3 / 9)
    assert effect.gain.low < gain < effect.gain.high
    assert effect.gain.low > 0
    assert_allclose(effect.loss, FLIPPED.risk(best), atol=0.03)
    # Three pairs of each row change, of five or nine.
    assert_allclose(effect.changed, 3 / (0.45 * 5 + 0.55 * 9), atol=0.02)
    assert effect.p_value < 1e-6
    assert effect.correlation > 0.9


def test_the_other_weights_have_effects_of_their_own():
    X, Y = draw(FLIPPED, 1000, seed=1)
    assert weight_diagnostics(Y, "recall", X=X).effect.p_value < 1e-6
    plain = weight_diagnostics(Y, "uniform", X=X).effect
    assert (plain.changed, *plain.gain) == (0, 0, 0, 0)
    by_function = weight_diagnostics(Y, lambda Y: 1 / Y.sum(axis=1), X=X).effect
    by_name = weight_diagnostics(Y, "recall", X=X).effect
    assert_allclose(by_function.gain, by_name.gain)


def test_equally_many_labels_in_each_row_leave_nothing_to_change():
    X, Y = three_of_ten(0)
    effect = weight_diagnostics(Y, X=X).effect
    assert (effect.changed, *effect.gain, effect.correlation) == (0, 0, 0, 0, 0)
    assert "too few changed pairs to test" in str(weight_diagnostics(Y, X=X))


@pytest.mark.slow
def test_the_test_holds_its_level_where_labels_are_independent():
    values = [weight_diagnostics(Y, X=X).effect.p_value for X, Y in map(independent, range(200))]
    values = np.array(values)[~np.isnan(values)]
    assert len(values) > 100
    # Rejections at 10 % and 1 %: binomial, and at most three standard errors too many.
    for level in (0.1, 0.01):
        assert (values < level).mean() < level + 3 * np.sqrt(level * (1 - level) / len(values))


def test_it_does_not_cry_wolf():
    values = [weight_diagnostics(Y, X=X).effect.p_value for X, Y in map(independent, range(10))]
    assert np.nanmin(values) > 1e-3


def test_it_finds_the_dependence_of_the_papers_data_before_the_gain_shows():
    X, Y = SyntheticModel.random(10, dependent=True, random_state=0).sample(4000, random_state=1)
    effect = weight_diagnostics(Y, X=X).effect
    assert effect.p_value < 0.01
    assert effect.gain.low < 0


def test_scores_that_cannot_fit_may_mislead_and_better_ones_do_not():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(1500, 2))
    chances = expit(
        2 * np.sin(2 * X @ generator.normal(size=(2, 10)))
        + 0.5 * X**2 @ generator.normal(size=(2, 10))
        - 1
    )
    Y = (generator.random(chances.shape) < chances).astype(int)
    better = KernelLogisticRanker(gamma=1.0, C=1.0, n_landmarks=50, random_state=0)
    linear, kernel = (
        weight_diagnostics(Y, X=X, ranker=ranker).effect for ranker in (LogisticRanker(), better)
    )
    assert linear.p_value < 0.01 < kernel.p_value
    assert kernel.loss < linear.loss


def slowly(X, Y, weight, seed):
    """Compute what changes pair by pair, with loops."""
    w = instance_weights(Y, weight, normalize=False)
    changed = pairs = 0
    losses = {}
    for train, test in LabelStratifiedKFold(5, random_state=seed).split(X, Y):
        both = [
            LogisticRanker(weight=each).fit(X[train], Y[train]).decision_function(X[test])
            for each in (weight, "uniform")
        ]
        for name, scores in zip(("with", "without"), both, strict=True):
            losses.setdefault(name, []).append(
                rank_loss(Y[test], scores, weight=weight, per_instance=True)
            )
        for place, row in enumerate(test):
            for i in np.flatnonzero(Y[row] == 1):
                for j in np.flatnonzero(Y[row] == 0):
                    pairs += 1
                    one, other = (scores[place, i] - scores[place, j] for scores in both)
                    changed += one * other < 0
    assert w.shape == (len(Y),)
    means = {name: np.concatenate(values).mean() for name, values in losses.items()}
    return changed / pairs, means["with"], means["without"]


@pytest.mark.parametrize("weight", ["rank", "recall"])
def test_losses_and_changed_pairs_are_those_of_loops(weight):
    X, Y = SyntheticModel.random(6, dependent=True, random_state=5).sample(200, random_state=6)
    effect = weight_diagnostics(Y, weight, X=X, random_state=3).effect
    expected = slowly(X, Y, weight, 3)
    assert_allclose([effect.changed, effect.loss, effect.uniform_loss], expected, rtol=1e-6)
    assert_allclose(effect.gain.mean, expected[2] - expected[1], atol=1e-9)


def test_labels_may_be_sets_and_folds_a_splitter():
    X, Y = independent(0, 200)
    sets = [np.flatnonzero(row).tolist() for row in Y]
    folds = LabelStratifiedKFold(3, random_state=1)
    one = weight_diagnostics(sets, X=X, n_labels=10, cv=folds)
    assert one == weight_diagnostics(Y, X=X, cv=3, random_state=1)
    assert one.effect is not None
    assert "label pairs that the weights put in another order" in one._repr_html_()


def test_what_cannot_be_compared_is_refused():
    X, Y = independent(0, 50)
    for ranker, message in (
        (object(), "ranker must have a parameter `weight`.*got object"),
        (AdaBoostMR(), "ranker must score every label by its log odds.*AdaBoostMR"),
    ):
        with pytest.raises(ValueError, match=message):
            weight_diagnostics(Y, X=X, ranker=ranker)
    with pytest.raises(ValueError, match="X has 49 and Y has 50"):
        weight_diagnostics(Y, X=X[:49])
    unknown = Y.astype(float)
    unknown[3, 2] = np.nan
    with pytest.raises(ValueError, match="Y must be known in every cell"):
        weight_diagnostics(unknown, X=X)


def test_other_rankers_with_weights_can_be_asked():
    from sklearn.linear_model import LogisticRegression

    X, Y = draw(FLIPPED, 300, seed=2)
    effect = weight_diagnostics(
        Y, X=X, ranker=WeightedBinaryRelevance(LogisticRegression()), cv=3
    ).effect
    assert effect.p_value < 1e-3
