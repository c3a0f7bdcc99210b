"""Experiments: each is a question, and rows that answer it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from deltarank.choices import choose

Row = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """A question and the rows that answer it; the same parameters give the same rows."""

    name: str
    question: str
    rows: Callable[[], Iterator[Row]]
    figure: Callable[[list[Row]], Any]


# Loaded by name, so that listing experiments costs nothing.
EXPERIMENTS = {"section4": "deltarank.experiments.section4"}


def find(name: str) -> Experiment:
    """Return an experiment by name."""
    experiment: Experiment = import_module(choose(EXPERIMENTS, name, "experiment")).EXPERIMENT
    return experiment
