"""What rankers round another ranker share: they take what that one takes."""

from collections.abc import Iterable
from typing import Any

from deltarank.base.ranker import Ranker

# Forms of Y that are vectors of classes: there is no set of labels to choose.
ONE_CLASS_A_ROW = ("binary", "classes")


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


def require_ranker(ranker: Any) -> None:
    """Refuse what is no ranker of this package."""
    if not isinstance(ranker, Ranker):
        raise ValueError(
            f"ranker must be a ranker of deltarank; got {type(ranker).__name__} "
            "(wrap other classifiers in WeightedBinaryRelevance)"
        )


def take_features(ranker: Ranker, fitted: Iterable[Any]) -> None:
    """Let a ranker have the features of the first fitted estimator that knows them, or none."""
    for attribute in ("n_features_in_", "feature_names_in_"):
        known = [getattr(it, attribute) for it in fitted if hasattr(it, attribute)]
        ranker.__dict__.pop(attribute, None)
        if known:
            setattr(ranker, attribute, known[0])
