"""The picture of docs/choosing.md: rank loss against the time of a fit, ranker by ranker."""

import csv
from pathlib import Path
from typing import Any

from deltarank.paper.report.figures import LABEL_COLOURS, new_figure, to_svg

MARKERS = "osD^v<>Xph"
# Panels side by side, and the size of one in inches: for wide pages and for phones.
LAYOUTS = {"wide": (3, 2.7, 2.6), "narrow": (1, 3.7, 2.5)}


def draw(measured: Path, folder: Path) -> None:
    """Draw a panel per data set, twice: side by side and one below the other."""
    with measured.open(newline="") as file:
        rows = list(csv.DictReader(file))
    sets, rankers = (list(dict.fromkeys(row[name] for row in rows)) for name in ("set", "ranker"))
    folder.mkdir(parents=True, exist_ok=True)
    for layout, (columns, width, height) in LAYOUTS.items():
        lines = -(-len(sets) // columns)
        # A panel that no set needs holds the names, which else are below all panels.
        size = {"width": width * columns, "height": height * lines + 1.3 * (columns == 1)}
        figure, grid = new_figure(lines, columns, squeeze=False, **size)
        for panel, name in zip(grid.flat, sets, strict=False):
            _draw_panel(panel, [row for row in rows if row["set"] == name], rankers)
            panel.set_title(name, loc="left")
        rest = grid.flat[len(sets) :]
        for panel in rest:
            panel.set_axis_off()
        names = grid.flat[0].get_legend_handles_labels()
        if len(rest):
            rest[0].legend(*names, loc="center", frameon=False)
        else:
            figure.legend(*names, loc="outside lower center", ncols=2, frameon=False)
        (folder / f"choosing-{layout}.svg").write_bytes(to_svg(figure))


def _draw_panel(panel: Any, rows: list[dict[str, str]], rankers: list[str]) -> None:
    for row in rows:
        number = rankers.index(row["ranker"])
        panel.plot(
            float(row["cpu_seconds"]),
            float(row["rank_loss"]),
            MARKERS[number % len(MARKERS)],
            color=LABEL_COLOURS[number % len(LABEL_COLOURS)],
            markersize=7,
            label=row["ranker"],
        )
    panel.set(xscale="log", xlabel="seconds of a core", ylabel="rank loss")
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter("")
    # A decade at least, so that a tick has its number.
    low, high = panel.get_xlim()
    panel.set_xlim(min(low, high / 20), high)
    panel.spines[["top", "right"]].set_visible(False)
