"""LLLR: log-linear models for label ranking, the paper's rival of weighted logistic regression."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from deltarank.base.parameters import positive_integer, positive_number
from deltarank.base.publishing import published_stages
from deltarank.core import memory
from deltarank.core.choices import choose
from deltarank.core.progress import progress
from deltarank.core.weights import Weight
from deltarank.pairs.objective import PAIR_LOSSES
from deltarank.pairs.pairwise import TOO_LARGE, PairProblem, PairwiseLinearRanker, pair_problem
from deltarank.pairs.parallel_update import ParallelUpdate, bytes_of_update

# Updates this many times slower than on well-scaled features are hopeless.
HOPELESS = 1000.0


class LogLinearRanker(PairwiseLinearRanker):
    r"""Rank labels by a log-linear model of label pairs (LLLR), the logistic case of Eq. (18).

    With scores :math:`h_l(x) = \theta_l \cdot x + b_l` it minimises

    .. math:: \sum_i w(y_i) \sum_{(p,q): y_{ip} > y_{iq}} \log(1 + e^{-(h_p(x_i) - h_q(x_i))}),

    by default through the parallel update of Dekel, Manning and Singer (2003), Eq. (46), started at
    zero. Every update lowers the loss; stopping early is the regularisation. The loss is not
    consistent for the rank loss: see `LogisticRanker` for one that is.

    Updates are as small as the largest row of X demands, so **features must be scaled**:
    standardise them, or scale them to [0, 1]. There is a warning where updates can hardly move.

    Parameters
    ----------
    n_iterations : int
        Number of parallel updates; with L-BFGS, the largest number of passes over the data.
    algorithm : {"parallel", "lbfgs"}
        The second goes straight to the minimum, with a ridge if `C` is given.
    stages : sequence of int, optional
        Numbers of iterations whose coefficients are kept for `staged_decision_function`; by default
        1, 2, 5, 10, 20, 50, ... and the last. Each takes as much memory as `coef_`.
    C : float, optional
        Inverse of the strength of a ridge, for L-BFGS; none by default.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        What a pair of a row counts: see `PairwiseRanker`.
    tol : float
        For L-BFGS: see `PairwiseRanker`.

    Attributes
    ----------
    coef_ : array of shape (m, d)
    intercept_ : array of shape (m,)
        See `PairwiseRanker`.
    classes_ : array of shape (m,)
        Names of the labels.
    n_iter_ : int
    rho_ : float
        The update's normaliser, twice the largest absolute sum of a row's features and 1.
    loss_curve_ : array of shape (n_iterations,)
        Loss before each update; like `rho_` and the next three, of the parallel update only.
    stages_ : array of shape (k,)
    stage_coef_ : array of shape (k, m, d)
    stage_intercept_ : array of shape (k, m)
    converged_ : bool
        Like `objective_`, of L-BFGS only.
    objective_ : float

    Examples
    --------
    >>> from deltarank import LogLinearRanker
    >>> from deltarank.datasets import SyntheticModel
    >>> X, Y = SyntheticModel.random(n_labels=5, random_state=0).sample(500, random_state=1)
    >>> ranker = LogLinearRanker(n_iterations=100).fit(X, Y)
    >>> bool((ranker.loss_curve_[1:] < ranker.loss_curve_[:-1]).all())
    True
    >>> [scores.shape for scores in ranker.staged_decision_function(X, at=[10, 100])]
    [(500, 5), (500, 5)]
    """

    rounds_parameter: ClassVar[str] = "n_iterations"

    def __init__(
        self,
        *,
        n_iterations: int = 1000,
        algorithm: str = "parallel",
        stages: Sequence[int] | None = None,
        C: float | None = None,
        weight: Weight = "rank",
        tol: float = 1e-6,
    ) -> None:
        self.n_iterations = n_iterations
        self.algorithm = algorithm
        self.stages = stages
        self.C = C
        self.weight = weight
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LogLinearRanker":
        """Fit all labels: for the parameters see `LogisticRanker.fit`."""
        stages = self._kept_stages()
        lengths = iter(np.diff(stages, prepend=0))
        with progress("updating", self.n_iterations) as done:
            done.each = next(lengths)
            for _ in self.fit_stages(X, y, sample_weight, stages=stages):
                done.each = next(lengths, 0)
        return self

    def fit_stages(
        self, X: Any, y: Any, sample_weight: Any = None, *, stages: Any
    ) -> Iterator["LogLinearRanker"]:
        """Fit some numbers of iterations in turn, each going on where the one before stopped.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        stages : sequence of int
            Numbers of iterations, ascending, at most `n_iterations`. L-BFGS knows only its end.

        Yields
        ------
        ranker
            This one, fitted with this many iterations and no more.

        Examples
        --------
        >>> import numpy as np
        >>> X, Y = np.array([[0.0], [1.0], [2.0]]), np.array([[1, 0], [1, 0], [0, 1]])
        >>> ranker = LogLinearRanker(n_iterations=100)
        >>> [fitted.n_iter_ for fitted in ranker.fit_stages(X, Y, stages=[10, 100])]
        [10, 100]
        """
        wanted = np.asarray(stages)
        yield from published_stages(self, lambda it: it._fit_rows(X, y, sample_weight, wanted))

    def _fit_rows(
        self, X: Any, y: Any, sample_weight: Any, stages: NDArray[np.int64]
    ) -> Iterator[None]:
        fit = choose(_ALGORITHMS, self.algorithm, "algorithm")
        positive_integer(self.n_iterations, "n_iterations")
        positive_number(self.tol, "tol")
        if self.C is not None:
            positive_number(self.C, "C")
        for name in _OF_ONE_ALGORITHM:
            self.__dict__.pop(name, None)
        X = self._check_rows(X, fitting=True)
        targets = self._check_labels(y, X.shape[0])
        problem = pair_problem(targets, y, self.weight, sample_weight)
        yield from fit(self, X, problem, stages)

    def _kept_stages(self) -> NDArray[np.int64]:
        if self.stages is None:
            decades = 10 ** np.arange(19, dtype=np.int64)
            grid = np.multiply.outer(decades[:18], [1, 2, 5]).ravel()
            grid = grid[grid < self.n_iterations]
            return np.append(grid, self.n_iterations)
        wanted = np.unique([positive_integer(stage, "each of stages") for stage in self.stages])
        if not len(wanted) or wanted[-1] > self.n_iterations:
            raise ValueError(
                f"stages must be numbers of iterations from 1 to n_iterations="
                f"{self.n_iterations}; got {list(self.stages)!r}"
            )
        return wanted

    def _fit_parallel(
        self, X: Any, problem: PairProblem, kept: NDArray[np.int64]
    ) -> Iterator[None]:
        shape = problem.labels.n_labels, X.shape[1] + 1
        size = bytes_of_update(X.shape[0], X.dtype) + len(kept) * X.dtype.itemsize
        work = f"LogLinearRanker of {shape[0]} labels, {X.shape[1]} features and {len(kept)} stages"
        memory.require(shape[0] * shape[1] * size, work, TOO_LARGE)
        theta = np.zeros(shape)
        update: ParallelUpdate | None = None
        losses = np.zeros(kept[-1])
        self.rho_ = 2.0
        if problem.weights[:, 0].any():
            update = ParallelUpdate(X, problem.labels, problem.weights)
            self.rho_ = update.rho
            self._warn_if_hopeless(update)
        self.stages_, before = kept, 0
        for at, stage in enumerate(kept):
            with progress("updating", stage - before) as done:
                for iteration in range(before, stage):
                    losses[iteration], step = update(theta) if update else (0.0, 0.0)
                    theta += step
                    done(iteration + 1 - before)
            before = stage
            self._set(X, problem, theta[:, :-1], theta[:, -1])
            if not at:
                self.stage_coef_ = np.zeros((len(kept), *self.coef_.shape), X.dtype)
                self.stage_intercept_ = np.zeros((len(kept), len(self.coef_)), X.dtype)
            self.stage_coef_[at], self.stage_intercept_[at] = self.coef_, self.intercept_
            self.n_iter_, self.loss_curve_ = int(stage), losses[:stage]
            yield

    def _fit_lbfgs(self, X: Any, problem: PairProblem, kept: NDArray[np.int64]) -> Iterator[None]:
        loss, C = PAIR_LOSSES["logistic"], np.inf if self.C is None else self.C
        self._set(X, problem, *self._minimise(X, problem, loss, C=C, limit="n_iterations"))
        yield

    def _warn_if_hopeless(self, update: ParallelUpdate) -> None:
        slowness = update.slowness()
        if slowness > HOPELESS:
            warnings.warn(
                f"the features are scaled so unevenly that most coefficients move about "
                f"{slowness:.0e} times too slowly (rho={update.rho:.1e}, the largest absolute row "
                "sum, rules the steps); standardise the features, or use algorithm='lbfgs'",
                ConvergenceWarning,
                stacklevel=4,
            )

    def staged_decision_function(
        self, X: Any, at: Sequence[int] | None = None
    ) -> Iterator[NDArray[Any]]:
        """Yield the scores (n, m) after each of some numbers of iterations.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        at : sequence of int, optional
            Numbers of iterations, ascending, of those kept, `stages_`; all of them by default.
        """
        check_is_fitted(self)
        if not hasattr(self, "stages_"):
            raise ValueError("only algorithm='parallel' has stages; L-BFGS has its minimum alone")
        wanted = self.stages_ if at is None else np.asarray(at)
        missing = wanted[~np.isin(wanted, self.stages_)]
        if len(missing) or (np.diff(wanted) <= 0).any():
            raise ValueError(
                f"at must hold numbers of iterations that were kept, ascending: "
                f"{', '.join(map(str, self.stages_))}; got {list(wanted)}; "
                "to keep others, name them in stages before fit"
            )
        return self._staged(self._check_rows(X), np.searchsorted(self.stages_, wanted))

    def _staged(self, X: Any, positions: NDArray[np.intp]) -> Iterator[NDArray[Any]]:
        for at in positions:
            if self.stages_[at] > self.n_iter_:
                raise ValueError(
                    f"at must end at the last iteration fitted, {self.n_iter_}, where the fit "
                    f"stopped; got {self.stages_[at]}: fit again"
                )
            scores = self._linear_scores(X, self.stage_coef_[at], self.stage_intercept_[at])
            yield scores[:, 0] if self._form == "binary" else scores


_OF_ONE_ALGORITHM = (
    "rho_", "loss_curve_", "stages_", "stage_coef_", "stage_intercept_", "converged_", "objective_",
)  # fmt: skip
_ALGORITHMS = {
    "parallel": LogLinearRanker._fit_parallel,
    "lbfgs": LogLinearRanker._fit_lbfgs,
}
