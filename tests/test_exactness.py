"""LogisticRanker on real data reaches what exact Newton reaches, label by label."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import real_data
from deltarank import LogisticRanker, instance_weights

# Labels checked (all when None) and values of C; the sets with many labels are sampled.
CASES = [
    ("emotions", None, (0.01, 1.0, 100.0)),
    ("image", None, (0.01, 1.0, 100.0)),
    ("yeast", None, (0.01, 1.0, 100.0)),
    ("scene", None, (0.01, 1.0, 100.0)),
    ("mediamill", 6, (1.0,)),
    ("delicious", 3, (1.0,)),
    ("eurlex-4k", 6, (10.0,)),
]


@pytest.fixture(scope="module")
def load(data_folder):
    return real_data.load


def prepared(load, name):
    """Standardise dense sets, as users would; of EUR-Lex take a part that Newton can do."""
    data = load(name)
    if name == "eurlex-4k":
        data = real_data.unit_rows(data)
        frequent = np.sort(np.argsort(-np.diff(data.X.tocsc().indptr))[:1500])
        common = np.argsort(-np.diff(data.Y.tocsc().indptr))[:60]
        return data.X[:3000][:, frequent], data.Y[:3000][:, common]
    if sparse.issparse(data.X):
        return data.X.astype(np.float32), data.Y
    return real_data.standardized(data).X, data.Y


def exact_objective(X, y, weights, C):
    """Least objective of one label, by scikit-learn's Newton method in float64."""
    used = weights > 0
    rows = X[used].toarray() if sparse.issparse(X) else X[used]
    rows = rows.astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=200).fit(
            rows, y[used], sample_weight=weights[used]
        )
    return objective(fitted.coef_[0], fitted.intercept_[0], X, y, weights, C)


def objective(coef, intercept, X, y, weights, C):
    coef = coef.astype(np.float64)
    scores = np.asarray(X.astype(np.float64) @ coef) + intercept
    return weights @ np.logaddexp(0, -(2.0 * y - 1) * scores) + coef @ coef / (2 * C)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n_labels", "C"), [(name, n, C) for name, n, Cs in CASES for C in Cs]
)
def test_every_label_is_within_a_millionth_of_the_exact_optimum(load, name, n_labels, C):
    X, Y = prepared(load, name)
    weights = instance_weights(Y)
    ranker = LogisticRanker(C=C, max_iter=500).fit(X, Y)
    columns = Y.tocsc()
    seen = np.flatnonzero(np.diff(columns[weights > 0].indptr))
    # A seed of its own, apart from any used while the solver was tuned.
    chosen = seen if n_labels is None else np.random.default_rng(2026).choice(seen, n_labels)
    for label in chosen:
        y = columns[:, [label]].toarray()[:, 0]
        least = exact_objective(X, y, weights, C)
        ours = objective(ranker.coef_[label], ranker.intercept_[label], X, y, weights, C)
        assert ours <= least * (1 + 1e-6), f"label {label}: {ours / least - 1:.1e} above"
    assert ranker.converged_.mean() > 0.99
