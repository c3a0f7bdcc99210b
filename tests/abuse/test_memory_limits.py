"""Too little memory is a MemoryError, or an answer that is right; never a crash.

Each try is a process forked from one that has everything loaded, with room for a little more.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from commands import start, told, write_recipes

pytestmark = pytest.mark.slow
TRIES = Path(__file__).with_name("starving.py")
WORK = ("fit, dense", "fit, sparse", "fit, boosted", "read, text", "read, table", "load", "rank")


@pytest.mark.parametrize("work", WORK)
def test_little_memory_is_an_error_or_enough(tally, tmp_path, work):
    counts = tally("memory", work)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(TRIES), work, str(tmp_path)],
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for room, outcome in json.loads(done.stdout.splitlines()[-1]):
        if outcome == "refused":
            counts.refused()
        else:
            counts.judge(outcome == "survived", f"{room} MB: {outcome}")
    assert counts.counts["survived"], "memory was never enough, so nothing was tested"


def test_the_command_says_so_in_a_line(tally, tmp_path):
    counts = tally("memory", "deltarank fit")
    write_recipes(tmp_path / "rows.jsonl", 250_000)
    few = dict.fromkeys(("DELTARANK_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2")
    # Enough to load all libraries, so that it is the rows that find no room.
    for megabytes in (950, 1000, 2000):
        limit = megabytes << 20
        process = start(
            "fit", tmp_path / "rows.jsonl", "--model", tmp_path / "m.delta",
            env={**os.environ, **few},
            preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_AS, (n, n)),
        )  # fmt: skip
        _, err = process.communicate(timeout=120)
        if process.returncode == 0:
            counts.survived()
            (tmp_path / "m.delta").unlink()
        elif process.returncode == 1 and told(err) and "memory" in err:
            counts.refused()
        else:
            counts.lost(f"{megabytes} MB: {process.returncode} {err[-300:]}")
    assert counts.counts["refused"], "memory was never too little, so nothing was tested"
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]
