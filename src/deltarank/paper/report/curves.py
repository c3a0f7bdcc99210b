"""Figure: learning curves of rankers and their regrets, one column per case and surrogate."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deltarank.core.statistics import clustered_error
from deltarank.paper.report.figures import new_figure

Row = dict[str, Any]
# One colour per ranker; pairwise ones are dashed.
COLOURS = {
    "AB.MR": "#D55E00",
    "WBR-AB": "#0072B2",
    "AB.MH": "#009E73",
    "LLLR": "#D55E00",
    "WBR-LR": "#0072B2",
    "BR": "#CC79A7",
}
BAYES_COLOUR = "#666666"
EXPONENTIAL = ("AB.MR", "WBR-AB", "AB.MH")
PAIRWISE = ("AB.MR", "LLLR")


def draw_curves(
    rows: list[Row],
    all_rows: list[Row],
    cases: Sequence[str],
    rivals: Mapping[str, tuple[str, str]],
    curves: Sequence[str],
) -> Any:
    """Draw losses above and regrets below, with standard errors over models."""
    figure, panels = new_figure(2, 4, width=12, height=6.2, sharex=True)
    columns = [(case, surrogate) for case in cases for surrogate in rivals]
    for column, (case, surrogate) in enumerate(columns):
        names = [name for name in curves if (name in EXPONENTIAL) == (surrogate == "exponential")]
        _losses(panels[0, column], rows, all_rows, case, names)
        _regrets(panels[1, column], rows, all_rows, case, names)
        panels[0, column].set_title(f"{case} labels\n{surrogate} loss", loc="left")
        panels[1, column].set_xlabel("training rows")
    for panel in panels.flat:
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_xscale("log")
    panels[0, 0].set_ylabel("rank loss")
    panels[1, 0].set_ylabel("regret to the Bayes ranker")
    return figure


def _losses(
    panel: Any, rows: list[Row], all_rows: list[Row], case: str, names: Sequence[str]
) -> None:
    for name in names:
        sizes, values = _by_size(rows, case, name, "loss")
        panel.plot(sizes, [v.mean() for v in values], label=name, **_style(name))
    # On the same test rows: its risk over all rows differs by more than some rankers do.
    least = [row["loss"] for row in _of(all_rows, case, "Bayes")]
    panel.axhline(np.mean(least), color=BAYES_COLOUR, linestyle=":", label="Bayes ranker")
    panel.legend(frameon=False, fontsize=7.5)


def _regrets(
    panel: Any, rows: list[Row], all_rows: list[Row], case: str, names: Sequence[str]
) -> None:
    """Draw regrets; dotted where they go with more rows, shaded what the Bayes ranker has."""
    for name in names:
        sizes, values = _by_size(rows, case, name, "regret")
        models = _by_size(rows, case, name, "model")[1]
        means = [v.mean() for v in values]
        errors = [clustered_error(v, m) for v, m in zip(values, models, strict=True)]
        # One model alone has no error to draw.
        panel.errorbar(sizes, means, np.nan_to_num(errors), capsize=2, label=name, **_style(name))
        limits = _of(all_rows, case, f"{name} limit")
        if limits:
            panel.axhline(
                np.mean([row["regret"] for row in limits]),
                color=COLOURS[name],
                linestyle=":",
                linewidth=1,
            )
    floors = [row.get("floor", 0.0) for row in _of(all_rows, case, "Bayes")]
    if any(floors):
        panel.axhspan(min(floors), max(floors), color=BAYES_COLOUR, alpha=0.15, linewidth=0)
    # Differences show as distances where regrets are multiples of each other.
    panel.set_yscale("log", nonpositive="mask")


def _of(rows: list[Row], case: str, name: str) -> list[Row]:
    return [row for row in rows if row["case"] == case and row["algorithm"] == name]


def _by_size(rows: list[Row], case: str, name: str, key: str) -> tuple[list[int], list[Any]]:
    of_ranker = _of(rows, case, name)
    sizes = sorted({row["n_rows"] for row in of_ranker})
    return sizes, [np.array([row[key] for row in of_ranker if row["n_rows"] == n]) for n in sizes]


def _style(name: str) -> dict[str, Any]:
    dashed = name in PAIRWISE
    return {
        "color": COLOURS[name],
        "linestyle": "--" if dashed else "-",
        "marker": "s" if dashed else "o",
        "markersize": 3,
        "linewidth": 1.2,
    }
