"""What the benchmarks share: two threads for everyone, the best time of several, tables."""

import os
import time
from pathlib import Path

import numpy as np

THREADS = 2


def timed(function, repeats=1):
    """Return the best time of several and the last result."""
    best = np.inf
    for _ in range(repeats):
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
    return np.polyfit(np.log(sizes), np.log(times), 1)[0]


def memory_kb(what):
    """Return a size of this process in kB: ``VmRSS`` now, ``VmHWM`` at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(what)))


def reset_peak():
    """Let the peak start again from now; a child's would start at its parent's."""
    Path("/proc/self/clear_refs").write_text("5")


def run_sections(sections, names):
    """Run the named sections, all by default, with two threads."""
    os.environ["DELTARANK_NUM_THREADS"] = str(THREADS)
    for name in names or sections:
        sections[name]()
