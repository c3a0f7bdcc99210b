"""The boosters of the factorial: a loss, whose stumps, what a stump minimises, how long its steps.

Discrete votes come with the criteria "entropy" and "error", real votes with "z". All search every
midpoint of every feature, but for the arms that say otherwise.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.boosting.bins import bin_features
from deltarank.boosting.kernels.votes import add_label_votes, predict_label_votes
from deltarank.boosting.losses import Loss
from deltarank.boosting.search import StumpSearch, Tiles
from deltarank.core.kernels.lanes import LANES
from deltarank.core.labels import LabelSets
from deltarank.rankers import AdaBoostMH, AdaBoostMR, AdaBoostRanker, StagedSearchCV

VOTES = {"entropy": "discrete", "error": "discrete", "z": "real"}
# Short steps need ten times the rounds. Grids are walked until this many times the best number
# brings nothing better.
GRIDS = {
    1.0: (10, 20, 50, 100, 200, 500, 1000, 2000),
    0.1: (50, 100, 200, 500, 1000, 2000, 5000),
}
PATIENCE = 5.0


class SharedPairs(AdaBoostMR):
    """AdaBoost.MR with any criterion for its stumps."""

    def __init__(
        self,
        *,
        n_stumps: int = 500,
        criterion: str = "error",
        shrinkage: float = 1.0,
        bins: int | None = None,
    ) -> None:
        super().__init__(n_stumps=n_stumps, votes=VOTES[criterion], shrinkage=shrinkage, bins=bins)
        self.criterion = criterion

    @property
    def _criterion(self) -> str:
        return self.criterion


class SharedLabels(AdaBoostMH):
    """AdaBoost.MH with any criterion for its stumps."""

    def __init__(
        self,
        *,
        n_stumps: int = 500,
        criterion: str = "error",
        shrinkage: float = 1.0,
        bins: int | None = None,
    ) -> None:
        super().__init__(n_stumps=n_stumps, votes=VOTES[criterion], shrinkage=shrinkage, bins=bins)
        self.criterion = criterion

    @property
    def _criterion(self) -> str:
        return self.criterion


class OwnPairs(SharedPairs):
    """AdaBoost.MR whose weak hypothesis is a stump for each label.

    AdaBoost.MR takes any hypothesis of rows and labels. Its edge is a sum over labels, so that the
    best stumps are those that are best for each label; the length of a discrete step is common to
    them all.
    """

    _predict_votes: ClassVar[Any] = staticmethod(predict_label_votes)

    def _boost(
        self, X: Any, labels: LabelSets, weights: NDArray[np.float64], stages: list[int]
    ) -> Iterator[None]:
        bins = bin_features(X, self.bins)
        tiles = Tiles(labels, bins)
        search = StumpSearch(bins, tiles, self.criterion)
        loss = self._loss(search, labels, weights)
        loss.weigh()
        rounds: list[tuple[NDArray[Any], ...]] = []
        gains = True
        for stage in stages:
            while gains and len(rounds) < stage:
                made = self._round(search, loss, len(weights) * labels.n_labels)
                gains = made is not None
                rounds += [made] if made is not None else []
            self._keep(rounds, labels.n_labels)
            yield

    def _round(
        self, search: StumpSearch, loss: Loss, n_cells: int
    ) -> tuple[NDArray[Any], ...] | None:
        """Find a stump for each label, add their votes and weigh the pairs anew."""
        bins, tiles = search.bins, search.tiles
        stumps = search.per_label(np.arange(len(tiles)))
        votes = self._votes(loss, stumps, n_cells)
        if votes is None:
            return None
        for tile in range(len(tiles)):
            lanes = slice(tile * LANES, (tile + 1) * LANES)
            features = stumps.feature[lanes]
            codes, missing = bins.columns(features), bins.n_values[features]
            add_label_votes(codes, stumps.cut[lanes], missing, votes[:, lanes], tiles.scores[tile])
        thresholds = bins.threshold(stumps.feature, stumps.cut)
        made = (stumps.feature, thresholds, votes)
        return (*map(tiles.to_labels, made), np.array(loss.weigh()))

    def _keep(self, rounds: list[tuple[NDArray[Any], ...]], n_labels: int) -> None:
        shapes = ((-1, n_labels), (-1, n_labels), (-1, 3, n_labels), (-1,))
        parts = zip(*rounds, strict=True) if rounds else ((), (), (), ())
        kept = [np.array(part).reshape(s) for part, s in zip(parts, shapes, strict=True)]
        self.features_, self.thresholds_ = kept[0].astype(np.int32), kept[1]
        self.votes_, self.normalizers_ = kept[2], kept[3]


def _own_labels(criterion: str, shrinkage: float, bins: int | None) -> AdaBoostRanker:
    """Return WBR-AB: a booster for each label."""
    votes = VOTES[criterion]
    return AdaBoostRanker(criterion=criterion, votes=votes, shrinkage=shrinkage, bins=bins)


class Arm(NamedTuple):
    """One cell of the factorial."""

    loss: str
    stumps: str
    criterion: str
    shrinkage: float
    bins: int | None = None
    most: int | None = None

    def search(self, rounds: int, folds: int, seed: int) -> StagedSearchCV:
        """Return what tunes the number of rounds, up to a number, inside a training set."""
        ranker = MAKERS[self.loss, self.stumps](
            criterion=self.criterion, shrinkage=self.shrinkage, bins=self.bins
        )
        grid = self.grid(rounds)
        return StagedSearchCV(ranker, rounds=grid, cv=folds, patience=PATIENCE, random_state=seed)

    def grid(self, rounds: int) -> list[int]:
        """Return the numbers of rounds to try, none above `rounds` or the arm's own limit."""
        most = min(rounds, self.most or rounds)
        grid = GRIDS[self.shrinkage]
        return [number for number in grid if number <= most] or [grid[0]]


MAKERS: dict[tuple[str, str], Any] = {
    ("pairwise", "shared"): SharedPairs,
    ("pairwise", "own"): OwnPairs,
    ("univariate", "shared"): SharedLabels,
    ("univariate", "own"): _own_labels,
}
LOSSES, STUMPS = ("pairwise", "univariate"), ("shared", "own")
FACTORIAL = {
    f"{loss}, {stumps}, {criterion}, {shrinkage:g}": Arm(loss, stumps, criterion, shrinkage)
    for loss, stumps, criterion, shrinkage in product(LOSSES, STUMPS, VOTES, GRIDS)
}
# The paper's three, exact and in 256 bins: its grid for WBR-AB ends at 200 stumps per label. AB.MR
# is also held to 20 stumps, as footnote 3 says that it was.
MOST_20, MOST_200 = "AB.MR, at most 20", "WBR-AB, at most 200"
PAPERS = {
    "AB.MR": FACTORIAL["pairwise, shared, error, 1"],
    "WBR-AB": FACTORIAL["univariate, own, entropy, 1"]._replace(most=200),
    "AB.MH": FACTORIAL["univariate, shared, error, 1"],
}
BINNED = {f"{name}, 256 bins": arm._replace(bins=256) for name, arm in PAPERS.items()}
ARMS = {
    **FACTORIAL,
    MOST_200: PAPERS["WBR-AB"],
    MOST_20: PAPERS["AB.MR"]._replace(most=20),
    **BINNED,
}
