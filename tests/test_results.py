"""The results kept in docs/results are what the README and the site say they are."""

import csv
import json
import lzma
from pathlib import Path

import pytest

from deltarank.paper.experiments import find
from deltarank.paper.experiments.presets import FULL
from deltarank.paper.experiments.runner import read_rows
from deltarank.paper.report.tables import to_csv

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"


def rows_of(name):
    with lzma.open(RESULTS / f"{name}.jsonl.xz", "rt") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("name", ["figure1", "table2"])
def test_the_tables_follow_from_the_rows(name):
    for number, table in enumerate(find(name).tables(rows_of(name)), start=1):
        kept = RESULTS / (f"{name}.csv" if number == 1 else f"{name}-{number}.csv")
        assert kept.read_text() == to_csv(table.rows)


def test_the_rows_of_figure_1_are_those_of_the_full_protocol(tmp_path):
    path = tmp_path / "figure1.jsonl"
    path.write_bytes(lzma.decompress((RESULTS / "figure1.jsonl.xz").read_bytes()))
    jobs = find("figure1").jobs(FULL)
    found = read_rows(path)
    assert [{key: row[key] for key in job} for row, job in zip(found, jobs, strict=True)] == jobs


def test_the_readme_shows_table_2_as_it_is():
    with (RESULTS / "table2.csv").open(newline="") as file:
        table = list(csv.reader(file))
    readme = (ROOT / "README.md").read_text()
    for cells in table:
        assert f"| {' | '.join(cells)} |" in readme
