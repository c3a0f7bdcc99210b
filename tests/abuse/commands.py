"""The command in processes that are limited, interrupted or killed."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from deltarank import datasets

COMMAND = str(Path(sys.executable).parent / "deltarank")
# Two hundred rows of an experiment in seconds.
SMALL = ("--models", "2", "--sizes", "60,120", "--rounds", "10,20", "--stumps", "10",
         "--Cs", "0.1,1", "--labels", "5", "--folds", "2")  # fmt: skip


def start(*arguments, **options):
    """Start the command in a group of its own, as a terminal does."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen([COMMAND, *map(str, arguments)], start_new_session=True, **streams)


def finish(*arguments):
    """Run the command; it must succeed."""
    process = start(*arguments)
    _, err = process.communicate(timeout=200)
    assert process.returncode == 0, err


def signal_all(process, number):
    """Send a signal to the command and to its workers, if they have not ended by themselves."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def group_is_gone(process, seconds=10.0):
    """Wait for the workers of a command that is over; tell whether all are."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    return False


def write_recipes(path, n_rows, seed=0):
    """Write made-up recipes with tags as JSON lines."""
    rows = datasets.example_rows(n_rows, seed=seed)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def said_lines(err):
    """Return what a command said, without the notes of `fit` on how columns were read."""
    return [line for line in err.strip().splitlines() if not line.startswith("column ")]


def told(err):
    """Tell whether an error is one line for people."""
    return "Traceback" not in err and len(said_lines(err)) == 1
