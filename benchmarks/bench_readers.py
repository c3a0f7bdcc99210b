"""Readers beside scikit-learn's, in one run, on the same file.

Usage: ``python benchmarks/bench_readers.py [text] [memory] [cache] [arff]``, all by default. Needs
the real data sets in DELTARANK_DATA. The files are unpacked first, so that parsing is what is
timed; the floor is reading the bytes from the page cache.
"""

import lzma
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.io import arff
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from deltarank.datasets import read
from measure import row, table

FOLDER = Path(os.environ.get("DELTARANK_DATA", "."))
SETS = {
    "mediamill": "mediamill/mediamill-train.svm.xz",
    "EUR-Lex 4K": "eurlex-4k/eurlex_train.txt.xz",
}


def best_of(function, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def text_files(folder):
    """Unpack the real files, and write one with 16 digits a value; name, file, XMC or not."""
    for name, packed in SETS.items():
        path = folder / Path(packed).stem
        path.write_bytes(lzma.decompress((FOLDER / packed).read_bytes()))
        yield name, path
    generator = np.random.default_rng(0)
    X = generator.normal(size=(20_000, 120))
    Y = (generator.random((20_000, 101)) < 0.04).astype(int)
    path = folder / "random.svm"
    dump_svmlight_file(X, Y, str(path), multilabel=True, zero_based=False)
    yield "random normal, 16 digits", path


def their_copy(path):
    """Return what scikit-learn can read: without an XMC header, and without rows it would drop."""
    lines = path.read_bytes().split(b"\n")
    if b":" not in lines[0]:
        lines = lines[1:]
    copy = path.with_suffix(".theirs")
    copy.write_bytes(b"\n".join(lines))
    return copy


def time_text():
    table(
        "LIBSVM and XMC text: scikit-learn's load_svmlight_file beside read",
        ["file", "MB", "scikit-learn", "1 thread", "ratio", "2 threads", "ratio", "MB/s", "floor"],
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, path in text_files(Path(folder)):
            copy = their_copy(path)
            read(path)  # compile
            theirs = one = two = floor = np.inf
            for _ in range(3):  # interleaved, so that a busy moment hits all
                seconds, peer = best_of(
                    lambda copy=copy: load_svmlight_file(str(copy), multilabel=True), 1
                )
                theirs = min(theirs, seconds)
                os.environ["DELTARANK_NUM_THREADS"] = "1"
                one = min(one, best_of(lambda path=path: read(path), 2)[0])
                os.environ["DELTARANK_NUM_THREADS"] = "2"
                seconds, ours = best_of(lambda path=path: read(path), 2)
                two = min(two, seconds)
                floor = min(floor, best_of(path.read_bytes, 3)[0])
            assert np.array_equal(ours.X.data, peer[0].data), "values differ"
            size = path.stat().st_size / 1e6
            row(
                name, f"{size:.0f}", f"{theirs:.3f} s", f"{one:.3f} s", f"{theirs / one:.1f}",
                f"{two:.3f} s", f"{theirs / two:.1f}", f"{size / two:.0f}", f"{floor:.3f} s",
            )  # fmt: skip


def time_memory():
    """Measure by VmHWM: ru_maxrss would start from the peak of this process, the parent."""
    table("Memory to read EUR-Lex 4K eight times over", ["text", "result", "peak above result"])
    code = (
        "import sys\n"
        "from deltarank.datasets import read\n"
        "def kib(name):\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith(name))\n"
        "read(sys.argv[1], first_feature=0)\n"
        "before = kib('VmRSS')\n"
        "data = read(sys.argv[2], first_feature=0)\n"
        "peak = kib('VmHWM') - before\n"
        "size = sum(a.nbytes for m in (data.X, data.Y) for a in (m.data, m.indices, m.indptr))\n"
        "print(size / 2**20, peak / 2**10 - size / 2**20)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        text = lzma.decompress((FOLDER / SETS["EUR-Lex 4K"]).read_bytes()).partition(b"\n")[2]
        small, large = Path(folder, "small.svm"), Path(folder, "large.svm")
        small.write_bytes(b"0 1:1\n")
        large.write_bytes(text * 8)
        found = subprocess.run(
            [sys.executable, "-c", code, str(small), str(large)],
            capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip
        row(f"{large.stat().st_size / 2**20:.0f} MiB", *(f"{float(v):.0f} MiB" for v in found))


def time_cache():
    table("Packed files", ["file", "unpack and parse", "from the cache", "ratio"])
    with tempfile.TemporaryDirectory() as folder:
        for name, packed in SETS.items():
            path = FOLDER / packed
            plain, _ = best_of(lambda path=path: read(path), 2)
            read(path, cache=folder)
            kept, _ = best_of(lambda path=path: read(path, cache=folder), 3)
            row(name, f"{plain:.3f} s", f"{kept:.3f} s", f"{plain / kept:.0f}")


def time_arff():
    table("ARFF", ["file", "MB", "scipy", "DeltaRank", "ratio"])
    for name in ("scene/scene-train.arff", "delicious/delicious-train.arff"):
        path = FOLDER / name
        read(path)
        ours, _ = best_of(lambda path=path: read(path), 3)
        size = path.stat().st_size / 1e6
        if name.startswith("delicious"):
            row(name, f"{size:.1f}", "cannot read sparse ARFF", f"{ours:.3f} s", "")
        else:
            theirs, _ = best_of(lambda path=path: arff.loadarff(path), 2)
            row(name, f"{size:.1f}", f"{theirs:.3f} s", f"{ours:.3f} s", f"{theirs / ours:.0f}")


SECTIONS = {"text": time_text, "memory": time_memory, "cache": time_cache, "arff": time_arff}


def main():
    for name in sys.argv[1:] or SECTIONS:
        SECTIONS[name]()


if __name__ == "__main__":
    main()
