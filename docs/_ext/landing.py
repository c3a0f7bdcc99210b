"""The picture of the landing page: one panel of Figure 1, drawn from the table of the full run."""

import csv
from pathlib import Path

from deltarank.paper.report.curves import COLOURS
from deltarank.paper.report.figures import new_figure, to_svg

# What the figure's names mean to somebody who comes here first.
SHOWN = {"WBR-LR": "weighted labels", "LLLR": "pairs of labels"}
CASE = "dependent"


def draw(table: Path, target: Path) -> None:
    """Draw the regrets of both losses against training rows, with standard errors."""
    with table.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["case"] == CASE]
    figure, panel = new_figure(1, 1, width=4.6, height=3.0)
    for name, shown in SHOWN.items():
        curve = [row for row in rows if row["algorithm"] == name]
        sizes, regrets, errors = (
            [float(row[key]) for row in curve] for key in ("n_rows", "regret", "error")
        )
        style = {"color": COLOURS[name], "marker": "o", "markersize": 4, "linewidth": 1.6}
        panel.errorbar(sizes, regrets, errors, capsize=2, **style)
        end = (sizes[-1], regrets[-1])
        panel.annotate(shown, end, (6, 0), textcoords="offset points", color=COLOURS[name],
                       va="center", fontsize=11)  # fmt: skip
    panel.set(xscale="log", yscale="log", xlabel="training rows")
    panel.set_title("regret: distance from the best ranking", loc="left")
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlim(right=150_000)
    panel.set_xticks([100, 1000, 10_000], ["100", "1,000", "10,000"])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(to_svg(figure))
