"""One thread pool for the kernels: they release the GIL, so Python threads suffice."""

import mmap
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import joblib

T = TypeVar("T")
# A thread's stack, and what Python needs to start it.
BYTES_PER_THREAD = 16 << 20

_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_pool_lock = threading.Lock()
_inside = threading.local()


def n_threads() -> int:
    """Return how many threads a pass may use.

    ``DELTARANK_NUM_THREADS`` if set, else ``OMP_NUM_THREADS`` (which joblib sets in its worker
    processes, so that nested parallelism does not oversubscribe), else the cores this process may
    use.
    """
    for variable in ("DELTARANK_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(variable, "")
        if text.isdigit() and int(text) > 0:
            return int(text)
    return _n_cores()


@lru_cache(maxsize=1)
def _n_cores() -> int:
    """Return the cores this process may use, by affinity and container limits."""
    return int(joblib.cpu_count())  # reads files of the system: not for a hot loop


def row_blocks(n_rows: int, rows_per_block: int) -> list[slice]:
    """Cut ``range(n_rows)`` into consecutive slices of at most ``rows_per_block`` rows.

    Examples
    --------
    >>> row_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [
        slice(start, min(start + rows_per_block, n_rows))
        for start in range(0, n_rows, rows_per_block)
    ]


def even_parts(n_rows: int, least_rows: int) -> list[slice]:
    """Cut ``range(n_rows)`` into 1, 2, 4, ... or 32 parts of about ``least_rows`` rows or more.

    However many threads there are, the parts are the same, and so are sums over them to the last
    bit; powers of two keep two, four or eight threads busy to the end.

    Examples
    --------
    >>> even_parts(10, 2)
    [slice(0, 3, None), slice(3, 6, None), slice(6, 9, None), slice(9, 10, None)]
    """
    n_parts = 2 ** min(5, max(0, (n_rows // least_rows).bit_length() - 1))
    return row_blocks(n_rows, max(1, -(-n_rows // n_parts)))


def run(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run the tasks on the pool and return their results in order.

    A task that itself calls `run` gets its tasks run in place: waiting for its own pool could
    wait for ever.
    """
    if len(tasks) < 2 or n_threads() == 1 or getattr(_inside, "a_task", False):
        return [task() for task in tasks]
    pool = _shared_pool()
    return [task() for task in tasks] if pool is None else list(pool.map(_run_inside, tasks))


def _run_inside(task: Callable[[], T]) -> T:
    _inside.a_task = True
    try:
        return task()
    finally:
        _inside.a_task = False


def _shared_pool() -> ThreadPoolExecutor | None:
    """Return the pool; None where there is no room for its threads."""
    global _pool, _pool_size
    with _pool_lock:
        if _pool is None or _pool_size != n_threads():
            if not _is_room(n_threads()):
                return None
            _pool_size = n_threads()
            _pool = ThreadPoolExecutor(_pool_size, thread_name_prefix="deltarank")
        return _pool


def _is_room(n_new: int) -> bool:
    """Tell whether this many threads can start: Python waits for ever for one that cannot."""
    try:
        mmap.mmap(-1, n_new * BYTES_PER_THREAD).close()
    except OSError:
        return False
    return True


def _forget_pool() -> None:
    """Drop the pool in a forked child, where its threads do not exist."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
