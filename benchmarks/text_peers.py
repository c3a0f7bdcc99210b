"""Fits of one objective by DeltaRank and others, for the benchmark of tagged text."""

import shutil
import tempfile
from functools import partial
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from deltarank import LogisticRanker, instance_weights
from measure import THREADS, extra

C = 1000.0


def weights_of(Y):
    """Return w(y) of mean one over the rows with a pair."""
    weights = instance_weights(Y)
    return weights / weights[weights > 0].mean()


def linear(coef, intercept):
    """Return coefficients, and a function that scores rows by them."""
    coef, intercept = np.asarray(coef, float), np.asarray(intercept, float)
    return (coef, intercept), lambda X: X @ coef.T + intercept


def deltarank(X, Y, tol):
    """Fit ours, the intercept penalised as liblinear does."""
    ranker = LogisticRanker(C=C, penalize_intercept=True, tol=tol, max_iter=2000).fit(X, Y)
    return linear(ranker.coef_, ranker.intercept_)


def liblinear(X, Y):
    """Fit a loop over labels with liblinear's dual solver, in two processes."""
    return one_by_one(X, Y, solver="liblinear", dual=True)


def one_by_one(X, Y, **solver):
    """Fit scikit-learn's logistic regression to one label after the other, in two processes."""
    X, columns = sparse.csr_matrix(X, dtype=np.float64), sparse.csc_array(Y)
    weights, n_features = weights_of(Y), X.shape[1]
    seen = [label for label in range(Y.shape[1]) if columns[:, [label]].nnz]
    marked = [columns[:, [label]].toarray()[:, 0] for label in seen]
    with get_context("fork").Pool(THREADS) as pool:
        fits = pool.map(partial(_one_label, X, weights, solver), marked)
    coef, intercept = np.zeros((Y.shape[1], n_features)), np.full(Y.shape[1], -20.0)
    for label, (own, offset) in zip(seen, fits, strict=True):
        coef[label], intercept[label] = own, offset
    return linear(coef, intercept)


def _one_label(X, weights, solver, y):
    model = LogisticRegression(C=C, max_iter=1000, **solver)
    model.fit(X, y, sample_weight=weights)
    return model.coef_[0], model.intercept_[0]


def napkin(X, Y, folder=None):
    """Fit napkinXC's binary relevance, whose rows have no weights."""
    models = extra("bench", "napkinxc.models")
    folder = folder or tempfile.mkdtemp()
    model = models.BR(folder, liblinear_c=C, threads=THREADS, verbose=False)
    sets = [list(map(int, Y.indices[a:b])) for a, b in pairwise(Y.indptr)]
    model.fit(sparse.csr_matrix(X), sets)

    def scores(X):
        table = np.zeros((X.shape[0], Y.shape[1]))
        for i, pairs in enumerate(model.predict_proba(sparse.csr_matrix(X), top_k=0)):
            for label, chance in pairs:
                table[i, label] = chance
        shutil.rmtree(folder)
        return table

    return None, scores
