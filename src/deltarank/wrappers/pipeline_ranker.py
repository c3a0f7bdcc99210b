"""A pipeline that ends in a ranker, with all that rankers have."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from deltarank.base.ranker import Ranker
from deltarank.core.arguments import refuse_hidden


class PipelineRanker(Ranker):
    """Rank by a pipeline: rows go through its transformers, then to its ranker.

    Parameters
    ----------
    pipeline : Pipeline
        Its last step is a ranker.

    Attributes
    ----------
    pipeline_ : Pipeline
        Fitted.
    classes_ : array of shape (m,)
    """

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline

    @property
    def _last(self) -> Any:
        return getattr(self, "pipeline_", self.pipeline).steps[-1][1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self.pipeline.__sklearn_tags__().input_tags
        return tags

    @property
    def accepts_missing_values(self) -> bool:
        """Whether NaN may stand in X: transformers see to that."""
        return True

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y: whatever the ranker says."""
        return bool(self._last.accepts_unknown_labels)

    @property
    def estimates_marginals(self) -> bool:
        """Whether there are marginal weights: whatever the ranker says."""
        return bool(self._last.estimates_marginals)

    @property
    def weight(self) -> Any:
        """The weight of the ranker."""
        if callable(weight := getattr(self._last, "weight", None)):
            raise ValueError(
                "the ranker in a pipeline must have a weight by name here, not a function: rows "
                "are held out, and the function would not see Y as it was given"
            )
        return weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PipelineRanker":
        """Fit a copy of the pipeline; its ranker gets the weights."""
        self._check_labels(y, _num_samples(X))
        weights = {}
        if sample_weight is not None:
            weights = {f"{self.pipeline.steps[-1][0]}__sample_weight": sample_weight}
        self.pipeline_ = clone(self.pipeline).fit(X, y, **weights)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.pipeline_, name):
                setattr(self, name, getattr(self.pipeline_, name))
        return self

    def _check_rows(self, X: Any, *, fitting: bool = False) -> Any:
        """Leave the checking to the transformers, which may take text or categories."""
        refuse_hidden(X, "X")
        return X

    def _scores(self, X: Any) -> NDArray[Any]:
        features = self.pipeline_[:-1].transform(X) if len(self.pipeline_) > 1 else X
        return np.asarray(self._last._scores(self._last._check_rows(features)))

    def _relevance(self, scores: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._last._relevance(scores))
