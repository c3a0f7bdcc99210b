"""Label trees: DeltaRank beside omikuji, napkinXC and LibMultiLabel, and how time grows.

Usage: ``python benchmarks/bench_tree.py [eurlex] [gutenberg] [growth] [large]``, all by default.
Peers come with the extra ``bench``, real data from the folder DELTARANK_DATA. Everyone has two
threads and its defaults, but for what the name says; ours were chosen on training rows of EUR-Lex.
Each fit runs in its own process: peaks are of the whole process, data included. A ranking is of
five labels, all rows one after the other or, where the peer takes many at once, together. PECOS
1.2.8 is not here: it does not run with NumPy 2.
"""

import json
import lzma
import os
import shutil
import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy import sparse

import real_data
from deltarank import LabelTreeRanker, load, save
from deltarank.datasets import TextVectorizer, long_tailed
from deltarank.metrics import rank_loss
from measure import (
    SCALE,
    THREADS,
    LeftOut,
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
)

HEAD = ["who", "fit", "times ours", "peak", "model", "ranking of a row", "P@1 P@3 P@5", "nDCG@5"]
TOP = 5
# Among more labels, rank loss would want too large a table of scores; it is of so many test rows.
CELLS_FOR_RANK_LOSS = 100_000_000


def eurlex():
    """EUR-Lex 4K, unit rows."""
    _compare("EUR-Lex 4K", _eurlex, PEERS)


def gutenberg():
    """Subject headings of books from titles, authors and shelves: 35,008 labels in training."""
    _compare("Gutenberg, subject headings", _gutenberg, {
        name: PEERS[name]
        for name in ("DeltaRank", "DeltaRank, squared hinge", "omikuji, Parabel-like")
    })  # fmt: skip


def growth():
    """Time of a fit and of a ranking in the numbers of rows and of labels."""
    n, m = scaled(40_000, 500), scaled(40_000, 300)
    table("Made-up long-tailed data", ["rows", "labels = features", "fit", "peak", "ranking"])
    found = {}
    for size in ((n // 4, m), (n // 2, m), (n, m), (n, m // 4), (n, 2 * m), (n, 5 * m)):
        fit, peak, ranking = found[size] = in_own_process(_grown, *size)
        row(*size, seconds(fit), _megabytes(peak), seconds(ranking))
    for axis, what, sizes in (
        (0, "rows", [(n // 4, m), (n // 2, m), (n, m)]),
        (1, "labels", [(n, m // 4), (n, m), (n, 2 * m), (n, 5 * m)]),
    ):
        of = [size[axis] for size in sizes]
        fits, rankings = ([found[size][k] for size in sizes] for k in (0, 2))
        print(f"\nin {what}: exponents {exponent(of, fits):.2f} of a fit, "
              f"{exponent(of, rankings):.2f} of a ranking")  # fmt: skip


def large():
    """100,000 rows, features and labels, whole."""
    n = scaled(100_000, 800)
    fit, peak, ranking = in_own_process(_grown, n, n)
    table(f"{n:,} rows, features and labels", ["fit", "peak of the process", "ranking of a row"])
    row(f"{seconds(fit)}", _megabytes(peak), seconds(ranking))


def _grown(n, m):
    X, Y = long_tailed(n, m, m, random_state=0)
    LabelTreeRanker(random_state=0).fit(X[:300], Y[:300])  # compiled
    reset_peak()
    began = time.perf_counter()
    ranker = LabelTreeRanker(random_state=0).fit(X, Y)
    spent, peak = time.perf_counter() - began, memory_kb("VmHWM")
    ranker.rank(X[:1], top=TOP)
    began = time.perf_counter()
    ranker.rank(X[:2000], top=TOP)
    return spent, peak, (time.perf_counter() - began) / len(range(*slice(2000).indices(n)))


def _megabytes(kilobytes):
    return f"{kilobytes / 1024:.0f} MB"


def _compare(title, data, peers):
    X, Y, *_ = data()
    shape = f"{X.shape[0]} rows, {X.shape[1]} features, {Y.shape[1]} labels"
    table(f"{title}: {shape}", [*HEAD, "rank loss"])
    ours = None
    for name, peer in peers.items():
        try:
            spent, peak, size, ranking, quality = in_own_process(_measured, data, peer)
        except LeftOut as reason:
            row(name, f"left out: {reason}", 0, *[""] * (len(HEAD) - 2))
            continue
        except Exception as error:  # a peer's own: the others go on
            row(name, f"fails: {type(error).__name__}", 0, *[""] * (len(HEAD) - 2))
            continue
        ours = ours or spent
        sizes = _megabytes(peak), _megabytes(size / 1024)
        row(name, seconds(spent), f"{spent / ours:.1f}", *sizes, seconds(ranking), *quality)


def _measured(data, peer):
    """Return seconds of a fit, kB at the peak, bytes of a model, seconds a ranking, quality."""
    X, Y, X_test, Y_test = data()
    folder = Path(tempfile.mkdtemp())
    try:
        fit = peer(X, Y, folder)
        reset_peak()
        began = time.perf_counter()
        rank, scores = fit()
        spent, peak = time.perf_counter() - began, memory_kb("VmHWM")
        size = sum(path.stat().st_size for path in (folder / "model").rglob("*") if path.is_file())
        rank(X_test[:1])
        began = time.perf_counter()
        ranked = rank(X_test)
        ranking = (time.perf_counter() - began) / X_test.shape[0]
        return spent, peak, size, ranking, _quality(ranked, scores, X_test, Y_test)
    finally:
        shutil.rmtree(folder)


def _quality(ranked, scores, X, Y):
    """Return what the table says of the best five labels (n, 5), and of all scores."""
    hits = np.asarray(Y[np.repeat(np.arange(len(ranked)), TOP), ranked.reshape(-1)])
    hits = hits.reshape(ranked.shape) > 0
    discounts = 1 / np.log2(np.arange(TOP) + 2)
    n_relevant = np.minimum(np.diff(Y.indptr), TOP)
    best = np.concatenate([[np.inf], np.cumsum(discounts)])[n_relevant]
    precisions = " ".join(f"{hits[:, :k].mean():.4f}" for k in (1, 3, 5))
    ndcg = f"{(hits @ discounts / best).mean():.4f}"
    if scores is None:
        return precisions, ndcg, "of its best only"
    some = slice(min(len(ranked), CELLS_FOR_RANK_LOSS // Y.shape[1]))
    return precisions, ndcg, f"{rank_loss(Y[some], scores(X[some])):.4f}"


def _eurlex():
    return real_data.unit_rows(real_data.load("eurlex-4k"))


def _gutenberg():
    """Return TF-IDF of titles beside names of authors, shelves and classes."""
    train, test = (_books(part) for part in ("train", "test"))
    names = sorted({heading for book in train for heading in book["labels"]})
    column = {name: k for k, name in enumerate(names)}
    columns = [
        (TextVectorizer(min_df=2, sublinear_tf=True, dtype=np.float32), "title"),
        (TextVectorizer(min_df=2, dtype=np.float32), "others"),
    ]
    parts = [[], []]
    for vectorizer, field in columns:
        parts[0].append(vectorizer.fit_transform([book[field] for book in train]))
        parts[1].append(vectorizer.transform([book[field] for book in test]))
    X, X_test = (sparse.hstack(blocks, format="csr").astype(np.float32) for blocks in parts)
    Y, Y_test = (_marks([book["labels"] for book in books], column) for books in (train, test))
    return X, Y, X_test, Y_test


def _books(part):
    if SCALE < 1:
        rng = np.random.default_rng(part == "test")
        return [
            {"title": " ".join(f"w{k}" for k in line), "others": f"a{line[0] % 9}",
             "labels": [f"t{line[0] % 30}", f"t{line[1] % 30}"]}
            for line in rng.integers(0, 90, (300, 6))
        ]  # fmt: skip
    name = f"gutenberg-{part}.jsonl.xz"
    path = Path(os.environ.get("DELTARANK_DATA") or ".", "gutenberg-lcsh", name)
    if not path.exists():
        raise LeftOut(f"needs gutenberg-lcsh/{name} in the folder that DELTARANK_DATA names")
    books = [json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines()]
    for book in books:
        words = [
            book["author"],
            book["language"],
            *book["lcc"],
            *(book["bookshelf"] or "").split("/"),
        ]
        book["others"] = " ".join("_".join(str(word).split()) for word in words)
        book["title"] = book["title"] or ""
    return books


def _marks(sets, column):
    rows = [sorted({column[name] for name in names if name in column}) for names in sets]
    starts = np.cumsum([0, *map(len, rows)])
    members = np.array([label for labels in rows for label in labels], np.int32)
    ones = np.ones(len(members), np.int8)
    return sparse.csr_array((ones, members, starts), shape=(len(rows), len(column)))


def deltarank(X, Y, folder, **options):
    """Return a fit of ours; what a model file holds ranks."""
    LabelTreeRanker(random_state=0).fit(X[:300], Y[:300]).rank(X[:1], top=TOP)  # compiled
    (folder / "model").mkdir()

    def fit():
        ranker = LabelTreeRanker(random_state=0, **options).fit(X, Y)
        save(ranker, folder / "model" / "ranker")
        ranker = load(folder / "model" / "ranker")
        return partial(ranker.rank, top=TOP), ranker.decision_function

    return fit


def omikuji(X, Y, folder, **options):
    """Return a fit of omikuji, which reads a file; writing that does not count."""
    library = extra("bench", "omikuji")
    path = folder / "train.txt"
    write_xmc(path, X, Y)
    parameters = library.Model.default_hyper_param()
    for name, value in options.items():
        setattr(parameters, name, value)

    def fit():
        model = library.Model.train_on_data(str(path), parameters, n_threads=THREADS)
        model.save(str(folder / "model"))

        def rank(X):
            best = []
            for a, b in pairwise(X.indptr):
                pairs = list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))
                labels = [label for label, _ in model.predict(pairs, beam_size=10, top_k=TOP)]
                best.append((labels + [0] * TOP)[:TOP])
            return np.array(best)

        return rank, None

    return fit


def napkinxc(X, Y, folder):
    """Return a fit of napkinXC's tree."""
    models = extra("bench", "napkinxc.models")
    model = models.PLT(str(folder / "model"), threads=THREADS, verbose=False)
    sets = [list(map(int, Y.indices[a:b])) for a, b in pairwise(Y.indptr)]
    matrix = sparse.csr_matrix(X)

    def fit():
        model.fit(matrix, sets)
        return lambda X: _padded(model.predict(sparse.csr_matrix(X), top_k=TOP)), None

    return fit


def libmultilabel(X, Y, folder):
    """Return a fit of LibMultiLabel's tree."""
    linear = extra("bench", "libmultilabel.linear")
    X, Y = sparse.csr_matrix(X, dtype=np.float64), sparse.csr_matrix(Y, dtype=np.float64)

    def fit():
        model = linear.train_tree(Y, X, f"-s 1 -B 1 -m {THREADS}", verbose=False)

        def rank(X):
            chances = model.predict_values(sparse.csr_matrix(X, dtype=np.float64))
            return np.argsort(-np.asarray(chances), axis=1, kind="stable")[:, :TOP]

        return rank, None

    return fit


def _padded(rankings):
    return np.array([(list(labels) + [0] * TOP)[:TOP] for labels in rankings], np.intp)


def write_xmc(path, X, Y):
    """Write rows in the format of the extreme classification repository."""
    with path.open("w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for (a, b), (c, d) in zip(pairwise(X.indptr), pairwise(Y.indptr), strict=True):
            cells = zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)
            words = " ".join(f"{feature}:{value:.6g}" for feature, value in cells)
            file.write(f"{','.join(map(str, Y.indices[c:d]))} {words}\n")


BONSAI = {"cluster_k": 100, "cluster_balanced": False, "max_depth": 3, "min_branch_size": 100}
PEERS = {
    "DeltaRank": deltarank,
    "DeltaRank, one tree": partial(deltarank, n_trees=1),
    "DeltaRank, squared hinge": partial(deltarank, loss="squared_hinge"),
    "DeltaRank, nine trees": partial(deltarank, n_trees=9, arity=128, leaf_size=32),
    "DeltaRank, nine trees, squared hinge": partial(
        deltarank, n_trees=9, arity=128, leaf_size=32, loss="squared_hinge"
    ),
    "omikuji, Parabel-like": omikuji,
    "omikuji, Bonsai-like": partial(omikuji, **BONSAI),
    "napkinXC, PLT": napkinxc,
    "LibMultiLabel, tree": libmultilabel,
}


if __name__ == "__main__":
    run_sections(eurlex, gutenberg, growth, large)
