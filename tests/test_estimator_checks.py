"""scikit-learn's own checks, for every ranker, with no expected failures."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from deltarank import (
    AdaBoostMH,
    AdaBoostMR,
    AdaBoostRanker,
    KernelLogisticRanker,
    LogisticRanker,
    LogisticRankerCV,
    LogLinearRanker,
    PairwiseRanker,
    StagedSearchCV,
    WeightedBinaryRelevance,
)

RANKERS = [
    LogisticRanker(),
    LogisticRankerCV(Cs=[0.1, 10.0], cv=2),
    KernelLogisticRanker(gamma=0.1, C=1.0),
    KernelLogisticRanker(cv=2),
    AdaBoostRanker(n_stumps=20),
    AdaBoostMR(n_stumps=20),
    AdaBoostMH(n_stumps=20),
    StagedSearchCV(AdaBoostRanker(), rounds=[5, 20], cv=2),
    StagedSearchCV(LogLinearRanker(), rounds=[5, 30], cv=2),
    LogLinearRanker(),
    LogLinearRanker(algorithm="lbfgs", C=1.0),
    PairwiseRanker(),
    PairwiseRanker(loss="all_pairs_squared"),
    WeightedBinaryRelevance(LogisticRegression()),
]


@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix for nan or inf")
@parametrize_with_checks(RANKERS)
def test_scikit_learn_accepts_the_ranker(estimator, check):
    check(estimator)
