"""Compare the speed of two versions of the library in one run.

    python benchmarks/guard.py BASE [HEAD] [--limit 1.25] [--record NAME]

BASE and HEAD are commits; without HEAD it is the working tree. Each is installed into an
environment of its own and runs the tasks once, uncounted, to compile its kernels. Then they run in
turn, base, head, base, head, so that a busy moment hits both; the best time of each counts. Exits
with status 1 if head is slower anywhere than the limit allows. With --record the times of head are
kept in `history.csv` under a name, such as a release.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HISTORY = ROOT / "benchmarks" / "history.csv"
TURNS = 3
ROWS = 8000
TASKS = r"""
import json, sys, tempfile, time, warnings
from pathlib import Path
import numpy as np
from scipy import sparse
import deltarank
from deltarank import AdaBoostMR, AdaBoostRanker, LogisticRanker, LogisticRankerCV
from deltarank import LogLinearRanker, rank_loss

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n, d, m = int(sys.argv[1]), 60, 50
X = rng.normal(size=(n, d)).astype(np.float32)
Y = (X @ rng.normal(size=(d, m)) / 4 + rng.logistic(size=(n, m)) > 2.5).astype(np.int8)
S = sparse.random_array((n, 2000), density=0.02, format="csr", rng=rng).astype(np.float32)
fitted = LogisticRanker().fit(X, Y)
scores = fitted.decision_function(X)
folder = Path(tempfile.mkdtemp())
deltarank.save(fitted, folder / "model.delta")
tasks = {
    "LogisticRanker, dense": lambda: LogisticRanker().fit(X, Y),
    "LogisticRanker, sparse": lambda: LogisticRanker(tol=1e-3).fit(S, Y),
    "LogisticRankerCV": lambda: LogisticRankerCV(Cs=[0.1, 1.0], cv=3, random_state=0).fit(X, Y),
    "AdaBoostRanker, 20 stumps": lambda: AdaBoostRanker(n_stumps=20).fit(X, Y),
    "AdaBoostMR, 50 rounds": lambda: AdaBoostMR(n_stumps=50).fit(X, Y),
    "LogLinearRanker, 20 updates": lambda: LogLinearRanker(n_iterations=20).fit(X, Y),
    "rank_loss": lambda: [rank_loss(Y, scores) for _ in range(20)],
    "rank, top 5": lambda: [fitted.rank(X, top=5) for _ in range(10)],
    "rank, one row": lambda: [fitted.rank(X[:1], top=5) for _ in range(2000)],
    "load": lambda: [deltarank.load(folder / "model.delta") for _ in range(20)],
}
found = {}
for name, task in tasks.items():
    task()
    times = []
    for _ in range(3):
        began = time.perf_counter()
        task()
        times.append(time.perf_counter() - began)
    found[name] = min(times)
print(json.dumps(found))
"""


def note(text):
    """Tell whoever waits how far it is."""
    print(f"{time.strftime('%X')} {text}", file=sys.stderr, flush=True)


def environment(source, folder, threads):
    """Install a source tree into a new environment, compile its kernels, return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(source)], check=True)
    note(f"installed {source}")
    measured(python, threads)
    note(f"compiled {source}")
    return python


def checked_out(commit, folder):
    """Return a copy of a commit's files."""
    folder.mkdir()
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit], check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def measured(python, threads):
    """Run the tasks once; return their times."""
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    variables |= {"DELTARANK_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    with tempfile.TemporaryDirectory() as elsewhere:
        command = [python, "-c", TASKS, str(ROWS)]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, env=variables, cwd=elsewhere
        )
    return json.loads(done.stdout)


def compare(base, head, threads):
    """Return the best times of both, task by task, taken in turn."""
    best = {}
    for turn in range(TURNS):
        for side, python in (("base", base), ("head", head)):
            note(f"turn {turn + 1} of {TURNS}: {side}")
            for task, spent in measured(python, threads).items():
                key = task, side
                best[key] = min(spent, best.get(key, spent))
    return best


def record(name, times):
    """Add times to the history, in place of those of the same name."""
    rows = []
    if HISTORY.exists():
        with HISTORY.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["version"] != name]
    rows += [{"version": name, "task": task, "seconds": f"{t:.5f}"} for task, t in times.items()]
    with HISTORY.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["version", "task", "seconds"])
        writer.writeheader()
        writer.writerows(rows)


def main():
    """Compare, print, and tell by the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("base")
    parser.add_argument("head", nargs="?")
    parser.add_argument(
        "--limit", type=float, default=1.25, help="head may take so many times base"
    )
    parser.add_argument("--threads", default="2")
    parser.add_argument("--record", metavar="NAME", help="keep the times of head in history.csv")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        trees = checked_out(options.base, folder / "base-tree"), ROOT
        if options.head:
            trees = trees[0], checked_out(options.head, folder / "head-tree")
        places = folder / "base", folder / "head"
        with ThreadPoolExecutor(2) as pool:
            pythons = list(pool.map(environment, trees, places, [options.threads] * 2))
        best = compare(*pythons, options.threads)
    tasks = list(dict.fromkeys(task for task, _ in best))
    print(f"| task | {options.base} | {options.head or 'working tree'} | head / base |")
    print("|---|---|---|---|")
    slower = []
    for task in tasks:
        before, now = best.get((task, "base")), best.get((task, "head"))
        ratio = now / before
        slower += [task] if ratio > options.limit else []
        print(f"| {task} | {1e3 * before:.1f} ms | {1e3 * now:.1f} ms | {ratio:.2f} |")
    if options.record:
        record(options.record, {task: best[task, "head"] for task in tasks})
    if slower:
        sys.exit(f"slower than {options.limit:g} times {options.base}: {', '.join(slower)}")


if __name__ == "__main__":
    main()
