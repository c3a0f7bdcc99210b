"""The command ``deltarank``."""

from deltarank.cli.app import main

__all__ = ["main"]
