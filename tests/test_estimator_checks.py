"""scikit-learn's own checks, for every ranker, with no failures but those named."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from deltarank import (
    AdaBoostMH,
    AdaBoostMR,
    AdaBoostRanker,
    BoostedTreeRanker,
    CalibratedRanker,
    ConformalRanker,
    KernelLogisticRanker,
    LabelTreeRanker,
    LogisticRanker,
    LogisticRankerCV,
    LogLinearRanker,
    MetricRanker,
    PairwiseRanker,
    StagedSearchCV,
    WeightedBinaryRelevance,
)

RANKERS = [
    LogisticRanker(),
    LogisticRanker(weight="uniform"),  # which has probabilities
    LogisticRankerCV(Cs=[0.1, 10.0], cv=2),
    KernelLogisticRanker(gamma=0.1, C=1.0),
    KernelLogisticRanker(cv=2),
    LabelTreeRanker(C=0.1, random_state=0),
    AdaBoostRanker(n_stumps=20),
    AdaBoostMR(n_stumps=20),
    AdaBoostMH(n_stumps=20),
    BoostedTreeRanker(n_trees=20),
    StagedSearchCV(AdaBoostRanker(), rounds=[5, 20], cv=2),
    StagedSearchCV(LogLinearRanker(), rounds=[5, 30], cv=2),
    LogLinearRanker(),
    LogLinearRanker(algorithm="lbfgs", C=1.0),
    PairwiseRanker(),
    PairwiseRanker(loss="all_pairs_squared"),
    WeightedBinaryRelevance(LogisticRegression()),
    CalibratedRanker(LogisticRanker()),
    CalibratedRanker(AdaBoostRanker(n_stumps=20), method="platt", set_metric="example_f1"),
    MetricRanker(LogisticRanker(weight="uniform"), k=1, cv=2),
    MetricRanker(AdaBoostRanker(n_stumps=20, weight="uniform"), metric="f-beta"),
    ConformalRanker(LogisticRanker(), level=0.5, calibration_size=0.5),
]


def expected_failures(ranker):
    """What a ranker cannot have by its nature, as scikit-learn's own estimators of the kind."""
    if not isinstance(ranker, CalibratedRanker | MetricRanker | ConformalRanker):
        return {}
    failures = {"check_classifier_multioutput": "sets are not the labels with a score above 0"}
    if isinstance(ranker, CalibratedRanker) and ranker.method == "isotonic":
        name = "check_classifiers_multilabel_output_format_predict_proba"
        failures[name] = "it wants probabilities above 0, and isotonic steps begin at 0"
    return failures


@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix for nan or inf")
@parametrize_with_checks(RANKERS, expected_failed_checks=expected_failures)
def test_scikit_learn_accepts_the_ranker(estimator, check):
    check(estimator)
