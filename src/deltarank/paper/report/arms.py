"""Figure: a number with its error for each of many arms, one panel per case."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deltarank.core.statistics import clustered_error
from deltarank.paper.report.figures import new_figure

Row = dict[str, Any]
COLOURS = {"pairwise": "#D55E00", "univariate": "#0072B2"}
OTHER = "#666666"


def draw_arms(rows: list[Row], cases: Sequence[str], arms: Sequence[str]) -> Any:
    """Draw the mean regret of each arm, with its standard error over models."""
    figure, panels = new_figure(
        1, len(cases), width=11, height=1 + 0.22 * len(arms), sharey=True, squeeze=False
    )
    for panel, case in zip(panels[0], cases, strict=True):
        for height, arm in enumerate(arms):
            matching = [row for row in rows if (row["case"], row["arm"]) == (case, arm)]
            regrets = np.array([row["regret"] for row in matching])
            error = clustered_error(regrets, [row["model"] for row in matching])
            colour = COLOURS.get(arm.split(",")[0], OTHER)
            panel.errorbar(
                regrets.mean(), height, xerr=np.nan_to_num(error), fmt="o", markersize=4,
                capsize=2, color=colour,
            )  # fmt: skip
        panel.set_title(f"{case} labels", loc="left")
        panel.set_xlabel("regret to the Bayes ranker")
        panel.set_xscale("log")
        panel.grid(axis="y", color="0.92")
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(axis="y", left=False)
    panels[0, 0].set_yticks(range(len(arms)), arms)
    panels[0, 0].set_ylim(len(arms) - 0.5, -0.5)
    return figure
