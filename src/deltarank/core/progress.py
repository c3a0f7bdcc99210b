"""How far a long step has come, for whoever listens, at no cost when nobody does.

Library code says ``with progress("boosting", total=n) as done`` and calls ``done`` as it goes. A
listener, such as the progress bar of the commands, hears of the outermost step only; steps inside
it fill in the part of it that they are.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

Hear = Callable[[float], None]
# Takes the title of a step; returns a function that takes the share done, from 0 to 1.
Listener = Callable[[str], AbstractContextManager[Hear]]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_current: ContextVar["Step | None"] = ContextVar("step", default=None)


class Step:
    """A step under way; call it with the amount done so far.

    Attributes
    ----------
    at : float
        How much of `total` is done.
    each : float
        How much of it every step begun inside counts for.
    """

    is_heard = True

    def __init__(self, total: float, hear: Hear) -> None:
        self.total, self._hear = max(total, 1e-300), hear
        self.at, self.each = 0.0, 0.0

    def __call__(self, amount: float) -> None:
        """Say how much is done so far."""
        self.at = amount
        self._hear(min(1.0, amount / self.total))

    def hear_inner(self, share: float) -> None:
        """Take in the share done of a step inside."""
        self._hear(min(1.0, (self.at + self.each * share) / self.total))

    @property
    def left(self) -> float:
        """How much is still to be done."""
        return max(0.0, self.total - self.at)


class _Silent(Step):
    """A step nobody hears of."""

    is_heard = False

    def __call__(self, amount: float) -> None:
        """Keep it to oneself."""
        self.at = amount


@contextmanager
def progress(title: str, total: float) -> Iterator[Step]:
    """Give a function that says how much of `total` is done.

    Examples
    --------
    >>> from contextlib import contextmanager
    >>> @contextmanager
    ... def printing(title):
    ...     yield lambda share: print(title, share)
    >>> with listening(printing), progress("reading", total=4) as done:
    ...     done(1)
    ...     done.each = 2
    ...     with progress("parsing", total=10) as parsed:
    ...         parsed(5)
    reading 0.25
    reading 0.5
    reading 0.75
    """
    listener, outer = _listener.get(), _current.get()
    if listener is None:
        yield _Silent(total, _ignore)
    elif outer is None:
        with listener(title) as hear, _inside(Step(total, hear)) as step:
            yield step
    else:
        with _inside(Step(total, outer.hear_inner)) as step:
            yield step
        outer(outer.at + outer.each)


@contextmanager
def _inside(step: Step) -> Iterator[Step]:
    outer = _current.get()
    _current.set(step)
    try:
        yield step
    finally:
        _current.set(outer)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Let somebody hear of the steps begun here, or nobody."""
    before = _listener.get()
    _listener.set(listener)
    try:
        yield
    finally:
        _listener.set(before)


def _ignore(share: float) -> None:
    pass
