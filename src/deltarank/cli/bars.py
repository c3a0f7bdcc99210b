"""A progress bar with the time left, on a terminal; nothing in a pipe."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from deltarank.core.progress import listening

# A step that ends sooner needs no bar, and should not pay for loading the library that draws it.
PATIENCE_S = 0.5
# Least time between two drawings of the bar: a round of boosting may take microseconds.
BETWEEN_S = 0.05


def bars() -> AbstractContextManager[None]:
    """Show the progress of long steps, if standard error is a terminal."""
    return listening(_bar if sys.stderr.isatty() else None)


def no_bars() -> AbstractContextManager[None]:
    """Keep bars out of what is being printed."""
    return listening(None)


@contextmanager
def _bar(title: str) -> Iterator[Callable[[float], None]]:
    """Draw a step that takes a while: first that it is running, then its progress."""
    drawn: Any = None
    furthest, shown_at = 0.0, 0.0

    def appear() -> None:
        nonlocal drawn
        bar = _new_bar()
        bar.add_task(title, total=None, left="")
        bar.start()
        drawn = bar

    def hear(share: float) -> None:
        nonlocal furthest, shown_at
        now = time.monotonic()
        furthest = max(furthest, share)
        if drawn is not None and furthest > 0 and now - shown_at > BETWEEN_S:
            drawn.update(0, total=1.0, completed=furthest, left="left")
            shown_at = now

    timer = threading.Timer(PATIENCE_S, appear)
    timer.daemon = True
    timer.start()
    try:
        yield hear
    finally:
        timer.cancel()
        timer.join()
        if drawn is not None:
            drawn.stop()


def _new_bar() -> Any:
    from rich import progress as rich_progress
    from rich.console import Console

    return rich_progress.Progress(
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.TaskProgressColumn(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
        transient=True,
    )
