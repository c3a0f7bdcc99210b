"""Experiments: each is a question, jobs that are plain data, and rows that answer it."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from deltarank.core.choices import choose

if TYPE_CHECKING:
    from deltarank.paper.experiments.presets import Preset

Job = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows for people, with a title and what must be said beneath."""

    title: str
    rows: list[Row]
    note: str = ""


@dataclass(frozen=True)
class Experiment:
    """A question and how rows answer it; the same jobs give the same rows.

    Attributes
    ----------
    name, question : str
    jobs : callable
        ``preset -> list of jobs``, each all that is needed to redo a row.
    answer : callable
        ``answer(**job) -> rest of the row``; runs in a process of its own.
    tables : callable
        ``rows -> list of Table``: what the rows say.
    figures : callable
        ``rows -> {name: figure}``.
    findings : callable
        ``rows -> sentences``: the answer in words, and where it departs from the paper.
    cost : callable
        ``job -> about how long it takes``, in any unit.
    """

    name: str
    question: str
    jobs: Callable[["Preset"], list[Job]]
    answer: Callable[..., Row]
    tables: Callable[[list[Row]], list[Table]]
    figures: Callable[[list[Row]], dict[str, Any]]
    findings: Callable[[list[Row]], list[str]]
    cost: Callable[[Job], float] = lambda job: 1.0


# Loaded by name, so that listing experiments costs nothing.
EXPERIMENTS = {
    "section4": "deltarank.paper.experiments.section4",
    "figure1": "deltarank.paper.experiments.figure1",
    "boosting": "deltarank.paper.experiments.boosting",
    "table1": "deltarank.paper.experiments.table1",
    "table2": "deltarank.paper.experiments.table2",
}


def find(name: str) -> Experiment:
    """Return an experiment by name."""
    experiment: Experiment = import_module(choose(EXPERIMENTS, name, "experiment")).EXPERIMENT
    return experiment
