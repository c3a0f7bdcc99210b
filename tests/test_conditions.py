"""What consistency needs: where linear scores cannot be right, a consistent loss is no help."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from deltarank import KernelLogisticRanker, LogisticRanker, rank_loss
from oracles import inverse_pairs

X = np.array([[-1.0], [0.0], [1.0]])
Y = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 1]])


def can_be_ranked_by_lines(X, Y):
    """Tell by linear programming whether some lines put all pairs in order, by a margin of 1."""
    m, rows = Y.shape[1], []
    for x, y in zip(X, Y, strict=True):
        for i in np.flatnonzero(y == 1):
            for j in np.flatnonzero(y == 0):
                row = np.zeros((m, 2))
                row[i], row[j] = [-x[0], -1], [x[0], 1]
                rows.append(row.ravel())
    found = linprog(
        np.zeros(2 * m), A_ub=np.array(rows), b_ub=-np.ones(len(rows)), bounds=(None, None)
    )
    return found.status == 0


def test_no_lines_rank_the_example_and_a_fit_loses_the_least_that_lines_can():
    assert not can_be_ranked_by_lines(X, Y)
    assert can_be_ranked_by_lines(X[[0, 2]], Y[[0, 2]])
    loss = rank_loss(Y, LogisticRanker(C=1e4).fit(X, Y).decision_function(X))
    assert_allclose(loss, inverse_pairs(Y[1]) / 3)  # one of the two pairs of one row of three


@pytest.mark.parametrize("C", [1e2, 1e4])
def test_a_kernel_ranks_the_example(C):
    ranker = KernelLogisticRanker(gamma=1.0, C=C, n_landmarks=3, random_state=0).fit(X, Y)
    assert rank_loss(Y, ranker.decision_function(X)) == 0


def test_more_rows_do_not_help_lines():
    for copies in (1, 100):
        many, labels = np.repeat(X, copies, axis=0), np.repeat(Y, copies, axis=0)
        scores = LogisticRanker(C=1e4).fit(many, labels).decision_function(many)
        assert_allclose(rank_loss(labels, scores), 1 / 6)
