"""Run jobs on all cores, one line of JSON per row as it comes; a killed run can be resumed.

A job is plain data, all that is needed to redo its row. Its row is the job, the answer, the time it
took and the versions it was made with.
"""

import json
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from deltarank.core import plugins
from deltarank.core.files import named_errors, write_whole
from deltarank.core.progress import progress
from deltarank.core.threads import n_threads

Job = dict[str, Any]
Row = dict[str, Any]
_VERSIONS_OF = ("deltarank", "numpy", "scipy", "scikit-learn", "numba")


def run_jobs(
    answer: Callable[..., Row],
    jobs: list[Job],
    path: Path,
    *,
    title: str = "running",
    cost: Callable[[Job], float] = lambda job: 1.0,
) -> list[Row]:
    """Return the rows of all jobs, in their order; rows already in the file are not made again.

    Parameters
    ----------
    answer : callable
        ``answer(**job)`` gives the rest of the row. Runs in worker processes, one thread each.
    jobs : list of dict
    path : path
        JSON lines. Rows are appended as they come, each forced to disk; in the end the file holds
        the rows of exactly these jobs, in order.
    title : str
        For the progress bar.
    cost : callable
        About how long a job takes, in any unit; long ones start first. Jobs that cost nothing
        are done here, without starting processes.
    """
    done = {_key(row, jobs): row for row in read_rows(path)}
    left = [job for job in jobs if _key(job, jobs) not in done]
    left.sort(key=cost, reverse=True)
    total = sum(map(cost, left))
    path.parent.mkdir(parents=True, exist_ok=True)
    with progress(title, total) as report:
        spent = 0.0
        for row in _answers(answer, left, total):
            _append(path, row)
            done[_key(row, jobs)] = row
            spent += cost(row)
            report(spent)
    rows = [done[_key(job, jobs)] for job in jobs]
    write_whole(path, "".join(json.dumps(row) + "\n" for row in rows))
    return rows


def _append(path: Path, row: Row) -> None:
    with named_errors(path), path.open("a") as file:
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file; a last line cut short by a crash is removed from the file."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows += [json.loads(line)] if line else []
        except ValueError:
            if number < len(lines):
                raise ValueError(
                    f"{path}, line {number}: not JSON; move the file away to start afresh"
                ) from None
    if lines[-1]:
        write_whole(path, "".join(json.dumps(row) + "\n" for row in rows))
    return rows


def _key(row: Row, jobs: list[Job]) -> str:
    """Return what identifies a job and its row: the values of the job's fields."""
    names = jobs[0] if jobs else row
    return json.dumps([row.get(name) for name in names])


def _answers(answer: Callable[..., Row], jobs: list[Job], total: float) -> Iterable[Row]:
    if len(jobs) < 2 or n_threads() == 1 or total == 0:
        return (make_row(answer, job) for job in jobs)
    pool = Parallel(n_threads(), return_as="generator_unordered", batch_size=1)
    with _ignoring_interrupts():
        rows: Iterable[Row] = pool(delayed(make_row)(answer, job) for job in jobs)
    return rows


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Let processes that are started here ignore Ctrl-C.

    This process handles it and ends them; otherwise each would print a traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def make_row(answer: Callable[..., Row], job: Job) -> Row:
    """Do one job."""
    plugins.import_announced()  # in a process that a command started
    began = time.perf_counter()
    answered = answer(**job)
    seconds = round(time.perf_counter() - began, 4)
    return {**job, **answered, "seconds": seconds, "versions": versions()}


def versions() -> dict[str, str]:
    """Return the versions that numbers may depend on."""
    libraries = {name: version(name) for name in _VERSIONS_OF}
    return {"python": platform.python_version(), **libraries}
