"""Modules of one's own that the commands import, here and in the processes they start."""

import os
from collections.abc import Iterable
from importlib import import_module

VARIABLE = "DELTARANK_PLUGINS"


def announce(names: Iterable[str]) -> None:
    """Tell the processes that are started from here which modules to import."""
    os.environ[VARIABLE] = " ".join(names)


def import_announced() -> None:
    """Import the modules that were announced; what is imported already costs nothing."""
    for name in os.environ.get(VARIABLE, "").split():
        import_module(name)
