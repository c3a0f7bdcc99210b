"""Run experiments, show what came out, and write a report."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from deltarank.cli.show import require_folder, show
from deltarank.core.files import write_whole
from deltarank.paper.experiments import EXPERIMENTS, Experiment, Row, Table, find
from deltarank.paper.experiments.presets import FULL, QUICK, Preset
from deltarank.paper.experiments.runner import run_jobs, versions
from deltarank.paper.experiments.tuning import ALGORITHMS, PATIENCE
from deltarank.paper.report.figures import to_svg
from deltarank.paper.report.page import Section, to_page
from deltarank.paper.report.tables import to_csv

TITLE = "Consistent multilabel ranking through univariate loss minimisation: the paper, redone"


def reproduce(names: Sequence[str], out: Path, *, full: bool, **changes: Any) -> None:
    """Run the named experiments, all by default; rows that are in `out` already are kept."""
    notes = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    given = {name: value for name, value in changes.items() if value is not None}
    preset = dataclasses.replace(FULL if full else QUICK, **given)
    experiments = [find(name) for name in names or EXPERIMENTS]
    require_folder(out)
    options = [
        f"--{name.removeprefix('n_')} "
        + (",".join(map(str, value)) if isinstance(value, tuple) else str(value))
        for name, value in given.items()
    ]
    command = " ".join(["deltarank reproduce", *names, *(["--full"] if full else []), *options])
    sections = [_set_up(preset, full, command)]
    for experiment in experiments:
        began = time.perf_counter()
        section = _run(experiment, preset, out, notes)
        spent = f"{time.perf_counter() - began:.0f} s"
        notes.print(f"{experiment.name}: {spent if section else 'no data found, left out'}")
        sections += [section] if section else []
    page = out / "report.html"
    write_whole(page, to_page(TITLE, sections))
    notes.print(f"wrote {page}")


def _run(experiment: Experiment, preset: Preset, out: Path, notes: Console) -> Section | None:
    jobs = experiment.jobs(preset)
    if not jobs:
        return None
    rows = run_jobs(
        experiment.answer,
        jobs,
        out / f"{experiment.name}.jsonl",
        title=experiment.name,
        cost=experiment.cost,
    )
    tables = experiment.tables(rows)
    for table in tables:
        show(table.rows, table.title)
        write_whole(out / f"{_file_name(experiment, table, tables)}.csv", to_csv(table.rows))
    figures = _draw(experiment, rows, out, notes)
    seconds = sum(row["seconds"] for row in rows)
    said = f"{len(rows)} rows, {seconds:.0f} s of computing on one core in all."
    shown = [(table.title, table.rows, table.note) for table in tables]
    findings = experiment.findings(rows)
    for finding in findings:
        notes.print(f"  {finding}")
    return Section(experiment.question, [*findings, said], shown, figures)


def _file_name(experiment: Experiment, table: Table, tables: list[Table]) -> str:
    number = tables.index(table)
    return experiment.name if number == 0 else f"{experiment.name}-{number + 1}"


def _draw(
    experiment: Experiment, rows: list[Row], out: Path, notes: Console
) -> list[tuple[str, bytes]]:
    try:
        drawn = {name: to_svg(figure) for name, figure in experiment.figures(rows).items()}
    except ImportError as error:
        notes.print(f"no figure: {error}")
        return []
    for name, svg in drawn.items():
        write_whole(out / f"{name}.svg", svg)
    return list(drawn.items())


def _set_up(preset: Preset, full: bool, command: str) -> Section:
    size = "the paper's protocol" if full else "a small version of the paper's protocol"
    grids = f"walked upwards until {PATIENCE:g} times the best number brings nothing better"
    return Section(
        "Set-up",
        [
            f"This is {size}, made by the command: {command}. The same command again gives the "
            "same rows; a run that was interrupted goes on where it stopped.",
            "Every parameter is chosen by cross-validation inside the training rows "
            f"({preset.folds} folds, spread evenly over labels), by rank loss; test rows decide "
            f"nothing. Grids: C {_listed(preset.Cs)}; stumps a label {_listed(preset.stumps)}; "
            f"shared rounds or updates {_listed(preset.rounds)}. Those of stumps, rounds and "
            f"updates are {grids}.",
            "What the paper leaves open and what was chosen: "
            f"{preset.n_labels} labels; N(0, 0.25) read as a variance, so a standard deviation of "
            f"{preset.noise:g}; training sizes {_listed(preset.sizes)}; the grids of "
            "rounds filled by 1, 2, 5; weights of mean 1, so that a penalty means the same on "
            "every data set.",
            "Algorithms. " + " ".join(f"{n}: {a.description}." for n, a in ALGORITHMS.items()),
        ],
        [("Versions", [versions()], "")],
    )


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
