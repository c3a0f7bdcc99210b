"""The results kept in docs/results are what the README and the site say they are."""

import csv
import io
import json
import lzma
from pathlib import Path

import pytest

from deltarank.paper.experiments import find
from deltarank.paper.experiments.figure1_limits import MINIMISERS
from deltarank.paper.experiments.presets import FULL
from deltarank.paper.experiments.runner import read_rows
from deltarank.paper.report.tables import to_csv

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"


def rows_of(name):
    with lzma.open(RESULTS / f"{name}.jsonl.xz", "rt") as file:
        return [json.loads(line) for line in file]


def cells_of(table):
    """Return all cells of a CSV text, and the lengths of its rows."""
    rows = list(csv.reader(io.StringIO(table)))
    return [cell for row in rows for cell in row] + [str(len(row)) for row in rows]


@pytest.mark.parametrize("name", ["figure1", "table2"])
def test_the_tables_follow_from_the_rows(name):
    for number, table in enumerate(find(name).tables(rows_of(name)), start=1):
        kept = RESULTS / (f"{name}.csv" if number == 1 else f"{name}-{number}.csv")
        for old, new in zip(cells_of(kept.read_text()), cells_of(to_csv(table.rows)), strict=True):
            # Last digits are those of the NumPy that added.
            assert old == new or abs(float(old) - float(new)) <= 1e-12 * abs(float(old))


NEW = ("seeding", "bins", "patience")


def test_the_rows_of_figure_1_are_those_of_the_full_protocol(tmp_path):
    path = tmp_path / "figure1.jsonl"
    path.write_bytes(lzma.decompress((RESULTS / "figure1.jsonl.xz").read_bytes()))
    found = read_rows(path)
    # Rows from before streams were spawned do not say how they were seeded, nor have limits; their
    # stumps had 256 bins.
    spawned = "seeding" in found[0]
    jobs = [
        {key: value for key, value in job.items() if spawned or key not in NEW}
        for job in find("figure1").jobs(FULL)
        if spawned or job["algorithm"] not in MINIMISERS
    ]
    assert [{key: row[key] for key in job} for row, job in zip(found, jobs, strict=True)] == jobs


def test_the_readme_shows_table_2_as_it_is():
    with (RESULTS / "table2.csv").open(newline="") as file:
        table = list(csv.reader(file))
    readme = (ROOT / "README.md").read_text()
    for cells in table:
        assert f"| {' | '.join(cells)} |" in readme
