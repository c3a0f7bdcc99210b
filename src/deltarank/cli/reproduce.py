"""The command ``reproduce``: run experiments, show what came out, and write a report."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deltarank.cli.options import numbers
from deltarank.core.files import write_whole
from deltarank.paper.experiments import EXPERIMENTS, Experiment, Row, Table, find
from deltarank.paper.report.figures import to_svg
from deltarank.paper.report.page import Section, to_page
from deltarank.paper.report.tables import to_csv

if TYPE_CHECKING:
    from rich.console import Console

    from deltarank.paper.experiments.presets import Preset

TITLE = "Consistent multilabel ranking through univariate loss minimisation: the paper, redone"


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(help=f"Parts of the paper, all by default: {', '.join(EXPERIMENTS)}."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the report, rows (.jsonl), tables and figures.")
    ] = Path("results"),
    full: Annotated[
        bool, typer.Option("--full", help="The paper's own sizes: hours instead of minutes.")
    ] = False,
    labels: Annotated[
        int | None, typer.Option(min=2, help="Labels of the models of Figure 1.")
    ] = None,
    noise: Annotated[float | None, typer.Option(help="Standard deviation of their noise.")] = None,
    models: Annotated[int | None, typer.Option(min=1, help="How many models.")] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Rows of their training sets, joined by commas.")
    ] = None,
    rounds: Annotated[
        str | None,
        typer.Option(help="Grid of rounds of AB.MR and AB.MH, and of updates of LLLR."),
    ] = None,
    stumps: Annotated[
        str | None, typer.Option(help="Grid of stumps per label, for WBR-AB.")
    ] = None,
    penalties: Annotated[
        str | None, typer.Option("--Cs", help="Grid of C of WBR-LR and BR.")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Folds of the cross-validation that tunes.")
    ] = None,
    datasets: Annotated[
        str | None,
        typer.Option(
            help="Data sets of Tables 1 and 2, joined by commas; by default the paper's that are "
            "here."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random.")] = None,
) -> None:
    """Redo the paper: run its experiments, print what they say and write a report.

    Rows are saved as they come. After an interruption, the same command resumes where it stopped.
    """
    changes = {
        "n_labels": labels,
        "noise": noise,
        "n_models": models,
        "sizes": numbers(sizes, "--sizes", int),
        "rounds": numbers(rounds, "--rounds", int),
        "stumps": numbers(stumps, "--stumps", int),
        "Cs": numbers(penalties, "--Cs", float),
        "folds": folds,
        "data_sets": _data_sets(datasets),
        "seed": seed,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    _run_all(experiments or [], out, full, given)


def _data_sets(text: str | None) -> tuple[str, ...] | None:
    """Read names of data sets; those that are named must be here."""
    if text is None:
        return None
    from deltarank.core.choices import choose
    from deltarank.datasets.catalogue import CATALOGUE
    from deltarank.datasets.fetch import VARIABLE, is_here

    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if not is_here(choose(CATALOGUE, name, "data set")):
            raise ValueError(
                f"--datasets: the files of {name} are not here; put them into the folder that "
                f"{VARIABLE} names, or run deltarank datasets fetch {name}"
            )
    return names


def _run_all(names: Sequence[str], out: Path, full: bool, given: dict[str, Any]) -> None:
    """Run the named experiments, all by default; rows that are in `out` already are kept."""
    from rich.console import Console

    from deltarank.cli.show import require_folder
    from deltarank.paper.experiments.presets import FULL, QUICK

    notes = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    preset = dataclasses.replace(FULL if full else QUICK, **given)
    experiments = [find(name) for name in names or EXPERIMENTS]
    require_folder(out)
    options = [
        f"--{name.removeprefix('n_').replace('data_sets', 'datasets')} "
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


def _run(experiment: Experiment, preset: "Preset", out: Path, notes: "Console") -> Section | None:
    """Run one experiment, print and write what its rows say, and return its part of the report."""
    from deltarank.cli.show import show
    from deltarank.paper.experiments.runner import run_jobs

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
    experiment: Experiment, rows: list[Row], out: Path, notes: "Console"
) -> list[tuple[str, bytes]]:
    try:
        drawn = {name: to_svg(figure) for name, figure in experiment.figures(rows).items()}
    except ImportError as error:
        notes.print(f"no figure: {error}")
        return []
    for name, svg in drawn.items():
        write_whole(out / f"{name}.svg", svg)
    return list(drawn.items())


def _set_up(preset: "Preset", full: bool, command: str) -> Section:
    """Say how the experiments are set up."""
    from deltarank.paper.experiments.algorithms import ALGORITHMS
    from deltarank.paper.experiments.runner import versions
    from deltarank.recipes import PATIENCE

    size = "the paper's protocol" if full else "a small version of the paper's protocol"
    grids = f"walked upwards until {PATIENCE:g} times the best number brings nothing better"
    return Section(
        "Set-up",
        [
            f"This is {size}, made by the command: {command}. The same command again gives the "
            "same rows; a run that was interrupted goes on where it stopped.",
            "Every parameter is chosen by cross-validation inside the training rows "
            f"({preset.folds} folds, spread evenly over labels), by rank loss; test rows decide "
            f"nothing. Grids: C {_listed(preset.Cs)}; stumps per label {_listed(preset.stumps)}; "
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
