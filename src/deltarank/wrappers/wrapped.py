"""What rankers round another ranker share: they take what that one takes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from deltarank.base.ranker import Ranker
from deltarank.wrappers.pipeline_ranker import PipelineRanker

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
        return bool(as_ranker(self.ranker).accepts_missing_values)

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y: whatever the ranker says."""
        return bool(as_ranker(self.ranker).accepts_unknown_labels)

    @property
    def estimates_marginals(self) -> bool:
        """Whether there are marginal weights: whatever the ranker says."""
        return bool(as_ranker(self.ranker).estimates_marginals)


class DecidingRanker(WrappedRanker):
    """One that fits a ranker, `ranker_`, and makes something else of its scores."""

    ranker_: Any

    def _check_rows(self, X: Any, *, fitting: bool = False) -> Any:
        """Leave the checking to the ranker, which may take text or categories."""
        return self.ranker_._check_rows(X)

    @available_if(lambda ranker: ranker.estimates_marginals)
    def marginal_weights(self, X: Any) -> NDArray[Any]:
        """Return what the ranker's scores estimate, the *weighted* chances: see `Ranker`."""
        check_is_fitted(self)
        return np.asarray(self.ranker_.marginal_weights(X))


def as_ranker(ranker: Any) -> Ranker:
    """Return a ranker, also of a pipeline that ends in one; refuse what is none of this package."""
    last = ranker.steps[-1][1] if isinstance(ranker, Pipeline) else ranker
    if not isinstance(last, Ranker):
        raise ValueError(
            f"ranker must be a ranker of deltarank; got {type(last).__name__} "
            "(wrap other classifiers in WeightedBinaryRelevance)"
        )
    return ranker if isinstance(ranker, Ranker) else PipelineRanker(ranker)


def take_features(ranker: Ranker, fitted: Iterable[Any]) -> None:
    """Let a ranker have the features of the first fitted estimator that knows them, or none."""
    for attribute in ("n_features_in_", "feature_names_in_"):
        known = [getattr(it, attribute) for it in fitted if hasattr(it, attribute)]
        ranker.__dict__.pop(attribute, None)
        if known:
            setattr(ranker, attribute, known[0])
