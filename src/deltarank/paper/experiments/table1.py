"""Are the data sets those of the paper?"""

from typing import Any

from deltarank.datasets import CATALOGUE, statistics
from deltarank.datasets.fetch import is_here
from deltarank.paper.experiments import Experiment, Job, Row, Table
from deltarank.paper.experiments.presets import Preset
from deltarank.paper.experiments.published import TABLE1, TABLE1_COLUMNS


def jobs(preset: Preset) -> list[Job]:
    """List one job per data set at hand."""
    return [{"data set": name} for name in preset.data_sets if is_here(CATALOGUE[name])]


def answer(**job: Any) -> Row:
    """Count one data set from its files."""
    counted = statistics(job["data set"])
    return {column: counted[column] for column in TABLE1_COLUMNS}


def tables(rows: list[Row]) -> list[Table]:
    """Put our counts beside the paper's."""
    lines = []
    for row in rows:
        printed = TABLE1.get(row["data set"], (None,) * len(TABLE1_COLUMNS))
        line: Row = {"data set": row["data set"]}
        for column, theirs in zip(TABLE1_COLUMNS, printed, strict=True):
            ours = row[column]
            same = theirs is None or round(float(ours), 2) == theirs
            line[column] = f"{ours:g}" if same else f"{ours:.4g} (paper: {theirs:g})"
        lines.append(line)
    note = "Counted from the files; the paper's figure stands beside ours where they differ."
    return [Table("Table 1", lines, note)] if lines else []


def figures(rows: list[Row]) -> dict[str, Any]:
    """Draw nothing."""
    return {}


def findings(rows: list[Row]) -> list[str]:
    """Name the data sets that differ from the paper's."""
    if not any(row["data set"] in TABLE1 for row in rows):
        return []
    differing = [line["data set"] for line in tables(rows)[0].rows if "paper" in str(line)]
    if not differing:
        return ["All counts are those of the paper."]
    return [f"Counts are those of the paper but for {', '.join(differing)}."]


EXPERIMENT = Experiment("table1", __doc__, jobs, answer, tables, figures, findings, lambda job: 0.0)
