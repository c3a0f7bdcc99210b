"""Metrics as scikit-learn scorers: pass one as ``scoring=`` to a search or cross-validation."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deltarank.core.choices import choose
from deltarank.core.chunks import is_chunked
from deltarank.metrics.streaming import StreamingMetric
from deltarank.metrics.table import METRICS


@dataclass(frozen=True)
class RankingScorer:
    """Score a fitted estimator by a ranking metric, greater being better.

    Call it as scikit-learn does, ``scorer(estimator, X, Y)``. The estimator needs
    ``decision_function`` or ``predict_proba``; if Y holds label names, also ``classes_``. X and Y
    may be Dask collections where the estimator takes them: each chunk is measured where it is.

    Examples
    --------
    >>> from deltarank import LogisticRanker
    >>> from deltarank.datasets import SyntheticModel
    >>> from sklearn.model_selection import cross_val_score
    >>> X, Y = SyntheticModel.random(n_labels=4, random_state=0).sample(200, random_state=1)
    >>> scorer = RankingScorer("precision_at_k", {"k": 2})
    >>> cross_val_score(LogisticRanker(), X, Y, scoring=scorer, cv=2).shape
    (2,)
    """

    metric: str
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, estimator: Any, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return the metric of the estimator's scores, its sign such that greater is better."""
        stream = StreamingMetric(self.metric, **self.options)
        named = isinstance(Y, list | tuple)
        classes = getattr(estimator, "classes_", None) if named else None
        stream.update(Y, _scores(estimator, X), sample_weight, classes=classes)
        return stream.result() if METRICS[self.metric].greater_is_better else -stream.result()


def _scores(estimator: Any, X: Any) -> Any:
    if hasattr(estimator, "decision_function"):
        scores = estimator.decision_function(X)
        return scores if is_chunked(scores) else np.asarray(scores)
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} has neither decision_function nor predict_proba, "
            "so there are no scores to rank by"
        )
    probabilities = estimator.predict_proba(X)
    if isinstance(probabilities, list):  # one (n, 2) array a label, as from MultiOutputClassifier
        return np.column_stack([p[:, 1] for p in probabilities])
    return np.asarray(probabilities)


SCORERS: dict[str, RankingScorer] = {
    "neg_rank_loss": RankingScorer("rank_loss"),
    "neg_coverage": RankingScorer("coverage"),
    "neg_one_error": RankingScorer("one_error"),
    "average_precision": RankingScorer("average_precision"),
    "ndcg": RankingScorer("ndcg_at_k"),
    **{f"precision_at_{k}": RankingScorer("precision_at_k", {"k": k}) for k in (1, 3, 5)},
    **{f"recall_at_{k}": RankingScorer("recall_at_k", {"k": k}) for k in (1, 3, 5)},
    **{f"ndcg_at_{k}": RankingScorer("ndcg_at_k", {"k": k}) for k in (1, 3, 5)},
    **{
        f"{name}_at_{k}": RankingScorer(f"{name}_at_k", {"k": k})
        for name in ("macro_precision", "macro_recall", "macro_f1", "coverage")
        for k in (1, 3, 5)
    },
}


def get_scorer(name: str) -> RankingScorer:
    """Return a scorer by name, for ``scoring=``.

    scikit-learn's own ``scoring=`` takes no names but its own, so pass what this returns; rank loss
    needs none, as the ``score`` of rankers is one minus it. For other options build one:
    ``RankingScorer("rank_loss", {"weight": "uniform"})``.

    Examples
    --------
    >>> get_scorer("neg_rank_loss")
    RankingScorer(metric='rank_loss', options={})
    """
    return choose(SCORERS, name, "scorer")
