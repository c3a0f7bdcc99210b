"""Figure: the rankings that surrogates lead to, beside the best one."""

from typing import Any

from deltarank.paper.report.figures import LABEL_COLOURS, WRONG, new_figure

Row = dict[str, Any]
RIGHT_EDGE = 3.1


def draw_rankings(rows: list[Row]) -> Any:
    """Draw where each surrogate's minimiser puts each label: one panel per example."""
    examples = list(dict.fromkeys(row["example"] for row in rows))
    figure, panels = new_figure(1, len(examples), width=11, height=4.6, sharey=True)
    for panel, example in zip(panels, examples, strict=True):
        shown = [row for row in rows if row["example"] == example]
        for height, row in enumerate(shown):
            _draw_ranking(panel, height, row)
        panel.set_yticks(range(len(shown)), [row["surrogate"] for row in shown])
        panel.set_ylim(len(shown) - 0.4, -0.6)
        panel.set_xlim(-1.2, RIGHT_EDGE)
        panel.set_xticks([-1, 0, 1])
        panel.set_title(f"Example {example}: best order {shown[0]['best order']}", loc="left")
        panel.set_xlabel("score of the minimiser, largest set to 1")
        for side in ("top", "right", "left"):
            panel.spines[side].set_visible(False)
        panel.tick_params(left=False)
    return figure


def _draw_ranking(panel: Any, height: int, row: Row) -> None:
    wrong = not row["right"]
    scores = row["scores"]
    scale = max(abs(score) for score in scores)
    if wrong:
        panel.axhspan(height - 0.5, height + 0.5, color=WRONG, alpha=0.12, linewidth=0)
    panel.axhline(height, color="0.85", linewidth=0.8, zorder=1, xmax=2.4 / (1.2 + RIGHT_EDGE))
    for label, score in enumerate(scores):
        # Labels too close to tell apart stand one above the other.
        close = sum(abs(score - other) < 0.09 * scale for other in scores[:label])
        where = (score / scale, height + 0.34 * close - 0.17 * _crowded(scores, scale, label))
        panel.plot(*where, "o", markersize=9, color=LABEL_COLOURS[label], zorder=2)
        panel.annotate(
            str(label + 1), where, ha="center", va="center", color="white", fontsize=6.5, zorder=3
        )
    verdict = f"{row['order']}, regret {row['regret']:.4g}" if wrong else f"{row['order']}, right"
    colour = WRONG if wrong else "0.35"
    panel.text(1.35, height, verdict, ha="left", va="center", color=colour)


def _crowded(scores: list[float], scale: float, label: int) -> bool:
    return sum(abs(score - scores[label]) < 0.09 * scale for score in scores) > 1
