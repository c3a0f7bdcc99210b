"""Rows on standard output: a table on a terminal, tab-separated in a pipe."""

import sys
from typing import Any

from rich.console import Console

from deltarank.report.tables import to_table, to_tsv


def show(rows: list[dict[str, Any]], title: str) -> None:
    """Print rows for whoever reads them."""
    if sys.stdout.isatty():
        Console().print(to_table(rows, title))
    else:
        sys.stdout.write(to_tsv(rows))
