"""Saving and loading a model of 100 MB, beside joblib and the safetensors library.

Usage: ``python benchmarks/bench_storage.py``. Prints the best of several times, files in the page
cache. Ours checks every byte by SHA-256 and every number for being finite; the peers check neither.
The floor is the checksum alone.
"""

import hashlib
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
from safetensors.numpy import load_file, save_file

from deltarank import LogisticRanker, load, save


def best_of(function, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return f"{min(times) * 1e3:.0f} ms"


def main():
    ranker = LogisticRanker().fit([[0.0, 1.0], [1.0, 0.0]], np.eye(2, dtype=int))
    ranker.coef_ = np.random.default_rng(0).normal(size=(2, 12_500_000)).astype(np.float32)
    ranker.n_features_in_ = ranker.coef_.shape[1]
    with tempfile.TemporaryDirectory() as folder:
        ours, pickled, plain = (Path(folder, name) for name in ("ours", "joblib", "plain"))
        print("| what | save | load |\n|---|---|---|")
        saved = best_of(lambda: save(ranker, ours))
        print(f"| DeltaRank, checked | {saved} | {best_of(lambda: load(ours))} |")
        saved = best_of(lambda: joblib.dump(ranker, pickled))
        print(f"| joblib (pickle), unchecked | {saved} | {best_of(lambda: joblib.load(pickled))} |")
        saved = best_of(lambda: save_file({"coef_": ranker.coef_}, plain))
        print(f"| safetensors, unchecked | {saved} | {best_of(lambda: load_file(plain))} |")
        content = ours.read_bytes()
        floor = best_of(lambda: hashlib.sha256(content).digest())
        print(f"\n{len(content) / 1e6:.0f} MB; the checksum alone takes {floor}.")


if __name__ == "__main__":
    main()
