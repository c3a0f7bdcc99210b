"""A sparse matrix means the same in whatever order its rows list their columns."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from deltarank import (
    AdaBoostMH,
    AdaBoostMR,
    AdaBoostRanker,
    BoostedTreeRanker,
    KernelLogisticRanker,
    LabelTreeRanker,
    LogisticRanker,
    LogLinearRanker,
    PairwiseRanker,
)

each_ranker = pytest.mark.parametrize(
    "ranker",
    [
        LogisticRanker(),
        PairwiseRanker(),
        LogLinearRanker(n_iterations=30),
        KernelLogisticRanker(n_landmarks=20, gamma=0.1, C=1.0, random_state=0),
        LabelTreeRanker(C=1.0, random_state=0),
        AdaBoostRanker(n_stumps=10),
        AdaBoostMR(n_stumps=10),
        AdaBoostMH(n_stumps=10),
        BoostedTreeRanker(n_trees=10, random_state=0),
    ],
    ids=lambda ranker: type(ranker).__name__,
)


@each_ranker
def test_the_order_in_which_a_sparse_row_lists_its_columns_does_not_matter(ranker):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(80, 9)) * (generator.random((80, 9)) < 0.6)
    Y = (X[:, :4] + generator.normal(size=(80, 4)) > 0).astype(int)
    ordered = sparse.csr_array(X)
    starts = ordered.indptr
    turned = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in pairwise(starts)])
    backwards = sparse.csr_array(
        (ordered.data[turned], ordered.indices[turned], starts), shape=X.shape
    )
    assert not backwards.has_sorted_indices
    wanted = clone(ranker).fit(ordered, Y).decision_function(ordered)
    found = clone(ranker).fit(backwards, Y)
    np.testing.assert_array_equal(found.decision_function(ordered), wanted)
    np.testing.assert_array_equal(found.decision_function(backwards), wanted)


@each_ranker
def test_entries_listed_twice_count_as_their_sum_and_stay_as_they_were_given(ranker):
    generator = np.random.default_rng(0)
    X = generator.integers(0, 3, size=(80, 6)).astype(float)
    Y = (X[:, :4] + generator.normal(size=(80, 4)) > 1).astype(int)
    plain = sparse.csr_array(X)
    twice = sparse.csr_array(
        (np.repeat(plain.data / 2, 2), np.repeat(plain.indices, 2), 2 * plain.indptr), shape=X.shape
    )
    given = twice.copy()
    wanted = clone(ranker).fit(plain, Y).decision_function(plain)
    np.testing.assert_array_equal(clone(ranker).fit(twice, Y).decision_function(twice), wanted)
    np.testing.assert_array_equal(twice.indices, given.indices)
    np.testing.assert_array_equal(twice.data, given.data)
