"""The look of the gallery's figures, and the order of its examples."""

from typing import Any

ORDER = (
    "plot_rank_recipes",
    "plot_explain",
    "plot_choose_c",
    "plot_boosting_rounds",
    "plot_kernel",
    "plot_label_tree",
    "plot_which_weight",
    "plot_unknown_labels",
    "plot_label_sets",
    "plot_metrics_at_k",
    "plot_conformal_sets",
    "plot_more_rows",
    "plot_rank_with_onnx",
    "plot_serve_and_ask",
    "plot_train_network",
    "plot_pairwise_losses",
    "plot_regret",
    "plot_bounds",
)


class InOrder:
    """A key by which sphinx-gallery sorts: examples of use first, then theory."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> int:
        """Return the place of an example; one that has none is an error."""
        return ORDER.index(file.removesuffix(".py"))


def house_style(gallery_conf: dict[str, Any], file: str) -> None:
    """Give every figure the look of the report's."""
    from cycler import cycler
    from matplotlib import rcParams

    from deltarank.paper.report.figures import LABEL_COLOURS, STYLE

    rcParams.update(STYLE)
    rcParams.update(
        {
            "axes.prop_cycle": cycler(color=LABEL_COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.dpi": 110,
            "figure.figsize": (7, 3.6),
            "font.size": 10,
            "legend.frameon": False,
        }
    )
