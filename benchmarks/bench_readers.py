"""Readers beside scikit-learn's, in one run, on the same file.

Usage: ``python benchmarks/bench_readers.py [text] [memory] [cache] [arff]``, all by default. Needs
the real data sets in DELTARANK_DATA. The files are unpacked first, so that parsing is what is
timed; the floor is reading the bytes from the page cache.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
from scipy.io.arff import loadarff
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from deltarank.datasets import read
from deltarank.datasets.readers.streams import opened
from measure import in_own_process, memory_kb, reset_peak, row, run_sections, scaled, table, timed
from real_data import training_file

SETS = {"mediamill": "mediamill", "EUR-Lex 4K": "eurlex-4k"}


def unpacked(name, folder):
    """Return the text of a data set's training rows."""
    with opened(training_file(name, folder)) as (content, _):
        return content.read()


def text_files(folder):
    """Unpack the real files, and write one with 16 digits a value; name and file."""
    for title, name in SETS.items():
        path = folder / f"{name}.unpacked"
        path.write_bytes(unpacked(name, folder))
        yield title, path
    n_rows = scaled(20_000, 200)
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n_rows, 120))
    Y = (generator.random((n_rows, 101)) < 0.04).astype(int)
    path = folder / "random.svm"
    dump_svmlight_file(X, Y, str(path), multilabel=True, zero_based=False)
    yield "random normal, 16 digits", path


def their_copy(path):
    """Return what scikit-learn can read: without an XMC header."""
    lines = path.read_bytes().split(b"\n")
    if b":" not in lines[0]:
        lines = lines[1:]
    copy = path.with_suffix(".theirs")
    copy.write_bytes(b"\n".join(lines))
    return copy


def text():
    """LIBSVM and XMC text, by one thread and by two."""
    table(
        "LIBSVM and XMC text: scikit-learn's load_svmlight_file beside read",
        ["file", "MB", "scikit-learn", "1 thread", "ratio", "2 threads", "ratio", "MB/s", "floor"],
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, path in text_files(Path(folder)):
            copy = their_copy(path)
            read(path)  # compile
            theirs = one = two = floor = np.inf
            for _ in range(scaled(3)):  # interleaved, so that a busy moment hits all
                spent, peer = timed(lambda c=copy: load_svmlight_file(str(c), multilabel=True))
                theirs = min(theirs, spent)
                os.environ["DELTARANK_NUM_THREADS"] = "1"
                one = min(one, timed(lambda path=path: read(path), 2)[0])
                os.environ["DELTARANK_NUM_THREADS"] = "2"
                spent, ours = timed(lambda path=path: read(path), 2)
                two = min(two, spent)
                floor = min(floor, timed(path.read_bytes, 3)[0])
            assert np.array_equal(ours.X.data, peer[0].data), "values differ"
            size = path.stat().st_size / 1e6
            row(
                name, f"{size:.0f}", f"{theirs:.3f} s", f"{one:.3f} s", f"{theirs / one:.1f}",
                f"{two:.3f} s", f"{theirs / two:.1f}", f"{size / two:.0f}", f"{floor:.3f} s",
            )  # fmt: skip


def memory():
    """Measure what reading takes above its result."""
    table("Memory to read EUR-Lex 4K eight times over", ["text", "result", "peak above result"])
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small.svm"), Path(folder, "large.svm")
        small.write_bytes(b"0 1:1\n")
        large.write_bytes(unpacked("eurlex-4k", Path(folder)).partition(b"\n")[2] * 8)
        size, added = in_own_process(_read_bytes, small, large)
        sizes = large.stat().st_size, size, added - size
        row(*(f"{size / 2**20:.0f} MiB" for size in sizes))


def _read_bytes(small, large):
    """Return the bytes of what is read, and what reading added to the peak."""
    read(small, first_feature=0)  # compile
    reset_peak()
    before = memory_kb("VmRSS")
    data = read(large, first_feature=0)
    added = 1024 * (memory_kb("VmHWM") - before)
    return sum(a.nbytes for m in (data.X, data.Y) for a in (m.data, m.indices, m.indptr)), added


def cache():
    """Files as they are packed, and what is kept of them."""
    table("Packed files", ["file", "unpack and parse", "from the cache", "ratio"])
    with tempfile.TemporaryDirectory() as folder:
        for title, name in SETS.items():
            path = training_file(name, Path(folder))
            plain, _ = timed(lambda path=path: read(path), 2)
            read(path, cache=folder)
            kept, _ = timed(lambda path=path: read(path, cache=folder), 3)
            row(title, f"{plain:.3f} s", f"{kept:.3f} s", f"{plain / kept:.0f}")


def arff():
    """Dense and sparse ARFF."""
    table("ARFF", ["file", "MB", "scipy", "DeltaRank", "ratio"])
    with tempfile.TemporaryDirectory() as folder:
        for name in ("scene", "delicious"):
            path = training_file(name, Path(folder))
            read(path)  # compile
            ours, _ = timed(lambda path=path: read(path), 3)
            cells = [path.name, f"{path.stat().st_size / 1e6:.1f}"]
            if name == "delicious":
                row(*cells, "cannot read sparse ARFF", f"{ours:.3f} s", "")
            else:
                theirs, _ = timed(lambda path=path: loadarff(path), 2)
                row(*cells, f"{theirs:.3f} s", f"{ours:.3f} s", f"{theirs / ours:.0f}")


if __name__ == "__main__":
    run_sections(text, memory, cache, arff)
