"""Kill -9 at any moment: what was done stays done, and a second run ends where the first would."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from commands import SMALL, finish, signal_all, start

from deltarank import LogisticRanker, save
from test_experiments import without_times
from test_storage import KILL_SAVERS, MARKS, X

pytestmark = pytest.mark.slow
N_FIT_KILLS = 30
N_RUN_KILLS = 4
FITTED = ("coef_", "intercept_", "n_iter_", "objective_", "converged_", "prune_effect_")

# A fit that keeps its blocks is killed again and again, at first early, and at last let be.
KILL_FITS = """
import os, random, signal, sys, time
from deltarank.linear.rows.local import LocalRows
from deltarank import LogisticRanker
from deltarank.datasets import long_tailed

LocalRows.bytes_per_block = 6 * 1201 * 144
X, Y = long_tailed(800, 1200, 90, random_state=0)
options = dict(C=10.0, prune=0.1)
began = time.perf_counter()
whole = LogisticRanker(**options).fit(X, Y)
whole = LogisticRanker(**options).fit(X, Y)
spent = time.perf_counter() - began
names, n_kills, folders = sys.argv[1].split(), int(sys.argv[2]), sys.argv[3:]
rng = random.Random(0)

def same(a, b):
    return (a != b).nnz == 0 if hasattr(a, "nnz") else (a == b).all()

for folder in folders:
    for _ in range(n_kills // len(folders)):
        child = os.fork()
        if child == 0:
            LogisticRanker(**options, checkpoint=folder).fit(X, Y)
            os._exit(0)
        time.sleep(rng.uniform(0, spent / 8))
        os.kill(child, signal.SIGKILL)
        was_killed = os.waitpid(child, 0)[1] == signal.SIGKILL
        files = os.listdir(folder) if os.path.isdir(folder) else []
        blocks = sum(name.startswith("block-") for name in files)
        print("kill", was_killed, blocks, sum(name.startswith(".") for name in files), flush=True)
    resumed = LogisticRanker(**options, checkpoint=folder).fit(X, Y)
    print("end", all(same(getattr(resumed, n), getattr(whole, n)) for n in names), flush=True)
"""


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_a_killed_save_leaves_the_old_model_or_the_new(tally, tmp_path):
    counts = tally("kill -9", "save")
    ranker = LogisticRanker().fit(X[:, :2], MARKS)
    ranker.coef_ = ranker.coef_.repeat(200_000, axis=1) * 0
    ranker.n_features_in_ = ranker.coef_.shape[1]
    save(ranker, tmp_path / "model")
    for script in (KILL_SAVERS, KILL_SAVERS.replace("default_rng(0)", "default_rng(1)")):
        for litter, *values in run(script, tmp_path / "model"):
            counts.judge(len(values) == 1 and int(litter) <= 1, f"{litter} left, holds {values}")


def test_a_killed_fit_goes_on_to_the_same_coefficients(tally, tmp_path):
    counts = tally("kill -9", "fit with checkpoint")
    folders = [tmp_path / str(i) for i in range(2)]
    before = 0
    for word, *found in run(KILL_FITS, " ".join(FITTED), N_FIT_KILLS, *folders):
        if word == "end":
            counts.judge(found == ["True"], "the resumed fit ends elsewhere")
            before = 0
            continue
        blocks, litter = int(found[1]), int(found[2])
        counts.judge(blocks >= before and litter <= 2, f"{before} blocks, then {blocks}; {litter}")
        before = blocks
    for folder in folders:
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def whole_lines(path):
    """Return the rows of a file that may just be growing."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def test_a_killed_experiment_ends_with_the_rows_of_one_that_was_not(tally, tmp_path):
    counts = tally("kill -9", "reproduce")
    started = time.monotonic()
    finish("reproduce", "figure1", "--out", tmp_path / "plain", *SMALL)
    spent = time.monotonic() - started
    rng, before, path = random.Random(0), [], tmp_path / "killed" / "figure1.jsonl"
    for _ in range(N_RUN_KILLS):
        process = start("reproduce", "figure1", "--out", path.parent, *SMALL)
        time.sleep(rng.uniform(0.2, 0.8) * spent)
        signal_all(process, signal.SIGKILL)
        process.communicate(timeout=60)
        after = whole_lines(path)
        kept = all(row in after for row in before)
        counts.judge(kept, f"{len(before)}, then {len(after)} rows")
        before = after
    finish("reproduce", "figure1", "--out", path.parent, *SMALL)
    rows, expected = (whole_lines(tmp_path / n / "figure1.jsonl") for n in ("killed", "plain"))
    counts.judge(without_times(rows) == without_times(expected), "other rows in the end")
    assert not [name for name in os.listdir(path.parent) if name.startswith(".")]
