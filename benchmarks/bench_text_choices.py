"""What to fit to text: features, C, balance and intercept, by cross-validation of training rows.

Usage: ``python benchmarks/bench_text_choices.py [librarian] [gutenberg] [eurlex]``. Data are looked
for in the folder DELTARANK_DATA. One choice at a time is changed from the base that `deltarank fit`
starts from: words of two rows or more, logarithms of counts, a free intercept, no balance. Each
line is the best of three values of C by the rank loss of the rows held out. Test rows are never
read. Words are chosen and weighed on all training rows, which tells nothing of labels.
"""

from functools import partial

import numpy as np
from scipy import sparse

import bench_text
import bench_tree
import real_data
from deltarank import LogisticRanker
from deltarank.core.splits import LabelStratifiedKFold
from deltarank.datasets import TextVectorizer
from deltarank.metrics import precision_at_k, rank_loss
from measure import row, run_sections, scaled, table

HEAD = ["what", "features", "C", "rank loss", "P@1", "P@3", "P@5"]
FOLDS = 3
# The base, and what is changed in it.
BASE = {"sublinear_tf": True, "min_df": 2}
FEATURES = {
    "base": {},
    "plain counts": {"sublinear_tf": False},
    "words of 1 row too": {"min_df": 1},
    "words of 3 rows or more": {"min_df": 3},
    "words and pairs of words": {"ngram_range": (1, 2)},
    "3 to 5 characters in words": {"analyzer": "char_wb", "ngram_range": (3, 5)},
}
FITS = {
    "intercept penalised": {"penalize_intercept": True},
    "balance 0.5": {"balance": 0.5},
    "balance 1": {"balance": 1.0},
    "balance 0.5, intercept penalised": {"balance": 0.5, "penalize_intercept": True},
}


def librarian():
    """Questions in Finnish, 569 tags."""
    rows = bench_text.read("train")
    names = sorted({tag for _, tags in rows for tag in tags})
    texts = [text for text, _ in rows]
    study("librarian", bench_text.marks(rows, names), _of_texts(texts), Cs=(10.0, 100.0, 1000.0))


def gutenberg():
    """Titles of books, with author, shelf and class, and the 1,000 most frequent headings."""
    books = bench_tree._books("train")
    counts = {}
    for book in books:
        for heading in book["labels"]:
            counts[heading] = counts.get(heading, 0) + 1
    column = {name: k for k, name in enumerate(sorted(counts, key=counts.get)[-1000:])}
    books = [book for book in books if column.keys() & set(book["labels"])]
    some = np.random.default_rng(0).permutation(len(books))[: scaled(6_000, 200)]
    books = [books[k] for k in np.sort(some)]
    Y = bench_tree._marks([book["labels"] for book in books], column)
    texts = [f"{book['title']} {book['others']}" for book in books]
    study(f"gutenberg, {len(books)} books", Y, _of_texts(texts), Cs=(1.0, 10.0, 100.0))


def eurlex():
    """Documents whose features are given, on the 1,000 most frequent labels of a part of rows."""
    data = real_data.load("eurlex-4k")
    some = np.random.default_rng(0).permutation(data.X.shape[0])[: scaled(4_000, 200)]
    X, Y = sparse.csr_array(data.X)[some], sparse.csr_array(data.Y)[some]
    Y = Y[:, np.argsort(-Y.sum(axis=0), kind="stable")[:1000]]
    makers = {
        "base": partial(scaled_rows, X),
        "as given": lambda: X.astype(np.float32),
        "square roots": partial(scaled_rows, X, np.sqrt),
        "logarithms": partial(scaled_rows, X, np.log1p),
        "words of 3 rows or more": lambda: scaled_rows(X[:, X.astype(bool).sum(axis=0) > 2]),
    }
    study(f"EUR-Lex 4K, {X.shape[0]} rows", Y, makers, Cs=(1.0, 10.0, 100.0))


def _of_texts(texts):
    """Return functions that make features of texts, by their names."""

    def make(changes):
        return TextVectorizer(**{**BASE, **changes}, dtype=np.float32).fit_transform(texts)

    return {name: partial(make, changes) for name, changes in FEATURES.items()}


def scaled_rows(X, function=None):
    """Return rows of length 1, of a function of their values."""
    X = X.astype(np.float32)
    if function is not None:
        X.data = function(X.data)
    lengths = np.sqrt(X.multiply(X).sum(axis=1))
    return sparse.csr_array(sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ X)


def study(title, Y, makers, *, Cs):
    """Print what each set of features, and each way to fit the first of them, comes to."""
    table(f"{title}, {Y.shape[1]} labels, {FOLDS} folds", HEAD)
    for name, make in makers.items():
        X = make()
        row(name, X.shape[1], *best(X, Y, Cs, {}))
        if name == "base":
            base = X
    for name, options in FITS.items():
        row(name, base.shape[1], *best(base, Y, Cs, options))


def best(X, Y, Cs, options):
    """Return the best C by the rank loss of the rows held out, and what it comes to there."""
    splits = list(LabelStratifiedKFold(FOLDS, random_state=0).split(X, Y))
    found = []
    for C in Cs:
        folds = [held_out(LogisticRanker(C=C, **options), X, Y, *split) for split in splits]
        found.append((C, *np.mean(folds, axis=0)))
    C, loss, *precisions = min(found, key=lambda measures: measures[1])
    return f"{C:g}", f"{loss:.4f}", *(f"{precision:.3f}" for precision in precisions)


def held_out(ranker, X, Y, train, test):
    """Return rank loss and precisions of the rows of a fold."""
    scores = ranker.fit(X[train], Y[train]).decision_function(X[test])
    return rank_loss(Y[test], scores), *(precision_at_k(Y[test], scores, k=k) for k in (1, 3, 5))


if __name__ == "__main__":
    run_sections(librarian, gutenberg, eurlex)
