"""WBR-AB: weighted AdaBoost.M1 with decision stumps, all labels at once."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from deltarank.boosting.bins import bin_features
from deltarank.boosting.chunked import placed_stumps
from deltarank.boosting.kernels.splits import CRITERIA
from deltarank.boosting.kernels.votes import predict_label_votes
from deltarank.boosting.label_search import LabelStumps, place_stumps
from deltarank.boosting.stump_ranker import StumpRanker
from deltarank.core.choices import choose
from deltarank.core.chunks import is_chunked
from deltarank.core.labels import LabelSets
from deltarank.core.progress import progress
from deltarank.core.weights import Weight

# Weka stops where a stump is no better than chance or makes no error, both to this tolerance.
NO_ERROR = 1e-6
# A real vote that lowers the loss by less than this share is the last.
NO_GAIN = 1e-10
# Leaf probabilities stay this far from 0 and 1.
LEAST_SHARE = 1e-12


class AdaBoostRanker(StumpRanker):
    r"""Rank labels by weighted AdaBoost with stumps, consistent for rank loss, Eq. (11).

    Every label is boosted on its own, as AdaBoost.M1 and the decision stump of Weka do it (to the
    same thresholds with ``bins=None``), from start weights w(y). It minimises
    :math:`\sum_i w(y_i) e^{-y_{il} F_l(x_i)}` stump by stump; the
    score is :math:`2 F_l`, an estimate of the log odds of the weighted marginal. Rows share their
    features, so one histogram per feature serves eight labels at a time.

    Consistent means: if these log odds are sums of functions of single features, and the number of
    stumps grows with the rows, but more slowly, the order becomes the best one. Stumps cannot
    express what features do only together; `WeightedBinaryRelevance` round deeper trees can.

    Parameters
    ----------
    n_stumps : int
        Stumps a label. Fewer if a label stops early: when a stump makes no error, or is no better
        than chance.
    criterion : {"entropy", "error", "z"}
        What a stump's threshold minimises: conditional entropy (Weka), the weighted error, or the
        normaliser Z of real votes.
    votes : {"discrete", "real"}
        Whether a stump votes +1 or -1 with one weight, or a branch with its own confidence.
    shrinkage : float
        Share of each step taken, above 0 and at most 1.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        What a row counts, by its label set: see `deltarank.instance_weights`.
    bins : int or None
        Most bins a feature, 2 to 256. A feature with no more distinct values is searched exactly,
        one with more at as many quantiles. None searches every midpoint of any feature.
    device : {"cpu", "cuda", "auto"} or "cuda:<number>"
        Where stumps are searched for; needs ``deltarank[gpu]`` unless it is "cpu". "auto" takes a
        CUDA device where there is one and the data are large enough to gain by it.

    Attributes
    ----------
    features_, thresholds_ : arrays of shape (t, m)
        Feature and threshold of each label's stump in each round; values up to the threshold go
        left.
    votes_ : array of shape (t, 3, m)
        What the stump adds to the score of rows that go left, right, or have the value missing; 0
        once a label has stopped. A label with a single stump scores the log odds of its leaf.
    n_stumps_ : array of shape (m,)
        Stumps each label has.
    normalizers_ : array of shape (t, m)
        What each round multiplied the weighted exponential loss by.
    classes_ : array of shape (m,)
        Names of the labels.

    Notes
    -----
    Missing values (NaN) are a third branch of every stump. Entries that a sparse X does not store
    are zeros, not missing.

    `fit` takes Dask arrays and data frames cut by rows, chunks of X dense or sparse. Rows stay on
    the workers: votes go there, histograms come back. Stumps are those of a local fit as long as no
    feature has more than 4,096 distinct values; of a feature with more, chunks send summaries, and
    each time these are made or merged a quantile moves by less than 1/4096 of the rows.

    See Also
    --------
    AdaBoostMH : The same loss with stumps shared by all labels.
    StagedSearchCV : Chooses the number of stumps by cross-validation.

    Examples
    --------
    >>> from deltarank import AdaBoostRanker
    >>> from deltarank.datasets import SyntheticModel
    >>> X, Y = SyntheticModel.random(n_labels=5, random_state=0).sample(2000, random_state=1)
    >>> ranker = AdaBoostRanker(n_stumps=50).fit(X, Y)
    >>> ranker.rank(X[:2], top=2)
    array([[1, 2],
           [2, 3]])
    >>> [scores.shape for scores in ranker.staged_decision_function(X[:2], at=[10, 20, 50])]
    [(2, 5), (2, 5), (2, 5)]
    """

    _predict_votes: ClassVar[Any] = staticmethod(predict_label_votes)

    def __init__(
        self,
        *,
        n_stumps: int = 100,
        criterion: str = "entropy",
        votes: str = "discrete",
        shrinkage: float = 1.0,
        weight: Weight = "rank",
        bins: int | None = 256,
        device: str = "cpu",
    ) -> None:
        self.n_stumps = n_stumps
        self.criterion = criterion
        self.votes = votes
        self.shrinkage = shrinkage
        self.weight = weight
        self.bins = bins
        self.device = device

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y: such a cell has no weight."""
        return True

    def _check_numbers(self) -> None:
        super()._check_numbers()
        choose(CRITERIA, self.criterion, "criterion")

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, stages: list[int]) -> Iterator[None]:
        if not (is_chunked(X) or is_chunked(y)):
            yield from super()._fit_rows(X, y, sample_weight, stages)
            return
        with placed_stumps(self, X, y, sample_weight) as (engine, constants, total):
            self.constants_ = constants
            yield from self._rounds(engine, len(constants), total, stages)

    def _boost(
        self, X: Any, labels: LabelSets, weights: NDArray[np.float64], stages: list[int]
    ) -> Iterator[None]:
        bins = bin_features(X, self.bins)
        engine = place_stumps(bins, labels, weights, self.criterion, self.device)
        yield from self._rounds(engine, labels.n_labels, float(weights.sum()), stages)

    def _rounds(
        self, engine: LabelStumps, n_labels: int, total: float, stages: list[int]
    ) -> Iterator[None]:
        """Boost labels whose rows weigh `total` together, and keep the stumps at every stage."""
        shift = np.full(engine.n_places, np.log(total))
        active = np.arange(engine.n_places) < n_labels
        rounds: list[tuple[NDArray[Any], ...]] = []
        votes = np.zeros((3, engine.n_places))
        for stage in stages:
            # Two rounds tell which labels have a single stump.
            wanted = max(stage, min(2, self.n_stumps))
            with progress("boosting", wanted - len(rounds)) as done:
                before = len(rounds)
                while len(rounds) < wanted and active.any():
                    stumps = engine.next(active, votes, shift)
                    leaves = Leaves.of(stumps.sums)
                    shift += np.log(leaves.total)
                    votes, useful = self._votes(leaves, engine.n_known, engine.tie)
                    # The first stump is kept whatever it is worth.
                    kept = active & useful if rounds else active
                    active = active & useful
                    if not kept.any():
                        break
                    votes = np.where(kept, votes, 0.0)
                    if not rounds:
                        self.first_votes_ = engine.to_labels(leaves.log_odds())
                    thresholds = engine.cuts.threshold(stumps.feature, stumps.cut)
                    made = (stumps.feature, thresholds, 2 * votes, leaves.normalizers(votes), kept)
                    rounds.append(made)
                    done(len(rounds) - before)
            parts = [engine.to_labels(np.array(part)) for part in zip(*rounds, strict=True)]
            self._keep([part[:stage] for part in parts], single=parts[-1].sum(axis=0) == 1)
            yield

    def _votes(
        self, leaves: "Leaves", n_rows: NDArray[np.int64], tie: float
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return what the branches vote (3, places), and which stumps are worth keeping."""
        if self.votes == "real":
            votes = self.shrinkage * leaves.real_votes(0.5 / n_rows)
            return votes, leaves.normalizers(votes) < 1 - NO_GAIN
        signs, error = leaves.discrete_votes(tie)
        bounded = np.clip(error, LEAST_SHARE, 1 - LEAST_SHARE)
        step = 0.5 * self.shrinkage * np.log((1 - bounded) / bounded)
        return step * signs, (error >= NO_ERROR) & (error < 0.5 - NO_ERROR)

    def _keep(self, parts: list[NDArray[Any]], single: NDArray[np.bool_]) -> None:
        features, self.thresholds_, self.votes_, self.normalizers_, kept = parts
        self.features_ = features.astype(np.int32)
        self.n_stumps_ = kept.sum(axis=0)
        if self.votes == "discrete":
            self.votes_[0][:, single] = self.first_votes_[:, single]

    def _at_stage(self, X: Any, scores: NDArray[np.float64], stage: int) -> NDArray[np.float64]:
        if stage > 1 or self.votes == "real":
            return super()._at_stage(X, scores, stage)
        # After one round every label has a single stump, and scores as such.
        alone = np.zeros_like(scores)
        self._add_votes(X, slice(0, 1), alone, self.first_votes_[None])
        return alone


class Leaves(NamedTuple):
    """Branches (left, right, missing) of a stump a place: weights of total 1, and shares.

    A branch without weight has the share of the missing one, and that, without weight, the share
    of all rows.
    """

    weight: NDArray[np.float64]
    relevant: NDArray[np.float64]
    total: NDArray[np.float64]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, sums: NDArray[np.float64]) -> "Leaves":
        """Read the sums of `Stumps`; a place without weight gets total 1."""
        weight, relevant = sums[:, 0], np.minimum(sums[:, 1], sums[:, 0])
        total = weight.sum(axis=0)
        total = np.where(total > 0, total, 1.0)
        weight, relevant = weight / total, relevant / total
        share = np.broadcast_to(relevant.sum(axis=0), weight.shape).copy()
        missing = weight[2] > 0
        share[:, missing] = relevant[2, missing] / weight[2, missing]
        np.divide(relevant, weight, out=share, where=weight > 0)
        return cls(weight, relevant, total, share)

    def discrete_votes(self, tie: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the votes +-1 of the branches, ties being irrelevant, and the weighted error."""
        up = self.share > 0.5 + tie
        error = np.where(up, self.weight - self.relevant, self.relevant).sum(axis=0)
        return np.where(up, 1.0, -1.0), error

    def real_votes(self, smoothing: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return half the smoothed log odds of the branches."""
        empty = self.weight <= 0
        relevant = np.where(empty, self.share, self.relevant)
        other = np.where(empty, 1 - self.share, self.weight - self.relevant)
        return np.asarray(0.5 * np.log((relevant + smoothing) / (other + smoothing)))

    def log_odds(self) -> NDArray[np.float64]:
        """Return the log odds of the branches' shares."""
        return np.asarray(logit(np.clip(self.share, LEAST_SHARE, 1 - LEAST_SHARE)))

    def normalizers(self, votes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the votes multiply the exponential loss by."""
        other = self.weight - self.relevant
        loss = self.relevant * np.exp(-votes) + other * np.exp(votes)
        return np.asarray(loss.sum(axis=0))
