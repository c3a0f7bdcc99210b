"""Text of others on its way to a terminal or a notebook."""

import re
from collections.abc import Iterable, Sequence
from html import escape

# Controls other than the end of a line and the tab, and what changes the direction of writing.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""Return text with control characters written out, so that names cannot command a terminal.

    Examples
    --------
    >>> visible("red\x1b[2Jtape")
    'red\\x1b[2Jtape'
    """
    return _HIDDEN.sub(lambda match: ascii(match[0])[1:-1], text)


def text_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows under a heading, in columns: the first to the left, numbers to the right.

    Examples
    --------
    >>> print(text_table(["label", "rows"], [["red", "7"], ["blue", "12"]]))
    label rows
    red      7
    blue    12
    """
    lines = [[visible(cell) for cell in line] for line in (heading, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = []
    for first, *numbers in lines:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
        shown.append(" ".join(cells).rstrip())
    return "\n".join(shown)


def notebook_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the same as a table in HTML, names as they are.

    Examples
    --------
    >>> notebook_table(["label", "rows"], [["<red>", "7"]])
    '<table><thead><tr><th style="text-align:left">label</th><th>rows</th></tr></thead><tbody><tr><td style="text-align:left">&lt;red&gt;</td><td>7</td></tr></tbody></table>'
    """  # noqa: E501

    def line(tag: str, cells: Sequence[str]) -> str:
        first, *numbers = (escape(cell) for cell in cells)
        others = "".join(f"<{tag}>{cell}</{tag}>" for cell in numbers)
        return f'<tr><{tag} style="text-align:left">{first}</{tag}>{others}</tr>'

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', heading)}</thead><tbody>{body}</tbody></table>"
