"""LogisticRanker beside its peers, each pair in one run, two threads for everyone.

Usage: ``python benchmarks/bench_logistic.py [mediamill] [cv] [delicious] [eurlex] [memory]
[growth] [rank]``, all by default. Needs the extra ``bench`` and, but for the last three, the real
data sets in DELTARANK_DATA. Prints a Markdown table a section. Peers too slow to run whole are
timed on a sample of labels and scaled, which the table says.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_limits

import real_data
from deltarank import LogisticRanker, LogisticRankerCV, instance_weights, metrics, rank_loss
from measure import (
    THREADS,
    exponent,
    extra,
    in_own_process,
    memory_kb,
    reset_peak,
    row,
    run_sections,
    scaled,
    seconds,
    table,
    timed,
)


def total_objective(coef, intercept, X, Y, weights, C):
    """Sum over labels of the objective, in float64, row block by row block."""
    value = (np.asarray(coef, dtype=np.float64) ** 2).sum() / (2 * C)
    for start in range(0, X.shape[0], 2000):
        block = slice(start, start + 2000)
        scores = np.asarray(X[block] @ np.asarray(coef, dtype=np.float64).T) + intercept
        signs = 2.0 * Y[block].toarray() - 1
        value += (weights[block, None] * np.logaddexp(0, -signs * scores)).sum()
    return value


def gemm_seconds(n, d, m):
    """Return the time of the two products of a pass, X Theta and R^T X, by BLAS on its own."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, d)).astype(np.float32)
    theta = generator.normal(size=(d, m)).astype(np.float32)
    with threadpool_limits(THREADS):
        scores = X @ theta
        return timed(lambda: X @ theta, 5)[0] + timed(lambda: scores.T @ X, 5)[0]


def one_versus_rest(X, Y, C, n_jobs=THREADS):
    """Scikit-learn's loop over labels, in one process or several."""
    model = OneVsRestClassifier(LogisticRegression(C=C, max_iter=200), n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
    coef = np.vstack([fitted.coef_ for fitted in model.estimators_])
    return coef, np.concatenate([fitted.intercept_ for fitted in model.estimators_])


def liblinear(X, Y, C):
    """LibMultiLabel's loop; its intercept is penalised."""
    linear = extra("bench", "libmultilabel.linear")
    features = sparse.csr_matrix(X, dtype=np.float64)
    labels = sparse.csr_matrix(Y, dtype=np.float64)
    model = linear.train_1vsrest(labels, features, options=f"-s 0 -c {C} -B 1", verbose=False)
    weights = np.asarray(model.weights).T
    return weights[:, :-1], weights[:, -1] * model.bias


def mediamill():
    """Time the main target: 101 labels, 120 standardised features, C = 1."""
    data = real_data.standardized(real_data.load("mediamill"))
    n_labels = data.Y.shape[1]
    head = ["X", "weight", "peer", "peer", "DeltaRank", "ratio", "objective: theirs / ours - 1"]
    table(f"mediamill, standardised, C = 1, all {n_labels} labels",
          [*head, "rank loss: theirs, ours"])  # fmt: skip
    loop = {"scikit-learn OneVsRest(LogisticRegression), n_jobs=2": one_versus_rest}
    ours, work = _mediamill(data, np.float32, loop)
    more = {"LibMultiLabel train_1vsrest -s 0 -c 1 -B 1": liblinear}
    _mediamill(data, np.float64, {**loop, **more})
    floor = work * gemm_seconds(*data.X.shape, n_labels)
    print(
        f"\nFloor, float32: {work:.1f} passes' worth of matrix products take {floor:.3f} s by BLAS;"
        f" the fit takes {ours / floor:.1f} times that."
    )


def _mediamill(data, dtype, peers):
    used = instance_weights(data.Y, "uniform") > 0
    X, Y, ones = data.X[used].astype(dtype), data.Y[used], np.ones(used.sum())
    LogisticRanker().fit(X, Y)  # compile
    for name, fit in peers.items():
        fit(X, Y[:, :4], 1.0)  # import it, start its worker processes
        theirs, (coef, intercept) = timed(lambda fit=fit: fit(X, Y, 1.0))
        lost = rank_loss(data.Y_test, data.X_test @ coef.T + intercept)
        for weight in ("rank", "uniform"):
            ours, ranker = timed(lambda w=weight: LogisticRanker(weight=w).fit(X, Y), 5)
            gap = "another objective"
            if weight == "uniform":
                least = total_objective(ranker.coef_, ranker.intercept_, X, Y, ones, 1.0)
                gap = f"{total_objective(coef, intercept, X, Y, ones, 1.0) / least - 1:+.1e}"
            mine = rank_loss(data.Y_test, ranker.decision_function(data.X_test))
            row(X.dtype, weight, name, seconds(theirs), seconds(ours), f"{theirs / ours:.0f}", gap,
                f"{lost:.4f}, {mine:.4f}")  # fmt: skip
    return ours, ranker.n_iter_.mean()


def cv():
    """Seven values of C, five folds and the final fit, beside one fit."""
    data = real_data.standardized(real_data.load("mediamill"))
    LogisticRankerCV(Cs=[0.1, 1.0], random_state=0).fit(data.X, data.Y)  # compile
    one = many = np.inf
    for _ in range(3):
        one = min(one, timed(lambda: LogisticRanker().fit(data.X, data.Y))[0])
        spent, ranker = timed(lambda: LogisticRankerCV(random_state=0).fit(data.X, data.Y))
        many = min(many, spent)
    table("LogisticRankerCV, mediamill: 7 Cs x 5 folds + refit", ["one fit", "all", "ratio", "C"])
    row(seconds(one), seconds(many), f"{many / one:.1f}", f"{ranker.C_:g}")


def delicious():
    """983 labels; scikit-learn on a sample of them, scaled."""
    data = real_data.load("delicious")
    used = instance_weights(data.Y, "uniform") > 0
    X, Y = data.X[used], data.Y[used]
    n_labels = Y.shape[1]
    sample = np.random.default_rng(0).choice(n_labels, 60, replace=False)
    LogisticRanker(weight="uniform").fit(X, Y)  # compile
    one_versus_rest(X, Y[:, :4], 1.0)  # start its worker processes
    plain, (coef, intercept) = timed(lambda: one_versus_rest(X, Y[:, sample], 1.0, n_jobs=None))
    spread, _ = timed(lambda: one_versus_rest(X, Y[:, sample], 1.0))
    plain, spread = plain * n_labels / 60, spread * n_labels / 60
    shared = (X, Y[:, sample], np.ones(X.shape[0]), 1.0)
    reached = total_objective(coef, intercept, *shared)
    head = [
        "scikit-learn's loop (60 labels, scaled)",
        "with n_jobs=2",
        "DeltaRank",
        "tol",
        "ratios",
    ]
    table(f"delicious, C = 1, {n_labels} labels", [*head, "objective on the 60: theirs / ours - 1"])
    for tol in (1e-2, 7e-3, 5e-3, 1e-3, 1e-6):
        fit = LogisticRanker(weight="uniform", tol=tol)
        ours, ranker = timed(lambda fit=fit: fit.fit(X, Y), 3)
        mine = total_objective(ranker.coef_[sample], ranker.intercept_[sample], *shared)
        row(seconds(plain), seconds(spread), seconds(ours), f"{tol:g}",
            f"{plain / ours:.1f}, {spread / ours:.1f}", f"{reached / mine - 1:+.1e}")  # fmt: skip


def precisions(Y, scores):
    return " ".join(f"{metrics.precision_at_k(Y, scores, k):.4f}" for k in (1, 3, 5))


def eurlex():
    """3,993 labels, 5,000 sparse features: napkinXC whole, LibMultiLabel on 41 labels."""
    data = real_data.unit_rows(real_data.load("eurlex-4k"))
    LogisticRanker(max_iter=30, tol=0.1).fit(data.X[:4000], data.Y[:4000, :300])  # compile
    n_labels = data.Y.shape[1]
    spent, chosen = timed(lambda: _tuned(data))
    print(f"\nchosen by five folds of the training rows, in {seconds(spent)}: {chosen}")
    head = ["who", "time", "P@1 P@3 P@5", "rank loss"]
    table(f"EUR-Lex 4K, unit rows, {n_labels:,} labels", head)
    ours = []
    for weight in ("rank", "uniform"):
        fit = LogisticRanker(weight=weight, **chosen)
        spent, ranker = timed(lambda fit=fit: fit.fit(data.X, data.Y))
        ours.append(spent)
        scores = ranker.decision_function(data.X_test)
        row(f"DeltaRank, {weight}, {chosen}", seconds(spent), precisions(data.Y_test, scores),
            f"{rank_loss(data.Y_test, scores):.5f}")  # fmt: skip
    theirs, scores, _ = napkinxc(data)
    ratios = " and ".join(f"{theirs / spent:.1f}" for spent in ours)
    row(f"napkinXC BR, 2 threads: {ratios} times as long", seconds(theirs),
        precisions(data.Y_test, scores), f"{rank_loss(data.Y_test, scores):.5f}")  # fmt: skip
    extra("bench", "libmultilabel.linear")  # before the clock starts
    seen = np.flatnonzero(data.Y.sum(axis=0))  # the others have no finite optimum
    sample = np.random.default_rng(0).choice(seen, 41, replace=False)
    theirs, (coef, intercept) = timed(lambda: liblinear(data.X, data.Y[:, sample], 1.0))
    theirs *= n_labels / 41
    shared = (data.X, data.Y[:, sample], np.ones(data.X.shape[0]), 1.0)
    head = ["LibMultiLabel", "DeltaRank", "tol", "ratio", "objective on the 41: theirs / ours - 1"]
    table("EUR-Lex 4K, C = 1, beside LibMultiLabel -s 0 -c 1 -B 1 (41 labels, scaled)", head)
    reached = total_objective(coef, intercept, *shared) + (intercept**2).sum() / 2
    for tol in (1e-2, 1e-3):
        fit = LogisticRanker(C=1.0, weight=_alike, penalize_intercept=True, tol=tol)
        ours, ranker = timed(lambda fit=fit: fit.fit(data.X, data.Y))
        b = ranker.intercept_[sample]
        mine = total_objective(ranker.coef_[sample], b, *shared) + (b**2).sum() / 2
        row(seconds(theirs), seconds(ours), f"{tol:g}", f"{theirs / ours:.1f}",
            f"{reached / mine - 1:+.1e}")  # fmt: skip


def _alike(Y):
    """Weigh every row, those without a pair too, as LibMultiLabel does."""
    return np.ones(Y.shape[0])


def _tuned(data):
    """Choose C by cross-validated rank loss; the test rows are not seen."""
    options = {"tol": 1e-3, "penalize_intercept": True}
    search = LogisticRankerCV(Cs=(7, 10, 14, 20), weight="uniform", random_state=0, **options)
    return {"C": float(search.fit(data.X, data.Y).C_), **options}


def napkinxc(data):
    """Return training time, test scores and bytes on disk of napkinXC's binary relevance."""
    models = extra("bench", "napkinxc.models")
    features = sparse.csr_matrix(data.X)
    labels = [data.Y.indices[s:e] for s, e in zip(data.Y.indptr, data.Y.indptr[1:], strict=False)]
    with tempfile.TemporaryDirectory() as folder:
        model = models.BR(folder, threads=THREADS, verbose=False)
        labels = [list(map(int, row)) for row in labels]
        spent, _ = timed(lambda: model.fit(features, labels))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        predicted = model.predict_proba(sparse.csr_matrix(data.X_test), top_k=0)
    scores = np.zeros(data.Y_test.shape)
    for i, pairs in enumerate(predicted):
        for label, chance in pairs:
            scores[i, label] = chance
    return spent, scores, size


def memory():
    """Peak memory of 1,000,000 x 100 with 1,000 labels, in a process of its own."""
    n, d, m = scaled(1_000_000, 2000), 100, 1000
    inputs, before, peak, spent = in_own_process(_peak, n, d, m)
    table(f"{n:,} x {d} float32, {m:,} labels, CSR Y, tol = 1e-3",
          ["inputs", "process before", "peak", "peak above inputs", "time"])  # fmt: skip
    row(*(f"{size / 2**30:.2f} GiB" for size in (inputs, before, peak, peak - inputs)),
        seconds(spent))  # fmt: skip


def _peak(n, d, m):
    """Return the bytes of the inputs, of the process before a fit and at its peak, and the time."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((n, d), dtype=np.float32)
    members = generator.integers(0, m, (n, 3))
    members[:, 0] = (X[:, :9] > 0) @ 2 ** np.arange(9)  # one label in three follows the features
    cells = np.ones(3 * n, np.int8), members.ravel(), np.arange(0, 3 * n + 1, 3)
    Y = sparse.csr_array(cells, shape=(n, m))
    Y.sum_duplicates()
    Y.data[:] = 1
    LogisticRanker(max_iter=2, tol=1.0).fit(X[:5000], Y[:5000])  # compile
    reset_peak()
    before = memory_kb("VmRSS")
    spent, _ = timed(lambda: LogisticRanker(tol=1e-3).fit(X, Y))
    inputs = sum(part.nbytes for part in (X, Y.data, Y.indices, Y.indptr))
    return inputs, 1024 * before, 1024 * memory_kb("VmHWM"), spent


def growth():
    """Fit exponents of time in n, d and m, at a fixed number of passes."""
    base = {"n": scaled(50_000, 500), "d": 100, "m": 200}
    table("Time against size, five passes", ["what grows", "sizes", "times", "exponent"])
    for name in base:
        sizes, times = [], []
        for factor in (1, 2, 4, 8):
            size = {**base, name: base[name] * factor}
            X, Y = _linear_problem(**size)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                ranker = LogisticRanker(max_iter=5, tol=1e-12)
                times.append(timed(lambda r=ranker, X=X, Y=Y: r.fit(X, Y), 2)[0])
            sizes.append(size[name])
        slope = exponent(sizes, times)
        row(name, ", ".join(map(str, sizes)), ", ".join(map(seconds, times)), f"{slope:.2f}")


def _linear_problem(n, d, m):
    generator = np.random.default_rng(0)
    X = generator.standard_normal((n, d), dtype=np.float32)
    theta = generator.standard_normal((d, m), dtype=np.float32)
    blocks = [
        sparse.csr_array(X[i : i + 10_000] @ theta > 2 * np.sqrt(d)) for i in range(0, n, 10_000)
    ]
    return X, sparse.vstack(blocks, format="csr")


def rank():
    """Time the best five labels: one row, and 100,000 rows beside argsort of the scores."""
    generator = np.random.default_rng(0)
    ranker = fitted_by_hand(generator, 101, 120)
    x = generator.standard_normal((1, 120), dtype=np.float32)
    ranker.rank(x, top=5)
    single = timed(lambda: [ranker.rank(x, top=5) for _ in range(1000)], 3)[0] / 1000
    table("rank(X, top=5), one row, m = 101, d = 120", ["DeltaRank"])
    row(f"{single * 1e6:.0f} microseconds")
    wide = fitted_by_hand(generator, 1000, 120)
    n_rows = scaled(100_000, 1000)
    X = generator.standard_normal((n_rows, 120), dtype=np.float32)
    scores = wide.decision_function(X)
    ours, _ = timed(lambda: wide.rank(X, top=5), 2)
    full, _ = timed(lambda: np.argsort(-scores, axis=1)[:, :5], 1)
    table(f"rank(X, top=5), {n_rows:,} rows, m = 1,000",
          ["argsort of the scores alone", "DeltaRank, scores included", "ratio"])  # fmt: skip
    row(seconds(full), seconds(ours), f"{full / ours:.1f}")


def fitted_by_hand(generator, m, d):
    X = generator.standard_normal((50, d), dtype=np.float32)
    Y = (generator.random((50, m)) < 0.2).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRanker(max_iter=2).fit(X, Y)


if __name__ == "__main__":
    run_sections(mediamill, cv, delicious, eurlex, memory, growth, rank)
