"""AdaBoost.MR and AdaBoost.MH: boosting with stumps that all labels share."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.base.targets import Targets
from deltarank.boosting.bins import bin_features
from deltarank.boosting.choice import Stumps
from deltarank.boosting.kernels.votes import predict_shared_votes
from deltarank.boosting.losses import LabelLoss, Loss, PairLoss
from deltarank.boosting.search import StumpSearch, Tiles
from deltarank.boosting.stump_ranker import StumpRanker
from deltarank.core.choices import choose
from deltarank.core.labels import LabelSets
from deltarank.core.progress import progress
from deltarank.core.scores import FIRST, LAST
from deltarank.core.weights import Weight

# An edge below this is rounding.
NO_EDGE = 1e-12
STEPS = {"edge": "from a bound on the loss", "exact": "to the least loss"}


class Round(NamedTuple):
    """A stump with its votes (3, m), and what it multiplied the loss by."""

    feature: int
    threshold: float
    votes: NDArray[np.float64]
    normalizer: float


class SharedStumpRanker(StumpRanker):
    """Boosting by rounds of one stump with votes for all labels."""

    _predict_votes: ClassVar[Any] = staticmethod(predict_shared_votes)
    # Scores are this many times the sums of steps.
    score_scale: ClassVar[float] = 1.0

    @property
    def _criterion(self) -> str:
        """What the threshold of a stump minimises: the bound that its votes attain."""
        return "z" if self.votes == "real" else "error"

    @abstractmethod
    def _loss(self, search: StumpSearch, labels: LabelSets, weights: Any) -> Loss: ...

    def _boost(
        self, X: Any, labels: LabelSets, weights: NDArray[np.float64], stages: list[int]
    ) -> Iterator[None]:
        bins = bin_features(X, self.bins)
        tiles = Tiles(labels, bins)
        search = StumpSearch(bins, tiles, self._criterion)
        loss = self._loss(search, labels, weights)
        loss.weigh()
        rounds: list[Round] = []
        gains = True
        for stage in stages:
            with progress("boosting", stage - len(rounds)) as done:
                before = len(rounds)
                while gains and len(rounds) < stage:
                    stumps = search.shared(loss.total)
                    step = self._votes(loss, stumps, len(weights) * labels.n_labels)
                    gains = step is not None
                    if step is not None:
                        made = Round(
                            stumps.feature[0],
                            bins.threshold(stumps.feature, stumps.cut)[0],
                            self.score_scale * tiles.to_labels(step),
                            loss.add_votes(stumps, step),
                        )
                        rounds.append(made)
                        done(len(rounds) - before)
            self.features_ = np.array([made.feature for made in rounds], np.int32)
            self.thresholds_ = np.array([made.threshold for made in rounds], np.float64)
            votes = [made.votes for made in rounds]
            self.votes_ = np.array(votes, np.float64).reshape(-1, 3, labels.n_labels)
            self.normalizers_ = np.array([made.normalizer for made in rounds], np.float64)
            yield

    def _votes(self, loss: Loss, stumps: Stumps, n_cells: int) -> NDArray[np.float64] | None:
        """Return what the branches add to scores, (3, places); None when nothing is gained."""
        sums = stumps.sums / stumps.sums[:, 0].sum()
        weight, relevant = sums[:, 0], np.minimum(sums[:, 1], sums[:, 0])
        other = weight - relevant
        # A branch that no row takes abstains.
        taken = weight.sum(axis=1, keepdims=True) > 0
        edge = float(np.abs(relevant - other).sum())
        if self.votes == "real":
            smoothing = 0.5 / n_cells
            confidence = 0.5 * np.log((relevant + smoothing) / (other + smoothing))
            bound = 2 * np.sqrt(relevant * other).sum()
            return None if bound >= 1 - NO_EDGE else self.shrinkage * taken * confidence
        if edge <= NO_EDGE:
            return None
        up = relevant - other >= -loss.search.tie * weight
        signs = np.where(up, 1.0, -1.0) * taken
        return self.shrinkage * loss.step(stumps, signs, edge) * signs


class AdaBoostMR(SharedStumpRanker):
    r"""Rank labels by AdaBoost.MR: pairwise boosting, the rival of univariate losses.

    It minimises :math:`\sum_i w(y_i) \sum_{p,q} e^{-(f_p(x_i) - f_q(x_i))/2}` over pairs of a
    relevant label p and an irrelevant label q, Eq. (48), one stump with votes for all labels a
    round. The weights of pairs are products of one factor per cell, so a round costs O(n m d) as in
    `AdaBoostMH`, whatever the number of pairs. Pairwise losses of this kind are *not* consistent
    for rank loss: `deltarank.theory` has examples.

    Parameters
    ----------
    n_stumps : int
        Rounds, a stump each.
    votes : {"discrete", "real"}
        Whether a stump votes +1 or -1 with one weight, or each branch with its own confidence.
    step : {"edge", "exact"}
        Weight of discrete votes: from the edge r, which minimises a bound, Eq. (50), or the one
        that minimises the loss itself.
    shrinkage : float
        Share of each step taken, above 0 and at most 1.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        What a row counts, by its label set: see `deltarank.instance_weights`.
    bins : int or None
        Most bins a feature, 2 to 256; None searches every midpoint of any feature.

    Attributes
    ----------
    features_, thresholds_ : arrays of shape (t,)
        Of each round's stump; values up to the threshold go left.
    votes_ : array of shape (t, 3, m)
        What a stump adds to the scores of rows that go left, right, or have the value missing.
    normalizers_ : array of shape (t,)
        Z of each round, what it multiplied the loss by. Their product bounds the rank loss in
        training, over rows with a pair.
    classes_ : array of shape (m,)
        Names of the labels.

    Notes
    -----
    Scores are comparable within a row only, so there are no `marginal_weights`; `predict` takes
    scores above 0, a mere convention.

    Examples
    --------
    >>> from deltarank import AdaBoostMR
    >>> from deltarank.datasets import SyntheticModel
    >>> X, Y = SyntheticModel.random(n_labels=5, random_state=0).sample(2000, random_state=1)
    >>> AdaBoostMR(n_stumps=200).fit(X, Y).rank(X[:2], top=1)
    array([[1],
           [3]])
    """

    @property
    def estimates_marginals(self) -> bool:
        """Whether scores estimate something of each label on its own: here of pairs only."""
        return False

    def __init__(
        self,
        *,
        n_stumps: int = 500,
        votes: str = "discrete",
        step: str = "edge",
        shrinkage: float = 1.0,
        weight: Weight = "rank",
        bins: int | None = 256,
    ) -> None:
        self.n_stumps = n_stumps
        self.votes = votes
        self.step = step
        self.shrinkage = shrinkage
        self.weight = weight
        self.bins = bins

    def _check_numbers(self) -> None:
        super()._check_numbers()
        choose(STEPS, self.step, "step")
        if self.votes == "real" and self.step == "exact":
            raise ValueError(
                'step="exact" is for discrete votes; real votes have a step a branch: '
                'use votes="discrete" or step="edge"'
            )

    def _labels_to_boost(self, targets: Targets) -> LabelSets:
        if targets.form != "binary":
            return targets.labels
        # A vector of two classes has one pair per row, its class before the other.
        members = targets.labels.sizes.astype(np.int32) * (len(targets.classes) - 1)
        return LabelSets(np.arange(len(members) + 1), members, len(targets.classes))

    def _counted(self, labels: LabelSets, weights: NDArray[np.float64]) -> NDArray[np.bool_]:
        counted = (weights > 0) & ~labels.trivial
        if not counted.any():
            raise ValueError(
                "Y must have a pair to rank in a row that counts; in each of them all labels are "
                "relevant or none is (a vector y needs more than one class)"
            )
        return counted

    def _loss(self, search: StumpSearch, labels: LabelSets, weights: Any) -> Loss:
        return PairLoss(search, labels, weights, exact=self.step == "exact")

    def _finish(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = super()._finish(scores)
        if self._form != "binary":
            return scores
        # Of two classes that are constant both, the difference is no more than one of them.
        return np.diff(scores, axis=1).clip(LAST, FIRST)


class AdaBoostMH(SharedStumpRanker):
    r"""Rank labels by weighted AdaBoost.MH: the univariate loss with stumps shared by all labels.

    It minimises :math:`\sum_i w(y_i) \sum_l e^{-y_{il} F_l(x_i)}`, Eq. (11), consistent for rank
    loss, with the stumps of `AdaBoostMR`: one per round, with votes for all labels. That makes it
    the fair comparison of the two losses. The score is :math:`2 F_l`.

    Parameters
    ----------
    n_stumps : int
        Rounds, a stump each.
    votes : {"discrete", "real"}
        Whether a stump votes +1 or -1 with one weight, or each branch with its own confidence.
    shrinkage : float
        Share of each step taken, above 0 and at most 1.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        What a row counts, by its label set: see `deltarank.instance_weights`.
    bins : int or None
        Most bins a feature, 2 to 256; None searches every midpoint of any feature.

    Attributes
    ----------
    features_, thresholds_, votes_, normalizers_, classes_
        As in `AdaBoostMR`.

    Examples
    --------
    >>> from deltarank import AdaBoostMH
    >>> from deltarank.datasets import SyntheticModel
    >>> X, Y = SyntheticModel.random(n_labels=5, random_state=0).sample(2000, random_state=1)
    >>> AdaBoostMH(n_stumps=100).fit(X, Y).rank(X[:2], top=1)
    array([[1],
           [3]])
    """

    score_scale: ClassVar[float] = 2.0

    def __init__(
        self,
        *,
        n_stumps: int = 500,
        votes: str = "discrete",
        shrinkage: float = 1.0,
        weight: Weight = "rank",
        bins: int | None = 256,
    ) -> None:
        self.n_stumps = n_stumps
        self.votes = votes
        self.shrinkage = shrinkage
        self.weight = weight
        self.bins = bins

    def _loss(self, search: StumpSearch, labels: LabelSets, weights: Any) -> Loss:
        return LabelLoss(search, labels, weights)
