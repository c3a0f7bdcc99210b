"""Run an experiment and show what came out."""

from pathlib import Path

import typer

from deltarank.cli.show import require_folder, save_rows, show
from deltarank.experiments import find


def reproduce(name: str, out: Path) -> None:
    """Print an experiment's rows (a table on a terminal, tab-separated in a pipe) and save them."""
    experiment = find(name)
    require_folder(out)
    rows = list(experiment.rows())
    show(rows, experiment.question)
    for path in save_rows(experiment.name, rows, experiment.figure, out):
        typer.echo(f"wrote {path}", err=True)
