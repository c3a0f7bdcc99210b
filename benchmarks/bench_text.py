"""Tagged text, from raw text to ranked labels: DeltaRank beside scikit-learn and napkinXC.

Usage: ``python benchmarks/bench_text.py [librarian]``. The texts are those of librarian in the
folder DELTARANK_DATA: 2,520 questions in Finnish, 569 tags. Everyone gets the same TF-IDF (words of
two questions or more), two threads, and C = 1000 where there is one; nobody is tuned. Times are of
the fit alone; peaks are above the memory before, each in a process of its own, without those that
it starts. napkinXC minimises another objective, since its rows have no weights.
"""

import csv
import io
import lzma
import os
import shutil
import tempfile
import time
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from deltarank import LogisticRanker, instance_weights
from deltarank.datasets import TextVectorizer
from deltarank.metrics import precision_at_k, rank_loss
from measure import (
    SCALE,
    THREADS,
    LeftOut,
    extra,
    in_own_process,
    memory_kb,
    reset_peak,
    row,
    run_sections,
    seconds,
    table,
)

C = 1000.0
FOLDER = "librarian"


def librarian():
    """Everyone at the same C, on the same features."""
    vectorizing, X, *_ = features()
    title = f"librarian: {X.shape[0]} rows, {X.shape[1]} words, C = {C:g}"
    table(title, ["who", "fit", "times ours", "peak", "objective", "rank loss", "P@1"])
    ours = None
    for name, fit in PEERS.items():
        try:
            spent, peak, figures = in_own_process(measured, fit)
        except LeftOut as reason:
            row(name, f"left out: {reason}", "", "", "", "", "")
            continue
        ours = ours or spent
        row(name, seconds(spent), f"{spent / ours:.1f}", f"{peak / 1024:.0f} MB", *figures)
    print(f"\nTF-IDF of all questions: {seconds(vectorizing)}")


def features():
    """Return the time of vectorising, training rows and labels, test rows and labels."""
    train, test = (read(part) for part in ("train", "test"))
    names = sorted({tag for _, tags in train for tag in tags})
    vectorizer = TextVectorizer(min_df=2, dtype=np.float32)
    began = time.perf_counter()
    X = vectorizer.fit_transform([text for text, _ in train])
    spent = time.perf_counter() - began
    X_test = vectorizer.transform([text for text, _ in test])
    return spent, X, marks(train, names), X_test, marks(test, names)


def read(part):
    """Return texts and tags; where the scale is below 1, made-up ones."""
    if SCALE < 1:
        rng = np.random.default_rng(part == "test")
        words = rng.integers(0, 200, (60, 12))
        return [(" ".join(f"w{k}" for k in line), {f"t{line[0] % 7}"}) for line in words]
    path = Path(os.environ.get("DELTARANK_DATA") or ".", FOLDER, f"librarian-{part}.csv.xz")
    if not path.exists():
        raise LeftOut(f"needs {FOLDER}/{path.name} in the folder that DELTARANK_DATA names")
    lines = csv.DictReader(io.StringIO(lzma.decompress(path.read_bytes()).decode("utf-8-sig")))
    return [
        (line["question"], {tag.strip() for tag in line["tags"].split(";") if tag.strip()})
        for line in lines
    ]


def marks(rows, names):
    """Return label sets as a CSR array of 0 and 1."""
    column = {name: place for place, name in enumerate(names)}
    pairs = [(i, column[t]) for i, (_, tags) in enumerate(rows) for t in tags if t in column]
    ones = np.ones(len(pairs), np.int8)
    return sparse.csr_array((ones, np.array(pairs).T), shape=(len(rows), len(names)))


def measured(fit):
    """Return the seconds of a fit, its peak in kB above the memory before, and its quality."""
    _, X, Y, X_test, Y_test = features()
    fit(X[:50], Y[:50])  # compiled, and libraries loaded
    reset_peak()
    before, began = memory_kb("VmRSS"), time.perf_counter()
    coefficients, scorer = fit(X, Y)
    spent, peak = time.perf_counter() - began, memory_kb("VmHWM") - before
    scores = scorer(X_test)
    precision = precision_at_k(Y_test, scores, k=1)
    figures = f"{rank_loss(Y_test, scores):.4f}", f"{precision:.3f}"
    return spent, peak, (objective(coefficients, X, Y), *figures)


def objective(coefficients, X, Y):
    """Return what was minimised, the intercept penalised; nothing where that is not known."""
    if coefficients is None:
        return "another"
    coef, intercept = coefficients
    margins = (2.0 * Y.toarray() - 1) * (X @ coef.T + intercept)
    losses = (weights_of(Y) @ np.logaddexp(0, -margins)).sum()
    return f"{losses + ((coef**2).sum() + (intercept**2).sum()) / (2 * C):.2f}"


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
    X, columns = sparse.csr_matrix(X, dtype=np.float64), sparse.csc_array(Y)
    weights, n_features = weights_of(Y), X.shape[1]
    seen = [label for label in range(Y.shape[1]) if columns[:, [label]].nnz]
    marked = [columns[:, [label]].toarray()[:, 0] for label in seen]
    with get_context("fork").Pool(THREADS) as pool:
        fits = pool.map(partial(_one_label, X, weights), marked)
    coef, intercept = np.zeros((Y.shape[1], n_features)), np.full(Y.shape[1], -20.0)
    for label, (own, offset) in zip(seen, fits, strict=True):
        coef[label], intercept[label] = own, offset
    return linear(coef, intercept)


def _one_label(X, weights, y):
    model = LogisticRegression(solver="liblinear", dual=True, C=C, max_iter=1000)
    model.fit(X, y, sample_weight=weights)
    return model.coef_[0], model.intercept_[0]


def napkin(X, Y):
    """Fit napkinXC's binary relevance, whose rows have no weights."""
    models = extra("bench", "napkinxc.models")
    folder = tempfile.mkdtemp()
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


PEERS = {
    "DeltaRank, tol 1e-3": partial(deltarank, tol=1e-3),
    "DeltaRank, tol 1e-6": partial(deltarank, tol=1e-6),
    "scikit-learn, liblinear dual, 2 processes": liblinear,
    "napkinXC BR, 2 threads": napkin,
}


if __name__ == "__main__":
    run_sections(librarian)
