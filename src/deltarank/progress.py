"""A progress bar with the time left, on a terminal; nothing in a pipe."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# A step that is over sooner needs no bar, and does not pay for loading one.
PATIENCE_S = 0.5


@contextmanager
def progress(title: str, total: float) -> Iterator[Callable[[float], None]]:
    """Give a function that says how much of `total` is done; draw it if that takes a while.

    Examples
    --------
    >>> with progress("reading", total=2) as done:
    ...     done(1)
    ...     done(2)
    """
    if not sys.stderr.isatty():
        yield lambda amount: None
        return
    began = time.monotonic()
    bar: Any = None
    task: Any = None

    def done(amount: float) -> None:
        nonlocal bar, task
        if bar is None and time.monotonic() - began > PATIENCE_S:
            bar = _bar()
            task = bar.add_task(title, total=total)
            bar.start()
        if bar is not None:
            bar.update(task, completed=amount)

    try:
        yield done
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def busy(title: str) -> Iterator[None]:
    """Show that something is going on, and since when, if nobody knows how long it will take.

    Examples
    --------
    >>> with busy("fitting"):
    ...     pass
    """
    if not sys.stderr.isatty():
        yield
        return
    bar: Any = None

    def show() -> None:
        nonlocal bar
        bar = _bar(known_end=False)
        bar.add_task(title, total=None)
        bar.start()

    timer = threading.Timer(PATIENCE_S, show)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if bar is not None:
            bar.stop()


def _bar(*, known_end: bool = True) -> Any:
    from rich import progress as rich_progress
    from rich.console import Console

    times = [rich_progress.TaskProgressColumn(), rich_progress.TimeRemainingColumn()]
    return rich_progress.Progress(
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        *(times if known_end else [rich_progress.TimeElapsedColumn()]),
        console=Console(stderr=True),
        transient=True,
    )
