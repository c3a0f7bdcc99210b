"""Saving and loading a model of 100 MB, beside joblib and the safetensors library.

Usage: ``python benchmarks/bench_storage.py``. Prints the best of several times, files in the page
cache. Ours checks every byte by SHA-256 and every number for being finite; the peers check neither.
The floor is the checksum alone.
"""

import hashlib
import tempfile
from pathlib import Path

import joblib
import numpy as np

from deltarank import LogisticRanker, load, save
from measure import extra, row, run_sections, scaled, seconds, table, timed

safetensors = extra("test", "safetensors.numpy")
REPEATS = 5


def files():
    """Save and load, and compute the checksum alone."""
    ranker = LogisticRanker().fit([[0.0, 1.0], [1.0, 0.0]], np.eye(2, dtype=int))
    n_features = scaled(12_500_000, 1000)
    ranker.coef_ = np.random.default_rng(0).normal(size=(2, n_features)).astype(np.float32)
    ranker.n_features_in_ = n_features
    with tempfile.TemporaryDirectory() as folder:
        ours, pickled, plain = (Path(folder, name) for name in ("ours", "joblib", "plain"))
        ways = {
            "DeltaRank, checked": (lambda: save(ranker, ours), lambda: load(ours)),
            "joblib (pickle), unchecked": (
                lambda: joblib.dump(ranker, pickled),
                lambda: joblib.load(pickled),
            ),
            "safetensors, unchecked": (
                lambda: safetensors.save_file({"coef_": ranker.coef_}, plain),
                lambda: safetensors.load_file(plain),
            ),
        }
        table("A model saved and loaded", ["what", "save", "load"])
        for name, (write, read) in ways.items():
            row(name, seconds(timed(write, REPEATS)[0]), seconds(timed(read, REPEATS)[0]))
        content = ours.read_bytes()
        floor, _ = timed(lambda: hashlib.sha256(content).digest(), REPEATS)
        print(f"\n{len(content) / 1e6:.0f} MB; the checksum alone takes {seconds(floor)}.")


if __name__ == "__main__":
    run_sections(files)
