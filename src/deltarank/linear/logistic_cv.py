"""LogisticRanker with C chosen by cross-validation: the whole grid as one job."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.base.parameters import positive_number, unit_number
from deltarank.base.selection import Scoring, choose_value, tabulate
from deltarank.core.progress import Step, progress
from deltarank.core.weights import Weight
from deltarank.linear.fit import Options, fit, within
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.univariate import LabelNumbers, UnivariateRanker
from deltarank.linear.validation import validation

# The paper's grid.
DEFAULT_CS = tuple(10.0**power for power in range(-3, 4))
# Scores of held-out rows settle long before the objective's last digits do.
VALIDATION_TOL = 2e-2


class LogisticRankerCV(UnivariateRanker):
    """Logistic ranker that chooses C by cross-validated rank loss.

    The folds of a value of C are solved together, each value starts from the solution of the one
    before, and all share one set of eigenvectors: the grid costs a few fits, not 35. Further values
    of `balance` are tried at the best C only, and the best of them at its neighbours.

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
        Choose the smallest C whose mean score is within one standard error of the best, and of that
        the smallest balance.
    balances : sequence of float, optional
        Values of `balance` to choose from with C; the smallest goes along all of `Cs`.
    weight, positive_cost, keep_shift, label_weight, balance, loss, penalize_intercept, tol
    max_iter, device, n_jobs
        As in `LogisticRanker`; `tol` is for the final fit.
    unknown : {"expected", "known_part"}
        As in `LogisticRanker`. Chances come from one fit of all rows with C = 1, before the search;
        held-out rows are measured by their known labels.
    prune : float, optional
        As in `LogisticRanker`, for the final fit.
    checkpoint : str, optional
        As in `LogisticRanker`: a folder for the blocks of labels of every C and of the final fit.
    random_state : int, generator or None
        For the folds, when `cv` is an integer.

    Attributes
    ----------
    C_, balance_ : float
        The chosen values, with which all rows were fitted again.
    best_score_ : float
        Their mean score on held-out rows.
    cv_results_ : dict
        ``param_C``, ``param_balance``, ``mean_test_score``, ``std_test_score`` and
        ``split{i}_test_score``, one value for whatever was tried, ascending by C.
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
        balances: Sequence[float] | None = None,
        weight: Weight = "rank",
        positive_cost: LabelNumbers = 1.0,
        keep_shift: bool = False,
        label_weight: LabelNumbers | str | None = None,
        balance: float = 0.0,
        loss: str = "logistic",
        unknown: str = "expected",
        penalize_intercept: bool = False,
        tol: float = 1e-6,
        max_iter: int = 500,
        device: str = "cpu",
        n_jobs: int | None = None,
        prune: float | None = None,
        checkpoint: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.balances = balances
        self.weight = weight
        self.positive_cost = positive_cost
        self.keep_shift = keep_shift
        self.label_weight = label_weight
        self.balance = balance
        self.loss = loss
        self.unknown = unknown
        self.penalize_intercept = penalize_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.n_jobs = n_jobs
        self.prune = prune
        self.checkpoint = checkpoint
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LogisticRankerCV":
        """Choose C on held-out rows, then fit all rows: see `LogisticRanker.fit`.

        Of Dask collections every chunk spreads its own rows over the folds; there `cv` must be an
        integer and `scoring` a name.
        """
        options = self._options()
        Cs = _grid(DEFAULT_CS if self.Cs is None else self.Cs, "Cs", positive_number)
        wanted = [self.balance] if self.balances is None else self.balances
        balances = _grid(wanted, "balances", unit_number)
        # One step per C and further balance, two near the best, and the final fit: about as long,
        # though of one fold, to more digits.
        n_steps = len(Cs) + (len(balances) - 1) + 2 * (len(balances) > 1) + 1
        with (
            validation(self, X, y, sample_weight, Cs[0], balances[0]) as first,
            progress("choosing C", n_steps) as done,
        ):
            tried = _Search(first, Cs, balances, within(options, "folds"), done).run()
            scores = np.column_stack([one.scores for one in tried])
            best = tried[choose_value(scores, self.one_standard_error)]
            done.each = 1
            held_out = first.with_balance(best.balance)
            objective, near = held_out.objective.with_C(best.C), best.solution
            start = None if near is None else objective.median_of_folds(near, len(scores))
            fitted = fit(objective, within(options, "final"), start)
        self.C_, self.balance_ = best.C, best.balance
        self.best_score_ = float(np.mean(best.scores))
        grid = {name: np.array([getattr(one, name) for one in tried]) for name in ("C", "balance")}
        self.cv_results_ = tabulate(grid, scores)
        self._keep(fitted, held_out.constants, held_out.dtype)
        return self


class _Tried(NamedTuple):
    """What was tried, the scores of its folds, and the solution they come from if it is kept."""

    C: float
    balance: float
    scores: list[float]
    solution: Solution | None


class _Search:
    """All values of C at the smallest balance, the other balances at the best of them.

    If one of these is better, so may be the neighbours of C at that balance: they are tried last.
    """

    def __init__(self, held_out: Any, Cs: Any, balances: Any, options: Options, done: Step) -> None:
        self._held_out, self._Cs, self._balances, self._done = held_out, Cs, balances, done
        self._options = options._replace(tol=VALIDATION_TOL, prune=None)

    def run(self) -> list[_Tried]:
        """Return all that was tried, by C and then by balance."""
        first, *others = self._balances
        tried = list(self._walk(first, self._Cs))
        best = int(np.argmax([np.mean(one.scores) for one in tried]))
        for balance in others:
            tried += self._walk(balance, self._Cs[[best]])
        winner = max(tried, key=lambda one: np.mean(one.scores))
        if winner.balance != first:
            near = [place for place in (best - 1, best + 1) if 0 <= place < len(self._Cs)]
            tried += self._walk(winner.balance, self._Cs[near])
        return sorted(tried, key=lambda one: (one.C, one.balance))

    def _walk(self, balance: float, Cs: Any) -> Iterator[_Tried]:
        held_out, options = self._held_out.with_balance(balance), self._options
        if balance != self._balances[0]:
            options = within(options, f"balance={balance:g}")
        begin, done = self._done.at, self._done
        done.each = held_out.steps_at_once(Cs)
        steps = zip(Cs, held_out.path(Cs, options), strict=True)
        for number, (C, (scores, solution)) in enumerate(steps, 1):
            done(max(done.at, begin + number))
            yield _Tried(float(C), float(balance), scores, solution)


def _grid(values: Any, argument: str, check: Callable[[Any, str], float]) -> NDArray[np.float64]:
    """Return the values to try, ascending."""
    grid = np.unique([check(value, f"each value of {argument}") for value in values])
    if not len(grid):
        raise ValueError(f"{argument} must hold at least one value; got none")
    return grid
