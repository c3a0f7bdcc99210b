"""Figure: rank losses of many rankers on several data sets, with intervals."""

from typing import Any, NamedTuple

from deltarank.core.statistics import Interval
from deltarank.paper.report.figures import LABEL_COLOURS, new_figure


class Dot(NamedTuple):
    """A loss: of which ranker, on which variant of the features, and what was printed for it."""

    ranker: str
    variant: str
    loss: Interval
    printed: float | None = None


def draw_losses(panels: dict[str, list[Dot]], variants: tuple[str, ...]) -> Any:
    """Draw a panel per data set: a line per ranker, a dot and an interval per variant."""
    rankers = list(dict.fromkeys(dot.ranker for dots in panels.values() for dot in dots))
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, grid = new_figure(
        rows,
        columns,
        width=1.4 + 2.6 * columns,
        height=0.7 + (0.5 + 0.22 * len(rankers)) * rows,
        sharey=True,
        squeeze=False,
    )
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (name, dots) in zip(grid.flat, panels.items(), strict=False):
        _draw_panel(axes, dots, rankers, variants)
        axes.set_title(name, loc="left")
    handles, names = grid.flat[0].get_legend_handles_labels()
    known = dict(zip(names, handles, strict=True))
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_panel(axes: Any, dots: list[Dot], rankers: list[str], variants: tuple[str, ...]) -> None:
    for dot in dots:
        which = variants.index(dot.variant)
        height, colour = rankers.index(dot.ranker) + 0.3 * which - 0.15, LABEL_COLOURS[which]
        axes.plot([dot.loss.low, dot.loss.high], [height, height], color=colour, linewidth=1.5)
        axes.plot(dot.loss.mean, height, "o", markersize=4, color=colour, label=dot.variant)
        if dot.printed is not None:
            axes.plot(dot.printed, height, "|", markersize=9, color="0.2", label="the paper's")
    axes.set_yticks(range(len(rankers)), rankers)
    axes.set_ylim(len(rankers) - 0.5, -0.5)
    axes.locator_params(axis="x", nbins=4)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(left=False)
