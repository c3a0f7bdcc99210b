"""Rows on standard output: a table on a terminal, tab-separated in a pipe."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from deltarank.core.files import write_whole
from deltarank.paper.report.tables import to_json_lines, to_table, to_tsv


def terminal() -> Console:
    """Return a console that prints text literally: a label may look like markup or an emoji."""
    return Console(markup=False, emoji=False, highlight=False)


def show(rows: list[dict[str, Any]], title: str) -> None:
    """Print rows as a table on a terminal, tab-separated elsewhere."""
    if sys.stdout.isatty():
        terminal().print(to_table(rows, title))
    else:
        sys.stdout.write(to_tsv(rows))


def require_folder(out: Path) -> None:
    """Fail before the work, not after it, if results cannot be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out must name a folder; {out}: {error.strerror}") from None


def save_rows(
    name: str, rows: list[dict[str, Any]], draw: Callable[[Any], Any], out: Path
) -> list[Path]:
    """Write rows and their figure, where there is matplotlib; return the files."""
    from deltarank.paper.report.figures import to_svg

    table = out / f"{name}.jsonl"
    write_whole(table, to_json_lines(rows))
    try:
        figure = draw(rows)
    except ImportError as error:
        typer.echo(f"no figure: {error}", err=True)
        return [table]
    picture = out / f"{name}.svg"
    write_whole(picture, to_svg(figure))
    return [table, picture]
