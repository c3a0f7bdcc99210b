"""Ctrl-C that waits while it would be lost."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Hold an interrupt back until the end of the block.

    Code that Python calls back from C, as through ctypes, cannot pass an exception on: an interrupt
    there is printed and forgotten, and the program goes on. Only the main thread gets interrupts.
    """
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if is_main else None
    if not callable(handler):
        yield
        return
    held: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if held:
        handler(*held[-1])
