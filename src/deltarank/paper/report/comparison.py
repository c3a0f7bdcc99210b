"""Figure: rank losses of several rankers, and their differences from the first."""

from typing import Any

from deltarank.paper.report.figures import LABEL_COLOURS, new_figure

Row = dict[str, Any]


def draw_comparison(rows: list[Row]) -> Any:
    """Draw each ranker's rank loss and its difference from the first one, with intervals."""
    figure, panels = new_figure(1, 2, width=8, height=1.2 + 0.4 * len(rows), sharey=True)
    _draw(panels[0], rows, "rank loss", "low", "high")
    _draw(panels[1], rows[1:], "difference", "difference low", "difference high", first=1)
    panels[1].axvline(0, color="0.6", linewidth=0.8, zorder=1)
    panels[0].set_yticks(range(len(rows)), [row["ranker"] for row in rows])
    panels[0].set_ylim(len(rows) - 0.5, -0.5)
    panels[0].set_xlabel("rank loss, 95% interval")
    panels[1].set_xlabel(f"difference from {rows[0]['ranker']}, 95% interval")
    for panel in panels:
        panel.locator_params(axis="x", nbins=5)
        for side in ("top", "right", "left"):
            panel.spines[side].set_visible(False)
        panel.tick_params(left=False)
    return figure


def _draw(panel: Any, rows: list[Row], value: str, low: str, high: str, first: int = 0) -> None:
    for height, row in enumerate(rows, start=first):
        colour = LABEL_COLOURS[height % len(LABEL_COLOURS)]
        panel.plot([row[low], row[high]], [height, height], color=colour, linewidth=2)
        panel.plot(row[value], height, "o", markersize=6, color=colour)
