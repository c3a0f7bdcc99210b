"""What rankers round another ranker share: they take what that one takes."""

from typing import Any

from deltarank.base.ranker import Ranker


class WrappedRanker(Ranker):
    """A ranker round another, `ranker`: it takes what that one takes."""

    ranker: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self.ranker.__sklearn_tags__().input_tags
        return tags

    @property
    def accepts_missing_values(self) -> bool:
        """Whether NaN may stand in X: whatever the ranker says."""
        return bool(self.ranker.accepts_missing_values)

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y: whatever the ranker says."""
        return bool(self.ranker.accepts_unknown_labels)

    @property
    def estimates_marginals(self) -> bool:
        """Whether there are marginal weights: whatever the ranker says."""
        return bool(self.ranker.estimates_marginals)
