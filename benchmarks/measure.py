"""What the benchmarks share: two threads for everyone, the best time of several, tables, sections.

A script ends in ``run_sections(first, second)``, functions of its own that print tables, and
``python benchmarks/bench_x.py first`` then runs one of them.

The environment variable DELTARANK_BENCH_SCALE, 1 by default, shrinks what is measured: at 0.001
made-up data, repeats and seconds are a thousandth, or the least that still works, and made-up data
stand in for real ones. Every section then runs in seconds, which shows that it runs; its figures
mean nothing.
"""

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from math import inf, log
from multiprocessing import get_context
from pathlib import Path
from statistics import linear_regression

from threadpoolctl import threadpool_limits

THREADS = 2
SCALE = float(os.environ.get("DELTARANK_BENCH_SCALE", "1"))


class LeftOut(SystemExit):
    """A section, or a whole script, lacks what it needs; the message says what."""


def scaled(size, least=1):
    """Return a size, a number of repeats or of seconds times the scale, but not below the least."""
    return max(type(size)(SCALE * size), min(size, least))


def extra(name, module):
    """Import a module that comes with an extra of ours, or say how to install that."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise LeftOut(f"needs {error.name}: pip install 'deltarank[{name}]'") from None


def timed(function, repeats=1):
    """Return the best time of several and the last result."""
    best = inf
    for _ in range(scaled(repeats)):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def table(title, head):
    """Start a table."""
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)


def row(*cells):
    """Print a row of it."""
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def seconds(value):
    """Write a time with the digits it deserves."""
    if value < 0.1:
        return f"{1e3 * value:.1f} ms"
    return f"{value:.3f} s" if value < 10 else f"{value:.1f} s"


def exponent(sizes, times):
    """Return the slope of log time over log size."""
    return linear_regression([log(size) for size in sizes], [log(spent) for spent in times]).slope


def memory_kb(what):
    """Return a size of this process in kB: ``VmRSS`` now, ``VmHWM`` at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(what)))


def reset_peak():
    """Let the peak start again from now; a child's would start at its parent's."""
    Path("/proc/self/clear_refs").write_text("5")


def in_own_process(function, *arguments, **options):
    """Return what a function returns in a fresh process, whose memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **options).result()


def run_sections(*sections, threads=THREADS):
    """Run the sections named on the command line, all by default, with two threads.

    Those that lack an extra, real data or a device are left out, and the script fails in the end.
    With ``threads=None`` everyone takes as many as there are.
    """
    known = {section.__name__: section for section in sections}
    for name in sys.argv[1:]:
        if name not in known:
            sys.exit(f"unknown section {name!r}; choose from {', '.join(known)}")
    left_out = []
    for name in sys.argv[1:] or known:
        if threads is not None:
            os.environ["DELTARANK_NUM_THREADS"] = str(threads)
        try:
            with threadpool_limits(threads):
                known[name]()
        except LeftOut as reason:
            left_out.append(f"{name} left out: {reason}")
    if left_out:
        sys.exit("\n".join(left_out))
