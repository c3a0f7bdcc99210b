"""Bad input is refused with a message that names the argument, what was wanted and what came."""

import numpy as np
import pytest
from scipy import sparse

from deltarank import instance_weights, metrics, rank_loss, weight_diagnostics
from deltarank.datasets import SyntheticModel
from deltarank.metrics import RankingScorer, StreamingMetric
from deltarank.theory import (
    EXAMPLES,
    BipartiteProblem,
    LabelDistribution,
    bipartite_regret_bound,
    low_noise_regret_bound,
    regret_bound,
    strong_properness,
    surrogate_minimizer,
    surrogate_risk,
)

Y = np.array([[1, 0, 1], [0, 1, 0]])
S = np.array([[0.3, 0.2, 0.1], [0.5, 0.4, 0.6]])
NAN, INF = np.nan, np.inf


def changed(array, value):
    array = array.astype(float)
    array[1, 2] = value
    return array


def at_k(k):
    return lambda: metrics.precision_at_k(Y, S, k)


CASES = [
    # labels
    (lambda: rank_loss(Y[0], S), "Y must be .* got shape"),
    (lambda: rank_loss(Y[None], S), "Y must be .* got shape"),
    (lambda: rank_loss(2 * Y, S), "Y must hold only 0 and 1; got 2 in row 0, column 0"),
    (lambda: rank_loss(-Y, S), "Y must hold only 0 and 1; got -1"),
    (lambda: rank_loss(changed(Y, 0.5), S), "got 0.5 in row 1, column 2"),
    (lambda: metrics.label_propensities(changed(Y, NAN)), "got nan in row 1, column 2: label_prop"),
    (lambda: rank_loss(sparse.csr_array(2 * Y), S), "got 2 in row 0, column 0"),
    (lambda: rank_loss(sparse.csr_array(changed(Y, INF)), S), "got inf in row 1, column 2"),
    (lambda: rank_loss(np.array([["a", "b", "c"]] * 2), S), "Y must hold only 0 and 1; got values"),
    (lambda: rank_loss(np.empty((0, 3)), np.empty((0, 3))), "Y must have at least one row"),
    (lambda: rank_loss([], S), "Y must be .* got shape"),
    (lambda: rank_loss(None, S), "Y must be .* got shape"),
    (lambda: rank_loss(np.empty((2, 0)), np.empty((2, 0))), r"scores must have shape \(n, m\)"),
    (lambda: instance_weights(np.empty((2, 0))), "Y must have at least one label"),
    (lambda: instance_weights(sparse.csr_array((2, 0))), "Y must have at least one label"),
    (lambda: rank_loss(Y[:, :2], S), "Y must have 3 labels; got 2"),
    (lambda: rank_loss([{0, 7}, {1}], S), "unknown label 7 in row 0; labels must be 0 to 2"),
    (lambda: rank_loss([{"a"}, {"b"}], S), "unknown label 'a' in row 0"),
    (lambda: rank_loss([{"a"}, {"b"}], S, classes=["a", "x", "y"]), "unknown label 'b' in row 1"),
    (lambda: rank_loss(Y, S, classes=["a", "b"]), "classes must have 3 labels; got 2"),
    (lambda: rank_loss([{0}, 5], S), "row 1 is 5"),
    (lambda: rank_loss([{"a"}, "ab"], S, classes="abc"), r"row 1 is 'ab' \(write \['ab'\]"),
    (lambda: rank_loss([{True}, {0}], S), "strings or numbers; got True in row 0"),
    (lambda: instance_weights([{0}, {1}]), "number of labels is unknown; pass .* classes="),
    # scores
    (lambda: rank_loss(Y, S[:1]), "scores must have a row for each of the 2 rows of Y; got shape"),
    (lambda: rank_loss(Y, S[0]), r"scores must have shape \(n, m\).* got shape \(3,\)"),
    (lambda: rank_loss(Y, changed(S, NAN)), "scores must be finite; row 1 holds NaN"),
    (lambda: rank_loss(Y, changed(S, INF)), "scores must be finite; row 1"),
    (lambda: rank_loss(Y, changed(S, -INF)), "scores must be finite; row 1"),
    (lambda: rank_loss(Y, changed(S, INF).astype(np.float32)), "scores must be finite; row 1"),
    (lambda: rank_loss(0 * Y, changed(S, NAN)), "scores must be finite; row 1"),
    (lambda: rank_loss(Y, S.astype(str)), "scores must be numbers"),
    (lambda: rank_loss(Y, S * 1j), "scores must be numbers; got values of type complex128"),
    # options
    (lambda: rank_loss(Y, S, weight="pairs"), "unknown weight 'pairs'; choose one of min, ndcg"),
    (lambda: rank_loss(Y, S, weight=None), "unknown weight None"),
    (lambda: rank_loss(Y, S, weight=("ndcg", 0)), "must be a positive integer; got 0"),
    (lambda: rank_loss(Y, S, weight=("recall", 3)), r"the only pair is \('ndcg', k\)"),
    (lambda: rank_loss(Y, S, ties="third"), "unknown ties 'third'; choose one of full, half, none"),
    (lambda: rank_loss(Y, S, trivial="drop"), "unknown trivial 'drop'; choose one of skip, zero"),
    (lambda: rank_loss(Y, S, sample_weight=[1]), r"sample_weight must have shape \(2,\)"),
    (lambda: rank_loss(Y, S, sample_weight=[1, -1]), "not negative; got -1 at row 1"),
    (lambda: rank_loss(Y, S, sample_weight=[1, NAN]), "must be finite.* got nan at row 1"),
    (lambda: rank_loss(Y, S, sample_weight=[0, 0]), "sample_weight must not be 0 for every row"),
    (lambda: rank_loss(Y, S, sample_weight=["a", "b"]), "sample_weight must be numbers"),
    (at_k(0), "k must be an integer from 1 to the number of labels, 3; got 0"),
    (at_k(4), "k must be .* got 4"),
    (at_k(1.5), "k must be .* got 1.5"),
    (at_k(True), "k must be .* got True"),
    (lambda: metrics.ndcg_at_k(Y, S, 9), "k must be .* got 9"),
    (
        lambda: metrics.propensity_scored_precision_at_k(Y, S, 1, [0.5, 0.5]),
        r"propensities must have shape \(3,\), one value per label",
    ),
    (
        lambda: metrics.propensity_scored_precision_at_k(Y, S, 1, [0.5, 0, 0.5]),
        "propensities must be above 0 and at most 1",
    ),
    (
        lambda: metrics.propensity_scored_precision_at_k(Y, S, 1, [0.5, 7, 0.5]),
        "propensities must be above 0 and at most 1",
    ),
    (lambda: metrics.pairwise_loss(Y, S, "log"), "unknown loss 'log'; choose one of all_pairs"),
    (lambda: metrics.pairwise_loss(Y, S[:1]), "scores must have a row for each of the 2 rows"),
    (lambda: metrics.pairwise_loss(Y, changed(S, NAN)), "scores must be finite; row 1"),
    (lambda: metrics.get_scorer("accuracy"), "unknown scorer 'accuracy'; choose one of"),
    (lambda: StreamingMetric("auc"), "unknown metric 'auc'"),
    (lambda: StreamingMetric().result(), r"no rows yet: call update\(Y, scores\) first"),
    (lambda: StreamingMetric().merge(StreamingMetric("coverage")), "only like metrics merge"),
    (lambda: RankingScorer("rank_loss")(object(), S, Y), "neither decision_function nor"),
    # weights
    (lambda: instance_weights(Y, lambda Y: [1, -1]), "not negative; got -1 at row 1"),
    (lambda: instance_weights(Y, lambda Y: [1, INF]), "must be finite.* got inf at row 1"),
    (lambda: instance_weights(Y, lambda Y: [1, 2, 3]), r"must have shape \(2,\)"),
    (lambda: instance_weights(Y, lambda Y: [0, 0]), "weight gives 0 to every row"),
    (lambda: weight_diagnostics(Y, "rnk"), "unknown weight 'rnk'"),
    # theory
    (lambda: LabelDistribution({"10": 0.5, "01": 0.4}), "must sum to 1; they sum to 0.9"),
    (lambda: LabelDistribution([0.5, 0.5, 0.5, -0.5]), "not negative; got -0.5 at label set 3"),
    (lambda: LabelDistribution([NAN, 0.5, 0.5, 0]), "must be finite.* got nan"),
    (lambda: LabelDistribution([0.5, 0.5, 0]), r"must have shape \(2\*\*m,\).* got shape \(3,\)"),
    (lambda: LabelDistribution([0.5, 0.5]), "one label has no pair to rank"),
    (lambda: LabelDistribution({}), "must name label sets of one length"),
    (lambda: LabelDistribution({"10": 0.5, "011": 0.5}), "one length.* got lengths \\[2, 3\\]"),
    (lambda: LabelDistribution({"12": 1.0}), "written in 0 and 1, as '100'; got '12'"),
    (lambda: LabelDistribution({3: 1.0}), "written as '100' or .* got 3"),
    (lambda: LabelDistribution.independent([0.5, 1.5]), "must be probabilities; got 1.5"),
    (lambda: EXAMPLES["A"].risk([1, 2]), r"scores must have shape \(3,\), one value per label"),
    (lambda: EXAMPLES["A"].risk([1, 2, NAN]), "scores must be numbers; got NaN"),
    (lambda: EXAMPLES["A"].regret([1, 2, 3], form="proof"), "unknown form 'proof'"),
    (lambda: surrogate_risk(EXAMPLES["A"], [1, 2, 3], "pairwise"), "unknown surrogate 'pairwise'"),
    (lambda: LabelDistribution({"11": 1.0}).relevances(), "every possible label set weighs 0"),
    (
        lambda: surrogate_minimizer(LabelDistribution({"10": 1.0}), "pairwise logistic"),
        "no finite minimiser",
    ),
    (lambda: regret_bound(-1, 3, 1), "surrogate_regret must not be negative; got -1"),
    (lambda: regret_bound(NAN, 3, 1), "surrogate_regret must not be negative; got nan"),
    (lambda: regret_bound(1, 1, 1), "n_labels must be an integer of at least 2"),
    (lambda: regret_bound(1, 3, -1), "w_max must be finite and not negative"),
    (lambda: regret_bound(1, 3, 1, loss="zero-one"), "unknown loss 'zero-one'"),
    (lambda: regret_bound(1, 3, 1, loss="hinge"), "hinge loss is not strictly proper"),
    (lambda: regret_bound(1, 3, 1, loss="squared", form="paper"), "unknown loss 'squared'"),
    (lambda: regret_bound(1, 3, 1, form="best"), "unknown form 'best'"),
    (lambda: regret_bound(1, 3, 1, form="paper", largest_chance=0.1), "belongs to form='sharp'"),
    (lambda: regret_bound(1, 3), "w_max must be given for form='sharp' and 'paper'"),
    (lambda: regret_bound(1, 3, 1, form="mean"), "mean_weight must be given for form='mean'"),
    (
        lambda: regret_bound(1, 3, form="mean", mean_weight=-1),
        "mean_weight must be finite and not negative; got -1",
    ),
    (lambda: low_noise_regret_bound(1, 3, 1, exponent=-1, gap=1), "exponent must be at least 0"),
    (lambda: low_noise_regret_bound(1, 3, 1, exponent=1, gap=0), "gap must be above 0 and finite"),
    (lambda: bipartite_regret_bound(1, form="best"), "unknown form 'best'"),
    (lambda: strong_properness("logistic", 0.7), "largest_chance must be above 0 and at most 1/2"),
    (lambda: BipartiteProblem([0.5, 0.4], [0, 1]), "prior must sum to 1; it sums to 0.9"),
    (lambda: BipartiteProblem([0.5, 0.5], [0, 2]), "relevances must be at most 1; got 2"),
    (lambda: BipartiteProblem([1.0], [0.5]).rank_risk([1, 2]), "scores must be 1 finite numbers"),
    (
        lambda: BipartiteProblem([1.0], [0.5]).surrogate_regret([1], "linear"),
        "linear loss has no least expectation",
    ),
    # synthetic data
    (lambda: SyntheticModel.random(1), "n_labels must be an integer of at least 2; got 1"),
    (lambda: SyntheticModel.random(2.5), "n_labels must be an integer"),
    (lambda: SyntheticModel.random(3, noise=0), "noise must be finite and positive; got 0"),
    (lambda: SyntheticModel(np.eye(3)), r"directions must have shape \(m, 2\)"),
    (lambda: SyntheticModel(np.ones((3, 2)), np.eye(2)), r"mixing must have shape \(3, 3\)"),
    (lambda: SyntheticModel([[1, NAN], [0, 1]]), "directions and mixing must be finite"),
    (lambda: SyntheticModel.random(3).sample(0), "n must be a positive integer; got 0"),
    (lambda: SyntheticModel.random(3).bayes_scores(S), r"X must have shape \(n, 2\)"),
    (lambda: SyntheticModel.random(3).bayes_scores([[NAN, 0]]), "X must be finite"),
    (lambda: SyntheticModel.random(3).bayes_risk(weight=len), "weight must be a named one"),
    (lambda: SyntheticModel.random(3, True).bayes_scores([[0, 0]], n_draws=100), "power of two"),
]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_bad_input_is_refused_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_unknown_option_is_a_type_error_that_lists_the_options():
    with pytest.raises(
        TypeError, match="rank_loss has no option 'k'; its options are weight, ties"
    ):
        StreamingMetric("rank_loss", k=3)
