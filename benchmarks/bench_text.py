"""Tagged text, from raw text to ranked labels: DeltaRank beside scikit-learn, napkinXC, omikuji.

Usage: ``python benchmarks/bench_text.py [librarian] [end_to_end]``. The texts are those of
librarian in the folder DELTARANK_DATA: 2,520 questions in Finnish, 569 tags. Everyone gets TF-IDF
of the words of two questions or more, two threads, and C = 1000 where there is one; nobody is tuned
but ours where its name says so. Peaks are above the memory before, each in a process of its own,
without those that it starts. napkinXC and omikuji minimise another objective, since their rows have
no weights.

`librarian` fits the same features, and times are of the fit alone. `end_to_end` starts from texts
and ends with a model on disk, each with the vectorizer that its users would take (ours for us,
scikit-learn's for the others, kept by joblib), and then ranks all labels for the test texts.
"""

import csv
import io
import lzma
import os
import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import joblib
import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

import bench_tree
from deltarank import LabelTreeRanker, LogisticRanker, LogisticRankerCV, save
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
from text_peers import C, deltarank, liblinear, napkin, one_by_one, weights_of

# Of so many labels a slow peer fits one.
EVERY = 20
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


def end_to_end():
    """Everyone from texts to a model on disk, and from further texts to all labels in order."""
    texts, Y, _, Y_test = labelled_texts()
    head = ["who", "fit and save", "times ours", "peak", "model", "rank", "rank loss"]
    shape = f"{len(texts)} texts, {Y.shape[1]} tags, {Y_test.shape[0]} texts to rank"
    table(f"librarian, end to end: {shape}, C = {C:g}", [*head, "P@1", "P@3", "P@5"])
    ours = None
    for name, learn in WHOLE.items():
        try:
            spent, peak, size, ranking, quality = in_own_process(taken_whole, learn)
        except LeftOut as reason:
            row(name, f"left out: {reason}", 0, *[""] * 7)
            continue
        ours = ours or spent
        sizes = f"{peak / 1024:.0f} MB", f"{size / 2**20:.1f} MB"
        row(name, seconds(spent), f"{spent / ours:.1f}", *sizes, seconds(ranking), *quality)
    n_labels, spent = in_own_process(lbfgs_of_some)
    print(f"\nscikit-learn, lbfgs, 2 processes, {n_labels} labels, scaled to all: {seconds(spent)}")


def lbfgs_of_some():
    """Return how many labels scikit-learn's usual solver fitted, and seconds for all at that rate.

    Its minimum is liblinear's, but for the intercept, which it leaves free.
    """
    texts, Y, *_ = labelled_texts()
    X = TfidfVectorizer(min_df=2).fit_transform(texts)
    some = Y[:, ::EVERY]
    began = time.perf_counter()
    one_by_one(X, some, solver="lbfgs")
    return some.shape[1], (time.perf_counter() - began) * Y.shape[1] / some.shape[1]


def labelled_texts():
    """Return training texts and labels, test texts and labels."""
    train, test = (read(part) for part in ("train", "test"))
    names = sorted({tag for _, tags in train for tag in tags})
    texts = ([text for text, _ in part] for part in (train, test))
    learned, further = texts
    return learned, marks(train, names), further, marks(test, names)


def taken_whole(learn):
    """Return seconds to a model, kB at the peak, its bytes, seconds to rank, and quality."""
    texts, Y, further, Y_test = labelled_texts()
    with tempfile.TemporaryDirectory() as warm:
        learn(texts[:50], Y[:50], Path(warm))(further[:5])  # compiled, and libraries loaded
    with tempfile.TemporaryDirectory() as folder:
        reset_peak()
        before, began = memory_kb("VmRSS"), time.perf_counter()
        rank = learn(texts, Y, Path(folder))
        spent, peak = time.perf_counter() - began, memory_kb("VmHWM") - before
        size = sum(path.stat().st_size for path in Path(folder, "model").rglob("*"))
        began = time.perf_counter()
        scores = rank(further)
        ranking = time.perf_counter() - began
    precisions = (f"{precision_at_k(Y_test, scores, k=k):.3f}" for k in (1, 3, 5))
    return spent, peak, size, ranking, (f"{rank_loss(Y_test, scores):.4f}", *precisions)


def ours_whole(texts, Y, folder, make):
    """Fit what the command would: words with logarithms of their counts, one model file."""
    vectorizer = TextVectorizer(min_df=2)
    pipeline = Pipeline([("words", vectorizer), ("ranker", make())]).fit(texts, Y)
    folder.joinpath("model").mkdir()
    save(pipeline, folder / "model" / "model.delta")
    return pipeline.decision_function


def vectorized(texts, folder):
    """Return rows of scikit-learn's TF-IDF, and what makes further ones; kept beside the model."""
    vectorizer = TfidfVectorizer(min_df=2)
    X = vectorizer.fit_transform(texts)
    folder.joinpath("model").mkdir()
    joblib.dump(vectorizer, folder / "model" / "words")
    return X, vectorizer.transform


def liblinear_whole(texts, Y, folder):
    """Fit scikit-learn's loop over labels, and keep its coefficients."""
    X, transform = vectorized(texts, folder)
    coefficients, scores = liblinear(X, Y)
    joblib.dump(coefficients, folder / "model" / "coefficients")
    return lambda further: scores(transform(further))


def napkin_whole(texts, Y, folder):
    """Fit napkinXC's binary relevance."""
    X, transform = vectorized(texts, folder)
    _, scores = napkin(X, Y, str(folder / "model" / "coefficients"))
    return lambda further: scores(transform(further))


def omikuji_whole(texts, Y, folder, **options):
    """Fit omikuji's trees; to rank all labels its beam is as wide as there are labels."""
    library = extra("bench", "omikuji")
    X, transform = vectorized(texts, folder)
    bench_tree.write_xmc(folder / "train.txt", X, sparse.csr_array(Y))
    parameters = library.Model.default_hyper_param()
    for name, value in options.items():
        setattr(parameters, name, value)
    model = library.Model.train_on_data(str(folder / "train.txt"), parameters, n_threads=THREADS)
    model.save(str(folder / "model" / "trees"))

    def scores(further):
        rows, table = sparse.csr_array(transform(further)), np.zeros((len(further), Y.shape[1]))
        for i, (a, b) in enumerate(pairwise(rows.indptr)):
            cells = list(zip(rows.indices[a:b].tolist(), rows.data[a:b].tolist(), strict=True))
            for label, chance in model.predict(cells, beam_size=Y.shape[1], top_k=Y.shape[1]):
                table[i, label] = chance
        return table

    return scores


PEERS = {
    "DeltaRank, tol 1e-3": partial(deltarank, tol=1e-3),
    "DeltaRank, tol 1e-6": partial(deltarank, tol=1e-6),
    "scikit-learn, liblinear dual, 2 processes": liblinear,
    "napkinXC BR, 2 threads": napkin,
}


WHOLE = {
    "DeltaRank": partial(ours_whole, make=partial(LogisticRanker, C=C)),
    "DeltaRank, small coefficients left out": partial(
        ours_whole, make=partial(LogisticRanker, C=C, prune=0.05)
    ),
    "DeltaRank, C chosen of seven by five folds": partial(
        ours_whole, make=partial(LogisticRankerCV, random_state=0)
    ),
    "DeltaRank, a label tree": partial(ours_whole, make=partial(LabelTreeRanker, random_state=0)),
    "scikit-learn, liblinear dual, 2 processes": liblinear_whole,
    "napkinXC BR, 2 threads": napkin_whole,
    "omikuji, Parabel-like": omikuji_whole,
    "omikuji, Bonsai-like": partial(omikuji_whole, **bench_tree.BONSAI),
}


if __name__ == "__main__":
    run_sections(librarian, end_to_end)
