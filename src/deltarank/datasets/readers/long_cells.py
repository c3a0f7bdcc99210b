"""Cells of any length: the csv module's limit on them, which all threads share."""

import csv
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_n_readers = 0
_limit = 0


@contextmanager
def long_cells() -> Iterator[None]:
    """Lift the limit while anybody reads; the last to leave puts it back.

    Examples
    --------
    >>> before = csv.field_size_limit()
    >>> with long_cells(), long_cells():
    ...     pass
    >>> csv.field_size_limit() == before
    True
    """
    global _n_readers, _limit
    with _lock:
        if _n_readers == 0:
            _limit = csv.field_size_limit(sys.maxsize)
        _n_readers += 1
    try:
        yield
    finally:
        with _lock:
            _n_readers -= 1
            if _n_readers == 0:
                csv.field_size_limit(_limit)
