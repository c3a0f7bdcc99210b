"""Score a ranker by a metric as its chances can be decided, to choose parameters by."""

from typing import Any, NamedTuple

import numpy as np

from deltarank.base.ranker import LAST
from deltarank.core.labels import label_sets
from deltarank.decisions.frank_wolfe import HeldOut, frank_wolfe
from deltarank.decisions.metrics import DECISIONS, Linear, Macro, known_of
from deltarank.metrics import StreamingMetric
from deltarank.wrappers.marginals import chances_of


class DecidedScorer(NamedTuple):
    """A scorer: the metric at k of scored rows under the rule that is best for these very rows.

    Chances that are no good for the order may be the best for the rule: a large C that spreads
    chances of rare labels lifts macro F1 of the order by chance, and spoils what a rule can make of
    them.
    """

    rule: str
    metric: str
    k: int

    def __call__(self, ranker: Any, X: Any, Y: Any) -> float:
        """Return the metric, greater being better."""
        chances = chances_of(ranker, ranker._check_rows(X))
        labels = label_sets(Y)
        decision, known = DECISIONS[self.rule], known_of(labels, None, None)
        if isinstance(decision, Linear):
            slopes, offsets = decision.rule(known)
        else:
            assert isinstance(decision, Macro), "sets are no ranking"
            rows = HeldOut(chances, labels, np.full(labels.n_rows, 1 / labels.n_rows))
            slopes, offsets = frank_wolfe(rows, decision.kind, self.k, never=LAST).rule
        stream = StreamingMetric(self.metric, k=self.k)
        stream.update(Y, slopes * chances + offsets)
        return stream.result()
