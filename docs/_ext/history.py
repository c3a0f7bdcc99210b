"""A directive: the times of `benchmarks/history.csv`, a column a release, and how they went on."""

import csv
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HISTORY = Path(__file__).parents[2] / "benchmarks" / "history.csv"
FIGURE = "generated/history.svg"
NOTHING = "No release has been measured yet: `python benchmarks/guard.py BASE --record NAME` does."

Times = dict[str, dict[str, float]]


class ReleaseHistory(SphinxDirective):
    """Seconds of each task in each release; a figure where there is more than one release."""

    def run(self) -> list[nodes.Node]:
        """Return the table, and the figure."""
        self.env.note_dependency(str(HISTORY))
        times = read_times(HISTORY) if HISTORY.exists() else {}
        if not times:
            return self.parse_text_to_nodes(NOTHING)
        found = self.parse_text_to_nodes(to_table(times))
        if len(times) > 1:
            draw(times, Path(self.env.srcdir, FIGURE))
            found.append(nodes.image(uri=FIGURE, alt="Times of each task, release by release"))
        return found


def read_times(path: Path) -> Times:
    """Return seconds by version and task, versions in the order of the file."""
    times: Times = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            times.setdefault(row["version"], {})[row["task"]] = float(row["seconds"])
    return times


def tasks_of(times: Times) -> list[str]:
    """Return all tasks, in the order of the file."""
    return list(dict.fromkeys(task for of_version in times.values() for task in of_version))


def to_table(times: Times) -> str:
    """Return a Markdown table in milliseconds."""
    lines = [["task", *times], ["---"] * (1 + len(times))]
    for task in tasks_of(times):
        cells = [t.get(task) for t in times.values()]
        lines.append([task, *("" if s is None else f"{1000 * s:,.1f} ms" for s in cells)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def draw(times: Times, path: Path) -> None:
    """Draw the times of each task relative to the first release that has it."""
    from deltarank.paper.report.figures import LABEL_COLOURS, new_figure, to_svg

    figure, panel = new_figure(1, 1, width=8, height=3.5)
    for number, task in enumerate(tasks_of(times)):
        known = [(version, t[task]) for version, t in times.items() if task in t]
        versions, seconds = zip(*known, strict=True)
        colour = LABEL_COLOURS[number % len(LABEL_COLOURS)]
        panel.plot(versions, [s / seconds[0] for s in seconds], "o-", color=colour, label=task)
    panel.set_ylabel("time, that of its first release = 1")
    panel.set_ylim(0, 1.05 * panel.get_ylim()[1])
    figure.legend(loc="outside right center", frameon=False)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(to_svg(figure))


def setup(app: Sphinx) -> dict[str, bool]:
    """Name the directive."""
    app.add_directive("release-history", ReleaseHistory)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
