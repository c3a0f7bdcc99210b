"""Rows as text: tab-separated for programs, a table for people."""

import csv
import io
import json
import math
from collections.abc import Iterable
from typing import Any

from deltarank.core.text import visible

Row = dict[str, Any]
# Characters that would end a cell or a line.
_ONE_CELL = str.maketrans("\t\n\r", "   ")


def cell(value: Any) -> str:
    r"""Write one value for a table.

    Examples
    --------
    >>> cell([0.5, -1.0]), cell(True), cell(0.025)
    ('0.5 -1', 'yes', '0.025')
    >>> cell("two\nlines")
    'two lines'
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return " ".join(cell(item) for item in value)
    return visible(str(value).translate(_ONE_CELL))


def with_error(value: float, error: float) -> str:
    """Write a value and its standard error, two digits of the error and as many of the value.

    Examples
    --------
    >>> with_error(0.0002512, 0.0000596), with_error(-0.5, 0.0), with_error(1.0, float("nan"))
    ('+0.000251 (standard error 0.000060)', '-0.5 (no error)', '+1 (no error)')
    """
    if not error > 0:
        return f"{value:+.2g} (no error)"
    digits = max(0, 1 - math.floor(math.log10(float(f"{error:.1e}"))))
    return f"{value:+.{digits}f} (standard error {error:.{digits}f})"


def to_tsv(rows: Iterable[Row]) -> str:
    """Write rows as tab-separated lines under a line of names.

    Examples
    --------
    >>> print(to_tsv([{"a": 1, "b": "x"}]), end="")
    a	b
    1	x
    """
    rows = list(rows)
    lines = [list(rows[0]), *([cell(value) for value in row.values()] for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


def to_json_lines(rows: Iterable[Row]) -> str:
    """Write rows as JSON, one per line."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def to_csv(rows: Iterable[Row]) -> str:
    """Write rows as comma-separated values under a line of names.

    Examples
    --------
    >>> print(to_csv([{"a": 1.5, "b": "x, y"}]), end="")
    a,b
    1.5,"x, y"
    """
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def to_table(rows: list[Row], title: str) -> Any:
    """Make a table for a terminal."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name, value in rows[0].items():
        is_number = isinstance(value, float) and not isinstance(value, bool)
        table.add_column(name, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(cell(value) for value in row.values()))
    return table
