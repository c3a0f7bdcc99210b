"""LogisticRanker with C chosen by cross-validation: the whole grid as one job."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.base.parameters import positive_number
from deltarank.base.ranker import constant_scores, training_weights
from deltarank.base.selection import (
    Scoring,
    Split,
    choose_scorer,
    choose_value,
    split_rows,
    tabulate,
    take_labels,
)
from deltarank.base.targets import Targets
from deltarank.core.progress import progress
from deltarank.core.weights import Weight
from deltarank.linear.logistic import LogisticRanker
from deltarank.linear.path import Pass, solve, solve_path
from deltarank.linear.solvers.solution import Solution

# The paper's grid.
DEFAULT_CS = tuple(10.0**power for power in range(-3, 4))
# Scores of held-out rows settle long before the objective's last digits do.
VALIDATION_TOL = 2e-2
Coefficients = tuple[NDArray[Any], NDArray[Any]]


class LogisticRankerCV(LogisticRanker):
    """Logistic ranker that chooses C by cross-validated rank loss.

    The folds of a value of C are solved together, each value starts from the solution of the one
    before, and all share one set of eigenvectors: the grid costs a few fits, not 35.

    Parameters
    ----------
    Cs : sequence of float, optional
        Values to try; 10^-3, ..., 10^3 by default.
    cv : int, splitter or iterable of (train, test)
        An integer stands for as many folds stratified by label: see `LabelStratifiedKFold`.
    scoring : str or callable
        A name of `deltarank.metrics.SCORERS`, or ``scorer(ranker, X, Y)``, greater being better.
        With a vector of classes in place of label sets, a name stands for the accuracy.
    one_standard_error : bool
        Choose the smallest C whose mean score is within one standard error of the best.
    weight, positive_cost, penalize_intercept, tol, max_iter, device
        As in `LogisticRanker`; `tol` is for the final fit.
    random_state : int, generator or None
        For the folds, when `cv` is an integer.

    Attributes
    ----------
    C_ : float
        The chosen value, with which all rows were fitted again.
    best_score_ : float
        Its mean score on held-out rows.
    cv_results_ : dict
        ``param_C``, ``mean_test_score``, ``std_test_score`` and ``split{i}_test_score``, a value a
        C, ascending.
    coef_, intercept_, classes_, n_iter_, converged_, objective_, gradient_norm_
        Of the final fit, as in `LogisticRanker`.

    Examples
    --------
    >>> from deltarank import LogisticRankerCV
    >>> from deltarank.datasets import SyntheticModel
    >>> X, Y = SyntheticModel.random(n_labels=5, random_state=0).sample(500, random_state=1)
    >>> ranker = LogisticRankerCV(random_state=0).fit(X, Y)
    >>> ranker.C_ in (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3)
    True
    """

    def __init__(
        self,
        *,
        Cs: Sequence[float] | None = None,
        cv: Any = 5,
        scoring: Scoring = "neg_rank_loss",
        one_standard_error: bool = False,
        weight: Weight = "rank",
        positive_cost: float | str = 1.0,
        penalize_intercept: bool = False,
        tol: float = 1e-6,
        max_iter: int = 500,
        device: str = "cpu",
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.weight = weight
        self.positive_cost = positive_cost
        self.penalize_intercept = penalize_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LogisticRankerCV":
        """Choose C on held-out rows, then fit all rows: see `LogisticRanker.fit`."""
        values = DEFAULT_CS if self.Cs is None else self.Cs
        Cs = np.unique([positive_number(C, "each value of Cs") for C in values])
        if not len(Cs):
            raise ValueError("Cs must hold at least one value; got none")
        self._check_numbers()
        X = self._check_rows(X, fitting=True)
        targets = self._check_labels(y, X.shape[0])
        scorer = choose_scorer(self.scoring, targets)
        weights = training_weights(targets, y, self.weight, sample_weight)
        data = self._place(X, targets, weights, Cs[0])
        splits = split_rows(self.cv, X, y, targets, self.random_state)
        held_out = [_held_out(X, y, targets, weights, sample_weight, split) for split in splits]
        scores = np.empty((len(splits), len(Cs)))
        solutions: list[Solution | None] = []
        # One step a C, and the final fit: about as long, though of one fold, to more digits.
        with progress("choosing C", len(Cs) + 1) as done:
            done.each = 1
            path = self._path(data, X, targets, weights, splits, Cs)
            for column, (fitted, solution) in enumerate(path):
                solutions.append(solution)
                for fold, (coef, intercept) in enumerate(fitted):
                    scores[fold, column] = self._score(scorer, coef, intercept, held_out[fold])
                done(column + 1)
            best = choose_value(scores, self.one_standard_error)
            self.C_ = float(Cs[best])
            self.best_score_ = float(scores[:, best].mean())
            self.cv_results_ = tabulate("C", Cs, scores)
            near = solutions[best]
            data = data.at(self.C_)
            start = None if near is None else data.median_of_folds(near, len(splits))
            solution = solve(data, tol=self.tol, max_iter=self.max_iter, start=start)
        constants = constant_scores(targets.labels, weights)
        self._keep(data.to_features(solution.point), solution, constants, X.dtype)
        return self

    def _path(
        self,
        data: Pass,
        X: Any,
        targets: Targets,
        weights: NDArray[Any],
        splits: list[Split],
        Cs: NDArray[np.float64],
    ) -> Iterator[tuple[list[Coefficients], Solution | None]]:
        """Yield, at each C, the coefficients of each split, and the solution they come from.

        Splits that are no partition of the rows are solved one by one, without the latter.
        """
        limits: dict[str, Any] = {"tol": VALIDATION_TOL, "max_iter": self.max_iter}
        folds = _as_folds(splits, len(weights))
        if folds is None:
            passes = [self._place(X, targets, _only(weights, train), Cs[0]) for train, _ in splits]
            paths = [solve_path(apart, Cs, **limits) for apart in passes]
            for _ in Cs:
                with progress("solving folds", len(paths)) as done:
                    done.each = 1
                    steps = [next(path) for path in paths]
                yield [current.to_features(found.point) for current, found in steps], None
        else:
            for current, found in solve_path(data.with_folds(folds), Cs, **limits):
                coef, intercept = current.to_features(found.point)
                each = [slice(fold, None, len(splits)) for fold in range(len(splits))]
                yield [(coef[mine], intercept[mine]) for mine in each], found

    def _score(
        self,
        scorer: Callable[..., float],
        coef: NDArray[Any],
        intercept: NDArray[Any],
        held_out: "HeldOut",
    ) -> float:
        """Score coefficients fitted on the other rows by the rows held out."""
        ranker = LogisticRanker(
            weight=self.weight, positive_cost=self.positive_cost, device=self.device
        )
        for name in ("classes_", "_form", "n_features_in_"):
            setattr(ranker, name, getattr(self, name))
        ranker._set_coefficients(coef, intercept, held_out.constants, held_out.X.dtype)
        return scorer(ranker, held_out.X, held_out.Y, sample_weight=held_out.sample_weight)


class HeldOut(NamedTuple):
    """Rows held out of a fit, and the scores of the labels that are constant in the others."""

    X: Any
    Y: Any
    sample_weight: NDArray[Any] | None
    constants: NDArray[np.float64]


def _held_out(
    X: Any, y: Any, targets: Targets, weights: NDArray[Any], sample_weight: Any, split: Split
) -> HeldOut:
    train, test = split
    counts = None if sample_weight is None else np.asarray(sample_weight)[test]
    constants = constant_scores(targets.labels, _only(weights, train))
    return HeldOut(X[test], take_labels(y, targets, test), counts, constants)


def _only(weights: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
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
