"""How each ranker is made, how it is tuned, and what features it wants: one table for all.

The commands and the experiments of the paper know rankers by the names of this table.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from deltarank.core.progress import progress
from deltarank.core.splits import LabelStratifiedKFold
from deltarank.linear.logistic_cv import DEFAULT_CS
from deltarank.metrics import get_scorer
from deltarank.rankers import (
    AdaBoostMH,
    AdaBoostMR,
    AdaBoostRanker,
    BoostedTreeRanker,
    KernelLogisticRanker,
    LabelTreeRanker,
    LogisticRanker,
    LogisticRankerCV,
    LogLinearRanker,
    PairwiseRanker,
    StagedSearchCV,
)

# The paper prints 10, 20, 50, 10^2, ..., 10^4, 2 x 10^4; the filling by 1, 2, 5 is ours.
ROUNDS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
STUMPS_PER_LABEL = (10, 20, 50, 100, 200)
TREES = (20, 50, 100, 200, 500, 1000)
# From the consistent to the balanced loss.
BALANCES = (0.0, 0.5, 1.0)
# A grid of rounds is walked until a further decade brings nothing.
PATIENCE = 10.0


class Tuning(NamedTuple):
    """How parameters are chosen: the folds, their seed, and the values to try.

    `rounds` are of stumps that all labels share, `stumps` of each label's own, `trees` of trees;
    `Cs` of None stands for the grid of `LogisticRankerCV`, and `balances` are for it too. By
    `scoring` all of them are chosen. `categorical` features are numbers of categories;
    `penalize_intercept` is for ``logistic``.
    """

    folds: int = 5
    seed: int = 0
    rounds: Sequence[int] = ROUNDS
    stumps: Sequence[int] = STUMPS_PER_LABEL
    trees: Sequence[int] = TREES
    Cs: Sequence[float] | None = None
    balances: Sequence[float] = (0.0,)
    scoring: Any = "neg_rank_loss"
    categorical: Sequence[int] = ()
    penalize_intercept: bool = False


class Recipe(NamedTuple):
    """How to make a ranker.

    Attributes
    ----------
    plain : callable
        ``plain(weight, value, tuning)`` gives the ranker with that value of its parameter, None
        being the ranker's default. `tuning` serves what is chosen in any case.
    tuned : callable
        ``tuned(weight, tuning)`` gives an estimator that chooses the value by cross-validation.
    parameter : str
        ``"C"`` or ``"rounds"``.
    scale : bool
        Whether features must be on one scale.
    tuned_by_default : bool
        Whether the commands tune it unless told otherwise.
    takes_categories : bool
        Whether it splits categories into sets, and wants their numbers, not columns of 0 and 1.
    """

    plain: Callable[[Any, Any, Tuning], Any]
    tuned: Callable[[Any, Tuning], Any]
    parameter: str
    scale: bool
    tuned_by_default: bool = False
    takes_categories: bool = False


def _given(**parameters: Any) -> dict[str, Any]:
    """Return the parameters that are not None: for others the ranker knows a default."""
    return {name: value for name, value in parameters.items() if value is not None}


def _staged(ranker: Any, rounds: Sequence[int], tuning: Tuning) -> StagedSearchCV:
    return StagedSearchCV(
        ranker,
        rounds=rounds,
        cv=tuning.folds,
        scoring=tuning.scoring,
        patience=PATIENCE,
        random_state=tuning.seed,
    )


def _boosted(family: Any, grid: str) -> Recipe:
    return Recipe(
        lambda weight, value, _: family(weight=weight, **_given(n_stumps=value)),
        lambda weight, tuning: _staged(family(weight=weight), getattr(tuning, grid), tuning),
        "rounds",
        scale=False,
    )


def _kernel(weight: Any, C: float | None, tuning: Tuning) -> KernelLogisticRanker:
    # Its width is always chosen: no one value would do.
    options = {"cv": tuning.folds, "scoring": tuning.scoring, "random_state": tuning.seed}
    return KernelLogisticRanker(C=C, weight=weight, **options)


def _loglinear(weight: Any, rounds: int | None, _: Tuning) -> LogLinearRanker:
    # Only the last stage is kept: a model file needs no other.
    rounds = rounds or LogLinearRanker().n_iterations
    return LogLinearRanker(n_iterations=rounds, stages=[rounds], weight=weight)


def _label_tree(weight: Any, C: float | None, tuning: Tuning) -> LabelTreeRanker:
    return LabelTreeRanker(weight=weight, random_state=tuning.seed, **_given(C=C))


def _boosted_trees(weight: Any, rounds: int | None, tuning: Tuning) -> BoostedTreeRanker:
    return BoostedTreeRanker(
        weight=weight,
        categorical_features=list(tuning.categorical) or None,
        random_state=tuning.seed,
        **_given(n_trees=rounds),
    )


def _search_penalty(ranker: Any, tuning: Tuning) -> Any:
    from sklearn.model_selection import GridSearchCV

    Cs = list(tuning.Cs or DEFAULT_CS)

    class Search(GridSearchCV):
        """A search that tells how many of its fits are done."""

        def fit(self, X: Any, y: Any) -> Any:
            with progress("choosing C", tuning.folds * len(Cs) + 1) as done:
                done.each = 1
                return super().fit(X, y)

    return Search(
        ranker,
        {"C": Cs},
        scoring=get_scorer(tuning.scoring) if isinstance(tuning.scoring, str) else tuning.scoring,
        cv=LabelStratifiedKFold(tuning.folds, random_state=tuning.seed),
    )


RECIPES = {
    "logistic": Recipe(
        lambda weight, C, tuning: LogisticRanker(
            weight=weight, penalize_intercept=tuning.penalize_intercept, **_given(C=C)
        ),
        lambda weight, tuning: LogisticRankerCV(
            Cs=tuning.Cs,
            balances=tuning.balances,
            scoring=tuning.scoring,
            weight=weight,
            cv=tuning.folds,
            penalize_intercept=tuning.penalize_intercept,
            random_state=tuning.seed,
        ),
        "C",
        scale=True,
        tuned_by_default=True,
    ),
    "kernel": Recipe(
        _kernel,
        lambda weight, tuning: _kernel(weight, None, tuning),
        "C",
        scale=True,
        tuned_by_default=True,
    ),
    "label-tree": Recipe(
        _label_tree,
        lambda weight, tuning: _search_penalty(_label_tree(weight, None, tuning), tuning),
        "C",
        scale=True,
    ),
    "adaboost": _boosted(AdaBoostRanker, "stumps"),
    "adaboost-mr": _boosted(AdaBoostMR, "rounds"),
    "adaboost-mh": _boosted(AdaBoostMH, "rounds"),
    "boosted-trees": Recipe(
        _boosted_trees,
        lambda weight, tuning: _staged(_boosted_trees(weight, None, tuning), tuning.trees, tuning),
        "rounds",
        scale=False,
        # On noisy rows a thousand trees rank worse than twenty.
        tuned_by_default=True,
        takes_categories=True,
    ),
    "lllr": Recipe(
        _loglinear,
        lambda weight, tuning: _staged(LogLinearRanker(weight=weight), tuning.rounds, tuning),
        "rounds",
        scale=True,
    ),
    "pairwise": Recipe(
        lambda weight, C, _: PairwiseRanker(weight=weight, **_given(C=C)),
        lambda weight, tuning: _search_penalty(PairwiseRanker(weight=weight), tuning),
        "C",
        scale=True,
    ),
}
