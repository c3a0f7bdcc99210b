"""How trees are made, as a ranker's parameters say."""

from numbers import Real
from typing import Any, NamedTuple

from deltarank.base.chances import trainable_loss
from deltarank.base.parameters import positive_integer, positive_number
from deltarank.boosting.values import MOST_BINS
from deltarank.gradient_trees.growth import Limits
from deltarank.gradient_trees.kernels.histograms import CURVATURE


class Options(NamedTuple):
    """How trees are made."""

    limits: Limits
    loss: str
    learning_rate: float
    bins: int
    sketch_size: int
    row_share: float
    feature_share: float | None

    @classmethod
    def of(cls, ranker: Any) -> "Options":
        """Return the options of a `BoostedTreeRanker`, or refuse one that is out of range."""
        for name in ("learning_rate", "row_share", "feature_share"):
            share = getattr(ranker, name)
            if name == "feature_share" and share is None:
                continue
            if not isinstance(share, Real) or not 0 < float(share) <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1; got {share!r}")
        if positive_integer(ranker.max_leaves, "max_leaves") < 2:
            raise ValueError(f"max_leaves must be at least 2; got {ranker.max_leaves!r}")
        if not 2 <= positive_integer(ranker.bins, "bins") <= MOST_BINS:
            raise ValueError(f"bins must be from 2 to {MOST_BINS}; got {ranker.bins!r}")
        if positive_integer(ranker.sketch_size, "sketch_size") > CURVATURE:
            raise ValueError(
                f"sketch_size must be from 1 to {CURVATURE}; got {ranker.sketch_size!r}"
            )
        trainable_loss(ranker.loss)
        limits = Limits(
            ranker.max_leaves,
            2**31 if ranker.max_depth is None else positive_integer(ranker.max_depth, "max_depth"),
            positive_number(ranker.min_child_weight, "min_child_weight"),
            positive_number(ranker.l2, "l2"),
        )
        return cls(
            limits,
            ranker.loss,
            float(ranker.learning_rate),
            ranker.bins,
            ranker.sketch_size,
            float(ranker.row_share),
            None if ranker.feature_share is None else float(ranker.feature_share),
        )
