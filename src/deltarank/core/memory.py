"""How much memory work may take: what is free, a budget for working, and refusals before the work.

Work in blocks takes blocks that fit the budget; what cannot be cut, such as a model, is held
against what is free before the work begins.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

VARIABLE = "DELTARANK_MEMORY"
# Of what is free, unless the variable says otherwise: others want memory too.
SHARE = 3
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
# Where a system tells nothing.
UNKNOWN = 2**32


def budget() -> int:
    """Return the bytes a step may use for working: ``DELTARANK_MEMORY``, or a third of free."""
    text = os.environ.get(VARIABLE, "")
    return to_bytes(text, VARIABLE) if text else available() // SHARE


def to_bytes(text: str, name: str) -> int:
    """Read an amount of memory.

    Examples
    --------
    >>> to_bytes("1.5G", "--memory"), to_bytes("800 MB", "--memory")
    (1610612736, 838860800)
    """
    amount = re.fullmatch(r"\s*(\d+\.?\d*)\s*([kmgt]?)(i?b)?\s*", text, re.IGNORECASE)
    if amount is None or float(amount[1]) == 0:
        raise ValueError(f"{name} must be an amount of memory such as 800M or 4G; got {text!r}")
    return int(float(amount[1]) * UNITS[amount[2].lower()])


def in_words(n_bytes: float) -> str:
    """Return an amount of memory for people.

    Examples
    --------
    >>> in_words(1610612736), in_words(838860800), in_words(1000)
    ('1.5 GB', '800 MB', '0.977 kB')
    """
    unit, size = next((u for u in (("GB", 2**30), ("MB", 2**20)) if n_bytes >= u[1]), ("kB", 2**10))
    return f"{n_bytes / size:.3g} {unit}"


def require(n_bytes: float, work: str, way_out: str) -> None:
    """Refuse work that needs more memory than is free."""
    free = available()
    if n_bytes > free:
        raise MemoryError(
            f"{work} needs {in_words(n_bytes)} of memory, and {in_words(free)} are free; {way_out}"
        )


def require_cells(work: str, shape: tuple[int, ...], bytes_per_cell: float, way_out: str) -> None:
    """Refuse work that holds arrays of a number for each row and label where they do not fit."""
    n_rows, n_labels = shape
    what = f"{work} {n_rows} rows and {n_labels} labels"
    require(n_rows * n_labels * bytes_per_cell, what, way_out)


def available() -> int:
    """Return how many bytes this process may still take, by system, container and process."""
    return max(min(_limits(), default=UNKNOWN), 0)


def in_use() -> int:
    """Return how many bytes this process holds; 0 where the system does not tell."""
    with suppress(OSError, ValueError, KeyError):
        return _fields("/proc/self/status")["VmRSS"]
    return 0


def _limits() -> Iterator[int]:
    with suppress(OSError, ValueError, KeyError):
        yield _fields("/proc/meminfo")["MemAvailable"]
    for folder, limit, used in (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):  # also where the limit is "max"
            read = [int((Path(folder) / name).read_text()) for name in (limit, used)]
            yield read[0] - read[1]
    with suppress(ImportError, OSError, ValueError, KeyError):
        import resource

        limit_of_process = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit_of_process != resource.RLIM_INFINITY:
            yield limit_of_process - _fields("/proc/self/status")["VmSize"]


def _fields(path: str) -> dict[str, int]:
    """Return the amounts of memory that a file of the kernel lists, in bytes."""
    lines = (line.split() for line in Path(path).read_text().splitlines())
    return {words[0][:-1]: int(words[1]) * 2**10 for words in lines if words[-1] == "kB"}
