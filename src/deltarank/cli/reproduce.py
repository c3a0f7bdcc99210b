"""Run an experiment and show what came out."""

from pathlib import Path

from rich.console import Console

from deltarank.cli.show import show
from deltarank.experiments import Experiment, Row, find
from deltarank.files import write_whole
from deltarank.report.figures import to_svg
from deltarank.report.tables import to_json_lines


def reproduce(name: str, out: Path) -> None:
    """Print an experiment's rows (a table on a terminal, tab-separated in a pipe) and save them."""
    experiment = find(name)
    _require_folder(out)
    rows = list(experiment.rows())
    show(rows, experiment.question)
    notes = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    for path in _save(experiment, rows, out, notes):
        notes.print(f"wrote {path}")


def _require_folder(out: Path) -> None:
    """Find out before the work, not after it, that results cannot be kept."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out must name a folder; {out}: {error.strerror}") from None


def _save(experiment: Experiment, rows: list[Row], out: Path, notes: Console) -> list[Path]:
    table = out / f"{experiment.name}.jsonl"
    write_whole(table, to_json_lines(rows))
    try:
        figure = experiment.figure(rows)
    except ImportError as error:
        notes.print(f"no figure: {error}")
        return [table]
    picture = out / f"{experiment.name}.svg"
    write_whole(picture, to_svg(figure))
    return [table, picture]
