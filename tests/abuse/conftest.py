"""Faults and abuse: what was tried, refused, survived and lost, in one table at the end."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

COLUMNS = ("tried", "refused", "survived", "lost")


class Tally:
    """Counts of one case: each try is refused cleanly, survived unharmed, or lost."""

    def __init__(self, part, case):
        self.name = {"part": part, "case": case}
        self.counts, self.losses = Counter(), []

    def refused(self, n=1):
        self.counts["refused"] += n

    def survived(self, n=1):
        self.counts["survived"] += n

    def lost(self, why):
        self.counts["lost"] += 1
        self.losses.append(str(why))

    def judge(self, fine, why):
        """Count a try that must have survived."""
        self.survived() if fine else self.lost(why)

    def row(self):
        counts = {column: self.counts[column] for column in COLUMNS}
        return self.name | counts | {"tried": self.counts.total()}


@pytest.fixture
def tally(request):
    """Make a tally by its part and case; a test fails at its end if anything was lost."""
    tallies = []

    def begin(part, case):
        tallies.append(Tally(part, case))
        return tallies[-1]

    yield begin
    losses = [loss for found in tallies for loss in found.losses]
    request.node.user_properties += [("abuse", found.row()) for found in tallies]
    if losses:
        pytest.fail(f"{len(losses)} lost, such as:\n" + "\n".join(losses[:5]), pytrace=False)


def pytest_terminal_summary(terminalreporter):
    """Print the table; write it to the file that DELTARANK_ABUSE_REPORT names, if any."""
    rows = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "teardown"
        for name, value in report.user_properties
        if name == "abuse"
    ]
    if not rows:
        return
    rows.sort(key=lambda row: (row["part"], row["case"]))
    terminalreporter.section("faults and abuse")
    width = max(len(row["case"]) for row in rows)
    line = "{:<12} {:<" + str(width) + "} {:>8} {:>8} {:>8} {:>6}"
    terminalreporter.write_line(line.format("part", "case", *COLUMNS))
    total = {"part": "all", "case": ""} | {c: sum(row[c] for row in rows) for c in COLUMNS}
    for row in (*rows, total):
        terminalreporter.write_line(line.format(*row.values()))
    if report := os.environ.get("DELTARANK_ABUSE_REPORT"):
        Path(report).write_text(json.dumps(rows, indent=1) + "\n")
