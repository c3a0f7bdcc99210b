"""TextVectorizer beside scikit-learn's TfidfVectorizer, in one run, on the same texts.

Usage: ``python benchmarks/bench_vectorizer.py [real] [large] [one]``, all by default. `real` needs
the texts of librarian and gutenberg-lcsh in the folder DELTARANK_DATA. Times are of fit_transform
by the clock; processor seconds stand beside them, since they tell what the clock cannot where other
programs share the cores. Peaks are above the memory before, each in a process of its own.
"""

import os
import time
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from deltarank.datasets import TextVectorizer
from deltarank.datasets.readers.table_files import csv_tables, json_tables
from measure import (
    SCALE,
    LeftOut,
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

HEAD = [
    "texts", "MB", "options", "scikit-learn", "DeltaRank", "ratio",
    "processor seconds", "peaks", "columns",
]  # fmt: skip
OPTIONS = {
    "words": {},
    "1 and 2 words": {"ngram_range": (1, 2)},
    "2 to 4 characters": {"analyzer": "char_wb", "ngram_range": (2, 4)},
}
FILES = {
    "librarian": ("librarian/librarian-train.csv.xz", csv_tables, "question"),
    "gutenberg": ("gutenberg-lcsh/gutenberg-train.jsonl.xz", json_tables, "title"),
}
LARGE_MB = 200.0


def column_of(name):
    """Return a column of a file, or made-up texts in its stead."""
    if SCALE < 1:
        return made_up(0.1)
    file, tables, column = FILES[name]
    path = Path(os.environ.get("DELTARANK_DATA") or ".", file)
    if not path.exists():
        raise LeftOut(f"needs {file} in the folder that DELTARANK_DATA names")
    return [text or "" for part in tables(path, None) for text in part.columns[column]]


def made_up(megabytes):
    """Make up texts of 200 words, which are as unequally frequent as those of a language."""
    generator = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxzäöå"))
    sizes = generator.integers(2, 12, 300_000)
    lexicon = np.array(["".join(generator.choice(letters, n)) for n in sizes], dtype=object)
    texts, size = [], 0
    while size < 1e6 * megabytes:
        ranks = (20 * generator.pareto(0.6, 200)).astype(np.int64)
        texts.append(" ".join(lexicon[np.minimum(ranks, len(lexicon) - 1)]))
        size += len(texts[-1].encode())
    return texts


SOURCES = {name: lambda name=name: column_of(name) for name in FILES}
SOURCES["made up"] = lambda: made_up(scaled(LARGE_MB, 0.1))


def spent(kind, options, texts, repeats):
    """Return the best wall-clock and processor seconds of several fits, and the last matrix."""
    best = [np.inf, np.inf]
    for _ in range(scaled(repeats)):
        wall, processor = time.perf_counter(), time.process_time()
        X = kind(**options).fit_transform(texts)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        best = [min(best[0], wall), min(best[1], processor)]
    return *best, X


def peak(kind, options, source):
    """Return what a fit adds to the memory of a process at its peak, in bytes."""
    texts = SOURCES[source]()
    kind(**options).fit_transform(texts[:100])  # compile
    reset_peak()
    before = memory_kb("VmRSS")
    kind(**options).fit_transform(texts)
    return 1024 * (memory_kb("VmHWM") - before)


def compare(source, names, repeats):
    """Print a row for each kind of n-gram."""
    texts = SOURCES[source]()
    size = sum(len(text.encode()) for text in texts) / 1e6
    for name in names:
        options = OPTIONS[name]
        TextVectorizer(**options).fit_transform(texts[:100])  # compile
        theirs, their_processor, expected = spent(TfidfVectorizer, options, texts, repeats)
        ours, our_processor, found = spent(TextVectorizer, options, texts, repeats)
        assert abs(expected - found).max() < 1e-12, "values differ"
        kinds = (TfidfVectorizer, TextVectorizer)
        peaks = [in_own_process(peak, kind, options, source) / 2**20 for kind in kinds]
        row(
            source, f"{size:.1f}", name, seconds(theirs), seconds(ours), f"{theirs / ours:.1f}",
            f"{their_processor:.2f}, {our_processor:.2f}",
            f"{peaks[0]:.0f}, {peaks[1]:.0f} MiB", found.shape[1],
        )  # fmt: skip


def real():
    """Questions in Finnish and titles of books."""
    table("Real texts: TfidfVectorizer beside TextVectorizer, two threads", HEAD)
    for source in FILES:
        compare(source, OPTIONS, 3)


def large():
    """Many made-up texts."""
    table("Made-up texts", HEAD)
    compare("made up", ["words"], 1)


def one():
    """Time a single text, as a server gets it."""
    table("One text of 200 words", ["columns", "scikit-learn", "DeltaRank", "ratio"])
    texts = made_up(scaled(5.0, 0.1))
    theirs, ours = TfidfVectorizer().fit(texts), TextVectorizer().fit(texts)
    ours.transform(texts[:1])  # make its table of words
    their_time, our_time = (
        timed(lambda kind=kind: kind.transform(texts[:1]), 200) for kind in (theirs, ours)
    )
    row(
        len(ours.idf_), f"{1e6 * their_time[0]:.0f} us", f"{1e6 * our_time[0]:.0f} us",
        f"{their_time[0] / our_time[0]:.1f}",
    )  # fmt: skip


if __name__ == "__main__":
    run_sections(real, large, one)
