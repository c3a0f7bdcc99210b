"""Rows held out of fits along a path of penalties, and how well they are ranked."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from deltarank.base.ranker import constant_scores, constants_of
from deltarank.base.selection import Split, choose_scorer, split_rows, take_labels
from deltarank.base.targets import Targets
from deltarank.core import memory
from deltarank.core.chunks import is_chunked
from deltarank.core.progress import progress
from deltarank.core.workers import workers
from deltarank.linear.fit import Options, solve_path, within
from deltarank.linear.logistic import LogisticRanker
from deltarank.linear.objective import Objective
from deltarank.linear.path_blocks import bytes_of_path, held_out_scores, require_path
from deltarank.linear.placing import placed_chunks, rows_of
from deltarank.linear.ranker import with_constants
from deltarank.linear.rows.cluster import Folds
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.unknown import weights_of
from deltarank.metrics import SCORERS, StreamingMetric
from deltarank.metrics.table import METRICS

Array = NDArray[Any]
# Scores of each fold's rows at one C, and the solution that they come from if it is kept.
Step = tuple[list[float], Solution | None]


@contextmanager
def validation(
    ranker: Any, X: Any, y: Any, sample_weight: Any, C: float, balance: float
) -> Iterator[Any]:
    """Give what `LogisticRankerCV` validates by: `HeldOutHere` or `HeldOutOnCluster`."""
    if not (is_chunked(X) or is_chunked(y)):
        yield HeldOutHere(ranker, X, y, sample_weight, C, balance)
        return
    n_folds, scorer = ranker.cv, SCORERS.get(ranker.scoring)
    if not isinstance(n_folds, int | np.integer) or isinstance(n_folds, bool) or n_folds < 2:
        raise ValueError(
            "cv must be an integer of at least 2 for Dask collections, whose chunks are split "
            f"where they are; got {n_folds!r}"
        )
    if scorer is None:
        raise ValueError(
            "scoring must be a name for Dask collections, whose rows are scored where they are: "
            f"one of {', '.join(sorted(SCORERS))}; got {ranker.scoring!r}"
        )
    seed = check_random_state(ranker.random_state).randint(2**31 - 1)
    folds = Folds(int(n_folds), int(seed))

    def placed_with(balance: float) -> HeldOutOnCluster:
        data = placed_chunks(client, ranker, X, y, sample_weight, balance)
        objective = ranker._objective(data.rows, C)
        held_out = (objective, data.constants, data.dtype, folds, scorer)
        return HeldOutOnCluster(*held_out, balance, placed_with, ranker._unshifted)

    with workers() as client:
        yield placed_with(balance)


class HeldOutOnCluster(NamedTuple):
    """Folds of the rows on a cluster, scored on its workers."""

    objective: Objective
    constants: Array
    dtype: Any
    folds: Folds
    scorer: Any
    balance: float
    placed_with: Callable[[float], Any]
    unshifted: Callable[[Array], Array]

    def with_balance(self, balance: float) -> "HeldOutOnCluster":
        """Return the same folds, their cells weighed with another balance."""
        return self if balance == self.balance else self.placed_with(balance)

    def steps_at_once(self, Cs: Array) -> int:
        """Return how many values of C are solved for one yield of the path."""
        return 1

    def path(self, Cs: Array, options: Options) -> Iterator[Step]:
        """Yield the scores of each fold at each C, and the solution of all folds."""
        objective = self.objective.with_folds(self.folds)
        require_path(objective)
        rows: Any = objective.rows
        relevant, _, others = rows.counts()
        constants = constants_of(relevant, relevant + others)
        sign = 1 if METRICS[self.scorer.metric].greater_is_better else -1
        metric = StreamingMetric(self.scorer.metric, **self.scorer.options)
        for current, solution in solve_path(objective, Cs, options):
            coef, intercept = current.to_features(solution.point)
            by_label = intercept.reshape(-1, rows.n_folds)
            intercept = self.unshifted(by_label.T).T.reshape(-1)
            linear = with_constants(coef, intercept, constants)
            coef, intercept = (part.astype(self.dtype) for part in linear)
            yield [sign * score for score in rows.measured(metric, coef, intercept)], solution


class HeldOutHere:
    """Splits of rows in this machine's memory; folds of a partition are solved together."""

    def __init__(
        self, ranker: Any, X: Any, y: Any, sample_weight: Any, C: float, balance: float
    ) -> None:
        self._ranker, self._C = ranker, C
        self._X = X = ranker._check_rows(X, fitting=True)
        self._targets = targets = ranker._check_labels(y, X.shape[0])
        self._given = y, sample_weight
        self._scorer = choose_scorer(ranker.scoring, targets)
        self._splits = split_rows(ranker.cv, X, y, targets, ranker.random_state)
        self._folds_of_rows = _as_folds(self._splits, X.shape[0])
        self.dtype = X.dtype
        self._weigh(balance)

    def _weigh(self, balance: float) -> None:
        X, targets, (y, sample_weight) = self._X, self._targets, self._given
        self._balance = balance
        self._weights = weights_of(self._ranker, X, targets, y, sample_weight, balance)
        self._held_out = [
            _held_out(X, y, targets, self._weights, sample_weight, split) for split in self._splits
        ]
        self.constants = constant_scores(targets.labels, self._weights)
        self.objective = self._objective(self._weights)
        folds = self._folds_of_rows
        self._in_folds = None if folds is None else self.objective.with_folds(folds)

    def with_balance(self, balance: float) -> "HeldOutHere":
        """Return the same splits, their cells weighed with another balance."""
        if balance == self._balance:
            return self
        other = copy.copy(self)
        other._weigh(balance)
        return other

    def _objective(self, weights: Array) -> Objective:
        rows = rows_of(self._ranker, self._X, self._targets.labels, weights, self._balance)
        return self._ranker._objective(rows, self._C)

    def path(self, Cs: Array, options: Options) -> Iterator[Step]:
        """Yield the scores of each split at each C, and the solution they come from.

        Splits that are no partition of the rows are solved one by one, without the latter.
        """
        n_folds, objective = len(self._splits), self._in_folds
        if objective is None:
            yield from self._paths_apart(Cs, options)
            return
        if self._goes_in_blocks(Cs):
            yield from self._path_in_blocks(objective, Cs, options)
            return
        require_path(objective)
        for current, solution in solve_path(objective, Cs, options):
            coef, intercept = current.to_features(solution.point)
            each = [slice(fold, None, n_folds) for fold in range(n_folds)]
            yield self._scores([(coef[of_fold], intercept[of_fold]) for of_fold in each]), solution

    def steps_at_once(self, Cs: Array) -> int:
        """Return how many values of C are solved for one yield of the path."""
        return len(Cs) if self._goes_in_blocks(Cs) else 1

    def _goes_in_blocks(self, Cs: Array) -> bool:
        """Tell whether labels go along the whole path block by block, leaving scores alone.

        Text has so many features that coefficients of all labels and folds are too many to hold;
        where labels are solved one by one there is no use in holding them either.
        """
        if self._in_folds is None or self._scorer not in SCORERS.values():
            return False
        rows = self._in_folds.rows
        if rows.takes_newton or not rows.in_jobs:
            return False
        return self._in_folds.takes_dual(*Cs) or bytes_of_path(self._in_folds) > memory.budget()

    def _path_in_blocks(self, objective: Objective, Cs: Array, options: Options) -> Iterator[Step]:
        table, measured = held_out_scores(objective, Cs, options, self._ranker.random_state)
        for place in range(len(Cs)):
            parts = [self._score_table(table[:, place], measured, *fold) for fold in self._folds]
            yield parts, None

    @property
    def _folds(self) -> Iterator[tuple[Array, "HeldOut"]]:
        return zip((test for _, test in self._splits), self._held_out, strict=True)

    def _score_table(
        self, table: Array, measured: Array, test: Array, held_out: "HeldOut"
    ) -> float:
        """Score the rows of a fold by scores (m, rows) of the measured rows."""
        taken = np.flatnonzero(np.isin(test, measured))
        scores = table[:, np.searchsorted(measured, test[taken])].T
        constant = ~np.isnan(held_out.constants)
        scores = self._ranker._unshifted(scores)
        scores[:, constant] = held_out.constants[constant]
        named, counts = isinstance(held_out.Y, list), held_out.sample_weight
        scorer: Any = self._scorer
        metric = StreamingMetric(scorer.metric, **scorer.options)
        metric.update(
            [held_out.Y[row] for row in taken] if named else held_out.Y[taken],
            scores,
            None if counts is None else counts[taken],
            classes=self._ranker.classes_ if named else None,
        )
        sign = 1 if METRICS[scorer.metric].greater_is_better else -1
        return sign * metric.result()

    def _paths_apart(self, Cs: Array, options: Options) -> Iterator[Step]:
        paths = []
        for number, (train, _) in enumerate(self._splits):
            apart = self._objective(_only(self._weights, train))
            paths.append(solve_path(apart, Cs, within(options, f"split-{number}")))
        for _ in Cs:
            with progress("solving folds", len(paths)) as done:
                done.each = 1
                steps = [next(path) for path in paths]
            solved = [current.to_features(solution.point) for current, solution in steps]
            yield self._scores(solved), None

    def _scores(self, coefficients: list[tuple[Array, Array]]) -> list[float]:
        """Score coefficients fitted on the other rows by the rows held out."""
        parts = zip(coefficients, self._held_out, strict=True)
        return [self._score(*linear, held_out) for linear, held_out in parts]

    def _score(self, coef: Array, intercept: Array, held_out: "HeldOut") -> float:
        names = ("weight", "positive_cost", "keep_shift", "balance", "loss", "device")
        ranker = LogisticRanker(**{name: getattr(self._ranker, name) for name in names})
        for name in ("classes_", "_form", "n_features_in_"):
            setattr(ranker, name, getattr(self._ranker, name))
        constants = held_out.constants
        ranker._set_coefficients(coef, ranker._unshifted(intercept), constants, held_out.X.dtype)
        return self._scorer(ranker, held_out.X, held_out.Y, sample_weight=held_out.sample_weight)


class HeldOut(NamedTuple):
    """Rows held out of a fit, and the scores of the labels that are constant in the others."""

    X: Any
    Y: Any
    sample_weight: Array | None
    constants: NDArray[np.float64]


def _held_out(
    X: Any, y: Any, targets: Targets, weights: Array, sample_weight: Any, split: Split
) -> HeldOut:
    train, test = split
    counts = None if sample_weight is None else np.asarray(sample_weight)[test]
    constants = constant_scores(targets.labels, _only(weights, train))
    return HeldOut(X[test], take_labels(y, targets, test), counts, constants)


def _only(weights: Array, rows: Array) -> Array:
    """Return the weights with those of all other rows set to 0."""
    kept = np.zeros_like(weights)
    kept[rows] = weights[rows]
    return kept


def _as_folds(splits: list[Split], n_rows: int) -> NDArray[np.int64] | None:
    """Return the one fold in which each row is held out, or None if splits are not such folds."""
    times = np.zeros(n_rows, np.int64)
    folds = np.zeros(n_rows, np.int64)
    for fold, (train, test) in enumerate(splits):
        times[test] += 1
        folds[test] = fold
        if len(train) + len(test) != n_rows or np.isin(test, train).any():
            return None
    return folds if (times == 1).all() else None
