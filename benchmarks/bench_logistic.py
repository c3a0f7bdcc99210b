"""LogisticRanker beside its peers, each pair in one run, two threads for everyone.

Usage: ``python benchmarks/bench_logistic.py [mediamill] [cv] [delicious] [eurlex] [memory]
[growth] [rank]``, all by default. Needs the extra ``bench`` and, but for the last three, the real
data sets in DELTARANK_DATA. Prints a Markdown table a section. Peers too slow to run whole are
timed on a sample of labels and scaled, which the table says.
"""

import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_limits

import real_data
from deltarank import LogisticRanker, LogisticRankerCV, instance_weights, metrics, rank_loss

THREADS = 2


def timed(function, repeats=1):
    """Return the best time of several and the last result."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def table(title, head):
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def seconds(value):
    return f"{value:.3f} s" if value < 10 else f"{value:.1f} s"


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


def one_versus_rest(X, Y, C):
    """Scikit-learn's loop; rows without pairs are left out, as our weights do."""
    model = OneVsRestClassifier(LogisticRegression(C=C, max_iter=200), n_jobs=THREADS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
    coef = np.vstack([fitted.coef_ for fitted in model.estimators_])
    return coef, np.concatenate([fitted.intercept_ for fitted in model.estimators_])


def liblinear(X, Y, C):
    """LibMultiLabel's loop; its intercept is penalised."""
    from libmultilabel import linear

    features = sparse.csr_matrix(X, dtype=np.float64)
    labels = sparse.csr_matrix(Y, dtype=np.float64)
    model = linear.train_1vsrest(labels, features, options=f"-s 0 -c {C} -B 1", verbose=False)
    weights = np.asarray(model.weights).T
    return weights[:, :-1], weights[:, -1] * model.bias


def mediamill():
    """Time the main target: 101 labels, 120 standardised features, C = 1."""
    data = real_data.standardized(real_data.load("mediamill"))
    uniform = instance_weights(data.Y, "uniform")
    used = uniform > 0
    X, Y = data.X[used], data.Y[used]
    LogisticRanker(max_iter=50).fit(X, Y)  # compile
    head = ["weight", "peer", "peer", "DeltaRank", "ratio", "objective: theirs / ours - 1"]
    table("mediamill, standardised, C = 1, all 101 labels", [*head, "rank loss: theirs, ours"])
    fits = {}
    for weight in ("rank", "uniform"):
        fits[weight] = timed(lambda w=weight: LogisticRanker(weight=w).fit(X, Y), 3)
    peers = {
        "scikit-learn OneVsRest(LogisticRegression), n_jobs=2": lambda: one_versus_rest(X, Y, 1.0),
        "LibMultiLabel train_1vsrest -s 0 -c 1 -B 1": lambda: liblinear(X, Y, 1.0),
    }
    for name, fit in peers.items():
        theirs, (coef, intercept) = timed(fit)
        lost = rank_loss(data.Y_test, data.X_test @ coef.T + intercept)
        for weight, (ours, ranker) in fits.items():
            again, _ = timed(lambda w=weight: LogisticRanker(weight=w).fit(X, Y), 2)
            ours = min(ours, again)
            gap = "another objective"
            if weight == "uniform":
                least = total_objective(ranker.coef_, ranker.intercept_, X, Y, uniform[used], 1.0)
                gap = (
                    f"{total_objective(coef, intercept, X, Y, uniform[used], 1.0) / least - 1:+.1e}"
                )
            mine = rank_loss(data.Y_test, ranker.decision_function(data.X_test))
            row(weight, name, seconds(theirs), seconds(ours), f"{theirs / ours:.0f}", gap,
                f"{lost:.4f}, {mine:.4f}")  # fmt: skip
    floor = gemm_seconds(len(X), 120, 101)
    for weight, (ours, ranker) in fits.items():
        work = ranker.n_iter_.sum() / 101
        print(
            f"\nFloor, {weight}: {work:.1f} passes' worth of work x {floor * 1e3:.1f} ms of matrix"
            f" products = {work * floor:.3f} s; the fit takes {ours / work / floor:.1f} times that."
        )


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
    X = data.X.astype(np.float32)
    uniform = instance_weights(data.Y, "uniform")
    used = uniform > 0
    X, Y = X[used], data.Y[used]
    LogisticRanker(max_iter=50).fit(X, Y[:, :300])  # compile
    ours, ranker = timed(lambda: LogisticRanker(weight="uniform").fit(X, Y), 2)
    sample = np.random.default_rng(0).choice(983, 40, replace=False)
    theirs, (coef, intercept) = timed(lambda: one_versus_rest(X, Y[:, sample], 1.0))
    weights = np.ones(X.shape[0])
    least = total_objective(ranker.coef_[sample], ranker.intercept_[sample], X, Y[:, sample],
                            weights, 1.0)  # fmt: skip
    gap = total_objective(coef, intercept, X, Y[:, sample], weights, 1.0) / least - 1
    table("delicious, C = 1, 983 labels", ["scikit-learn (40 labels, scaled)", "DeltaRank", "ratio",
                                           "objective: theirs / ours - 1"])  # fmt: skip
    scaled = theirs * 983 / 40
    row(seconds(scaled), seconds(ours), f"{scaled / ours:.0f}", f"{gap:+.1e}")


def precisions(Y, scores):
    return " ".join(f"{metrics.precision_at_k(Y, scores, k):.4f}" for k in (1, 3, 5))


def eurlex():
    """3,993 labels, 5,000 sparse features: napkinXC whole, LibMultiLabel on 41 labels."""
    data = real_data.unit_rows(real_data.load("eurlex-4k"))
    LogisticRanker(max_iter=30, tol=0.1).fit(data.X[:4000], data.Y[:4000, :300])  # compile
    head = ["who", "time", "ratio", "P@1 P@3 P@5", "rank loss"]
    table("EUR-Lex 4K, unit rows, 3,993 labels", head)
    for weight in ("rank", "uniform"):
        fit = LogisticRanker(C=10.0, weight=weight, tol=1e-2)
        ours, ranker = timed(lambda fit=fit: fit.fit(data.X, data.Y))
        scores = ranker.decision_function(data.X_test)
        row(f"DeltaRank, {weight}, C = 10, tol = 1e-2", seconds(ours), "",
            precisions(data.Y_test, scores), f"{rank_loss(data.Y_test, scores):.4f}")  # fmt: skip
    theirs, scores = timed(lambda: _napkinxc(data))
    row("napkinXC BR, 2 threads", seconds(theirs), f"{theirs / ours:.1f}",
        precisions(data.Y_test, scores), f"{rank_loss(data.Y_test, scores):.4f}")  # fmt: skip
    exact, _ = timed(lambda: LogisticRanker(C=1.0, weight="uniform").fit(data.X, data.Y))
    sample = np.random.default_rng(0).choice(3993, 41, replace=False)
    theirs, _ = timed(lambda: liblinear(data.X, data.Y[:, sample], 1.0))
    scaled = theirs * 3993 / 41
    row("LibMultiLabel -s 0 -c 1 -B 1 (41 labels, scaled)", seconds(scaled), "", "", "")
    row("DeltaRank, uniform, C = 1, tol = 1e-6", seconds(exact), f"{scaled / exact:.1f}", "", "")


def _napkinxc(data):
    """Train and score with napkinXC's binary relevance."""
    from napkinxc.models import BR

    features = sparse.csr_matrix(data.X)
    labels = [data.Y.indices[s:e] for s, e in zip(data.Y.indptr, data.Y.indptr[1:], strict=False)]
    with tempfile.TemporaryDirectory() as folder:
        model = BR(folder, threads=THREADS, verbose=False)
        model.fit(features, [list(map(int, row)) for row in labels])
        predicted = model.predict_proba(sparse.csr_matrix(data.X_test), top_k=0)
    scores = np.zeros(data.Y_test.shape)
    for i, pairs in enumerate(predicted):
        for label, chance in pairs:
            scores[i, label] = chance
    return scores


MEMORY_PROBE = """
import resource, sys
import numpy as np
from scipy import sparse
from deltarank import LogisticRanker
n, d, m = 1_000_000, 100, 1_000
generator = np.random.default_rng(0)
X = generator.standard_normal((n, d), dtype=np.float32)
members = np.sort(generator.integers(0, m, (n, 3)), axis=1).ravel()
Y = sparse.csr_matrix((np.ones(3 * n, np.int8), members, np.arange(0, 3 * n + 1, 3)), shape=(n, m))
Y.sum_duplicates(); Y.data[:] = 1
LogisticRanker(max_iter=2, tol=1.0).fit(X[:5000], Y[:5000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import time
start = time.perf_counter()
LogisticRanker(tol=1e-3).fit(X, Y)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
inputs = (X.nbytes + Y.data.nbytes + Y.indices.nbytes + Y.indptr.nbytes) / 2**30
print(inputs, before / 2**20, after / 2**20, time.perf_counter() - start)
"""


def memory():
    """Peak memory of 1,000,000 x 100 with 1,000 labels, in a process of its own."""
    result = subprocess.run([sys.executable, "-c", MEMORY_PROBE], capture_output=True, text=True)
    inputs, before, after, spent = map(float, result.stdout.split())
    table("1,000,000 x 100 float32, 1,000 labels, CSR Y, tol = 1e-3",
          ["inputs", "process before", "peak", "peak above inputs", "time"])  # fmt: skip
    row(f"{inputs:.2f} GiB", f"{before:.2f} GiB", f"{after:.2f} GiB", f"{after - inputs:.2f} GiB",
        seconds(spent))  # fmt: skip


def growth():
    """Fitted exponents of time in n, d and m, at a fixed number of passes."""
    base = {"n": 20_000, "d": 100, "m": 100}
    table("Time against size, ten passes", ["what grows", "sizes", "times", "exponent"])
    for name in base:
        sizes, times = [], []
        for factor in (1, 2, 4, 8):
            size = {**base, name: base[name] * factor}
            generator = np.random.default_rng(0)
            X = generator.standard_normal((size["n"], size["d"]), dtype=np.float32)
            Y = sparse.random_array((size["n"], size["m"]), density=0.03, rng=generator) > 0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                ranker = LogisticRanker(max_iter=5, tol=1e-12, C=1e3)
                times.append(timed(lambda r=ranker, X=X, Y=Y: r.fit(X, Y), 2)[0])
            sizes.append(size[name])
        exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        row(name, ", ".join(map(str, sizes)), ", ".join(map(seconds, times)), f"{exponent:.2f}")


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
    X = generator.standard_normal((100_000, 120), dtype=np.float32)
    scores = wide.decision_function(X)
    ours, _ = timed(lambda: wide.rank(X, top=5), 2)
    full, _ = timed(lambda: np.argsort(-scores, axis=1)[:, :5], 1)
    table("rank(X, top=5), 100,000 rows, m = 1,000",
          ["argsort of the scores alone", "DeltaRank, scores included", "ratio"])  # fmt: skip
    row(seconds(full), seconds(ours), f"{full / ours:.1f}")


def fitted_by_hand(generator, m, d):
    X = generator.standard_normal((50, d), dtype=np.float32)
    Y = (generator.random((50, m)) < 0.2).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRanker(max_iter=2).fit(X, Y)


SECTIONS = {f.__name__: f for f in (mediamill, cv, delicious, eurlex, memory, growth, rank)}


def main():
    os.environ["DELTARANK_NUM_THREADS"] = str(THREADS)
    for name in sys.argv[1:] or SECTIONS:
        SECTIONS[name]()


if __name__ == "__main__":
    main()
