"""Ctrl-C at any moment: the command ends at once without a traceback, and nothing is half there."""

import json
import os
import random
import signal
import time

import pytest
from commands import SMALL, finish, group_is_gone, said_lines, signal_all, start, write_recipes

pytestmark = pytest.mark.slow
N_TRIES = 6
# Until then Python itself and its libraries are starting, and answer with a traceback of theirs.
LOADING_S = 1.5
# How long a command that is done may take to leave.
ENDING_S = 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipes")
    write_recipes(folder / "train.jsonl", 400)
    write_recipes(folder / "new.jsonl", 60_000, seed=1)
    finish("fit", folder / "train.jsonl", "--model", folder / "m.delta")
    return folder


def interrupted(counts, rng, *arguments, **streams):
    """Start, interrupt, wait; tell whether it was interrupted in time."""
    process = start(*arguments, **streams)
    time.sleep(LOADING_S + rng.uniform(0, 3))
    in_time = process.poll() is None
    signal_all(process, signal.SIGINT)
    began = time.monotonic()
    _, err = process.communicate(timeout=60)
    took = time.monotonic() - began
    # One that ends at once with status 0 was done when the signal came; one that goes on is lost.
    if not in_time or (process.returncode == 0 and took < ENDING_S):
        return False
    quick = took < 10
    quiet = "Traceback" not in err and len(said_lines(err)) <= 2
    fine = process.returncode not in (0, None) and quick and quiet and group_is_gone(process)
    counts.judge(fine, f"{arguments[0]}: status {process.returncode}, said {err[-500:]!r}")
    return True


def test_fit(tally, folder, tmp_path):
    counts, rng = tally("ctrl-c", "fit"), random.Random(0)
    options = ("--ranker", "adaboost-mr", "--rounds", "10000000", "--model", tmp_path / "m.delta")
    for _ in range(N_TRIES):
        interrupted(counts, rng, "fit", folder / "train.jsonl", *options)
        assert os.listdir(tmp_path) == []


def test_rank(tally, folder, tmp_path):
    counts, rng = tally("ctrl-c", "rank to a file"), random.Random(1)
    found = 0
    for attempt in range(N_TRIES):
        path = tmp_path / f"{attempt}.jsonl"
        with path.open("w") as out:
            in_time = interrupted(
                counts, rng, "rank", folder / "m.delta", folder / "new.jsonl", stdout=out
            )
        text = path.read_text()
        assert text == "" or text.endswith("\n"), "half a line was written"
        assert [json.loads(line)["row"] for line in text.splitlines()] == list(
            range(text.count("\n"))
        )
        found += in_time
    assert found


def test_reproduce(tally, tmp_path):
    counts, rng = tally("ctrl-c", "reproduce"), random.Random(2)
    path = tmp_path / "figure1.jsonl"
    for _ in range(N_TRIES):
        interrupted(
            counts,
            rng,
            "reproduce",
            "figure1",
            "--out",
            tmp_path,
            *SMALL,
            "--seed",
            rng.randrange(10**6),
        )
        assert all(not name.startswith(".") for name in os.listdir(tmp_path))
        if path.exists():
            for line in path.read_text().splitlines():
                json.loads(line)
