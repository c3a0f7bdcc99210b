"""The results kept in docs/results are what the README and the site say they are."""

import csv
import io
import itertools
import json
import lzma
import statistics
from pathlib import Path

import pytest

from deltarank.paper.experiments import find
from deltarank.paper.experiments.boosting_arms import ARMS
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
            # Last digits are those of the NumPy that added; small differences are of large sums.
            assert old == new or abs(float(old) - float(new)) <= 1e-11


def test_the_table_of_boosting_follows_from_its_rows():
    regrets = {}
    for row in rows_of("boosting"):
        assert row["n_rows"] == 16_000
        regrets.setdefault((row["arm"], row["case"]), []).append(row["regret"])
    with (RESULTS / "boosting.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [line["arm"] for line in table] == list(ARMS)
    for line in table:
        for case in ("independent", "dependent"):
            values = regrets.get((line["arm"], case), [])
            error = statistics.stdev(values) / len(values) ** 0.5 if values else 0
            told = f"{statistics.mean(values):.6f} ± {error:.6f} ({len(values)})" if values else ""
            assert line[case] == told


def test_what_is_said_of_boosters_follows_from_their_rows():
    rows = rows_of("boosting")

    def gap(case, ones, others):
        regrets = {(r["arm"], r["model"]): r["regret"] for r in rows if r["case"] == case}
        models = [m for m in range(10) if all((arm, m) in regrets for arm in (*ones, *others))]
        return statistics.mean(
            statistics.mean(regrets[one, m] - regrets[other, m] for m in models)
            for one, other in zip(ones, others, strict=True)
        )

    def arms(losses, stumps, step):
        axes = itertools.product(losses, stumps, ("entropy", "error", "z"))
        return [f"{loss}, {whose}, {criterion}, {step}" for loss, whose, criterion in axes]

    text = (RESULTS / "index.md").read_text()
    losses, single, pairs = ("univariate", "pairwise"), ["univariate"], ["pairwise"]
    stumps, shared, own = ("own", "shared"), ["shared"], ["own"]
    for case, ones, others, told in [
        ("independent", arms(single, shared, 1), arms(pairs, shared, 1), "-0.000006 ("),
        ("independent", arms(single, own, 1), arms(pairs, own, 1), "0.00038 ("),
        ("independent", arms(pairs, own, 0.1), arms(single, own, 0.1), "0.00013 ("),
        ("independent", arms(losses, own, 1), arms(losses, shared, 1), "0.00101 ("),
        ("independent", arms(losses, own, 0.1), arms(losses, shared, 0.1), "0.00070 ("),
        ("independent", arms(losses, stumps, 1), arms(losses, stumps, 0.1), "0.00140 ("),
        ("independent", ["WBR-AB, at most 200"], ["WBR-AB, 256 bins"], "0.00119"),
        ("independent", ["AB.MR, at most 20"], ["WBR-AB, at most 200"], "0.0026 ("),
        ("dependent", ["AB.MR, 256 bins"], ["AB.MH, 256 bins"], "0.00075"),
    ]:
        number = told.removesuffix(" (")
        digits = len(number.split(".")[1])
        assert f"{gap(case, ones, others):.{digits}f}" == number
        assert told in text


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
