"""WBR-LR: weighted logistic regression, all labels as one matrix problem."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from deltarank.base.parameters import positive_integer, positive_number
from deltarank.base.ranker import balanced, constant_scores, training_weights
from deltarank.base.targets import Targets
from deltarank.core.choices import choose
from deltarank.core.chunks import is_chunked
from deltarank.core.devices import (
    device_ranking,
    device_scores,
    fitting_device,
    scoring_device,
)
from deltarank.core.weights import Weight
from deltarank.linear.blocks import Fitted, Options, fit_blocks
from deltarank.linear.chunked import placed_chunks
from deltarank.linear.growth import Memory, grown, remembered
from deltarank.linear.last_fit import LastFit
from deltarank.linear.path import Pass, place
from deltarank.linear.ranker import LinearRanker
from deltarank.linear.rows.local import LocalPass
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import State

# The univariate losses that Wu, Li, Xu and Zhu (2021) compare, by the options that give them; rows
# without a pair to rank weigh 0. With P the relevant and N the irrelevant labels of a row:
SUCCESSOR_LOSSES: dict[str, dict[str, Any]] = {
    # (1/m) sum_l: consistent for precision at k, and for rank loss counted in pairs.
    "u1": {"weight": "uniform"},
    # 1 / (|P| |N|) sum_l: consistent for rank loss, Eq. (12) with (21).
    "u2": {"weight": "rank"},
    # (1/|P|) sum_P + (1/|N|) sum_N: not consistent for any weighted rank loss, unless all label
    # sets of an x have one size; it bounds the rank loss from above.
    "u3": {"weight": "uniform", "positive_cost": "balanced"},
    # 1 / min(|P|, |N|) sum_l: consistent for rank loss weighted so, not by (21).
    "u4": {"weight": "min"},
}


class LogisticRanker(LinearRanker):
    r"""Rank labels by weighted logistic regression, consistent for rank loss, Eq. (12).

    For every label l it minimises

    .. math:: \sum_i w(y_i) \log(1 + e^{-y_{il} h_l(x_i)}) + \frac{1}{2C} \|\theta_l\|^2,
              \quad h_l(x) = \theta_l \cdot x + b_l,

    to the same optimum as a loop of weighted logistic regressions would, in a few dozen products of
    X with all labels' coefficients at once.

    Parameters
    ----------
    C : float
        Inverse of the penalty's strength, as in scikit-learn.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        What a row counts, by its label set: see `deltarank.instance_weights`. Normalised to mean 1
        over the rows with a pair to rank, so that C means the same for every weight.
    positive_cost : float or "balanced"
        What a relevant cell costs beside an irrelevant one. Any number keeps consistency.
        "balanced" gives a row's relevant cells together as much weight as its irrelevant ones,
        half of m w(y), which is not consistent in general: see `SUCCESSOR_LOSSES`.
    penalize_intercept : bool
        Penalise the intercept like a coefficient, as Mallet does.
    tol : float
        Stop a label when the estimated gap to its least objective is below this share of it.
    max_iter : int
        Largest number of passes over the data.
    warm_start : bool
        Start from the coefficients of the last fit. Rows may have been added or left out; labels
        are matched by name, and new ones start afresh. Features must be the same. If rows were only
        added, behind the others, what the last fit found over those is not computed again; for that
        the ranker remembers it, until it is pickled (up to about 350 MB, mostly far less).
    device : {"cpu", "cuda", "auto"} or "cuda:<number>"
        Where to fit and to score. "auto" takes a CUDA device if PyTorch sees one and the data are
        not small. The minimum is the same; its last digits are those of float32.
    n_jobs : int, optional
        Fit so many blocks of labels at a time as jobs of their own, through joblib: processes by
        default, or what ``joblib.parallel_config`` says, such as ``backend="dask"``. None is 1,
        unless it says otherwise: one job's threads already use all cores of a machine.
    prune : float, optional
        Leave out coefficients smaller than this in size as soon as their block of labels is
        solved, and keep the others sparse: for so many labels that all would not fit in memory.
        `prune_effect_` tells what that does to scores.
    checkpoint : str, optional
        A folder in which every block of labels is kept once it is solved. A fit that was killed
        goes on from there, to the same result; a folder of other data or parameters is refused.

    Attributes
    ----------
    coef_ : array of shape (m, d)
        With `prune` a CSC array, feature after feature.
    intercept_ : array of shape (m,)
        A label never relevant in training has no coefficients and scores below all others; one
        always relevant, above.
    classes_ : array of shape (m,)
        Names of the labels.
    n_iter_ : array of shape (m,)
        Passes each label took.
    converged_ : array of shape (m,)
    objective_ : array of shape (m,)
    gradient_norm_ : array of shape (m,)
        Of the objective in the solver's coordinates, where it stopped.
    prune_effect_ : array of shape (m,)
        With `prune`: no score of a row x changed by more than this times the length of x.

    See Also
    --------
    LogisticRankerCV : Chooses C by cross-validation.
    SUCCESSOR_LOSSES : The losses u1 to u4 of Wu et al. (2021) as options of this ranker.

    Examples
    --------
    >>> from deltarank import LogisticRanker
    >>> from deltarank.datasets import SyntheticModel
    >>> model = SyntheticModel.random(n_labels=5, random_state=0)
    >>> X, Y = model.sample(2000, random_state=1)
    >>> ranker = LogisticRanker(C=1.0).fit(X, Y)
    >>> ranker.rank(X[:2], top=3)
    array([[1, 2, 3],
           [3, 2, 4]])
    >>> model.bayes_scores(X[:2]).argsort(axis=1)[:, :-4:-1]  # the best order there is
    array([[1, 2, 3],
           [3, 2, 4]])
    >>> regret = 1 - ranker.score(*model.sample(20_000, random_state=2)) - model.bayes_risk().value
    >>> abs(regret) < 0.005
    True
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        weight: Weight = "rank",
        positive_cost: float | str = 1.0,
        penalize_intercept: bool = False,
        tol: float = 1e-6,
        max_iter: int = 500,
        warm_start: bool = False,
        device: str = "cpu",
        n_jobs: int | None = None,
        prune: float | None = None,
        checkpoint: str | None = None,
    ) -> None:
        self.C = C
        self.weight = weight
        self.positive_cost = positive_cost
        self.penalize_intercept = penalize_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.device = device
        self.n_jobs = n_jobs
        self.prune = prune
        self.checkpoint = checkpoint

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y: such a cell has no loss."""
        return True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LogisticRanker":
        """Fit all labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Dense in any order, float32 or float64, memory-mapped or not; or sparse. Or a Dask
            array (its chunks dense or CSR) or data frame, cut by rows: it stays on the workers of
            the Dask client in use, and only coefficients and gradients travel.
        y : array, sparse matrix, data frame or list of label sets
            Zero-one matrix of shape (n, m), label sets, or a vector of classes, one a row. NaN in a
            matrix means unknown: such a cell carries no loss, and w(y) counts the known labels.
            Beside a Dask X: a zero-one Dask array (its chunks dense or CSR) or data frame, cut
            alike, all of it known.
        sample_weight : array of shape (n,), optional
            Multiplies the weights of the label sets.
        """
        positive_number(self.C, "C")
        self._check_numbers()
        if self.prune is not None:
            positive_number(self.prune, "prune")
            if self.warm_start:
                raise ValueError(
                    "prune leaves coefficients out, and warm_start needs them all; use one of them"
                )
        last = LastFit.of(self) if self.warm_start else None
        memory = self.__dict__.pop("_memory", None)
        if is_chunked(X) or is_chunked(y):
            with placed_chunks(self, X, y, sample_weight) as (data, constants, dtype):
                fitted = self._fit_placed(data, self._start(data, last))
            self._keep(fitted[:2], fitted, constants, dtype)
            self._keep_effect(fitted, constants)
            return self
        X = self._check_rows(X, fitting=True)
        targets = self._check_labels(y, X.shape[0])
        weights = training_weights(targets, y, self.weight, sample_weight)
        fitted = self._fit_rows(X, targets, weights, last, memory)
        constants = constant_scores(targets.labels, weights)
        self._keep(fitted[:2], fitted, constants, X.dtype)
        self._keep_effect(fitted, constants)
        return self

    def _keep_effect(self, fitted: Fitted, constants: NDArray[Any]) -> None:
        if self.prune is not None:
            self.prune_effect_ = np.where(np.isnan(constants), fitted.prune_effect, 0.0)
        elif hasattr(self, "prune_effect_"):
            del self.prune_effect_

    def _fit_rows(
        self,
        X: Any,
        targets: Targets,
        weights: NDArray[Any],
        last: LastFit | None,
        memory: Memory | None,
    ) -> Fitted:
        known: tuple[Pass, Any] | None = None
        if memory is not None and last is not None and last.has_labels_of(self):
            known = self._place_grown(memory, X, targets, weights)
        if known is None:
            fresh = self._place(X, targets, weights, self.C)
            known, memory = (fresh, self._start(fresh, last)), None
        data, start = known
        if not isinstance(data, LocalPass) or not self.warm_start:
            return self._fit_placed(data, start)
        data.remembers = True
        fitted = self._fit_placed(data, start)
        self._memory = remembered(data, memory)
        return fitted

    def _start(self, data: Pass, last: LastFit | None) -> Any:
        return None if last is None else data.start_at(*last.for_labels_of(self))

    def _fit_placed(self, data: Pass, start: Any) -> Fitted:
        options = Options(self.tol, self.max_iter, self.prune)
        where: dict[str, Any] = {"n_jobs": self.n_jobs, "checkpoint": self.checkpoint}
        return fit_blocks(data, options, start=start, **where)

    def _check_numbers(self) -> None:
        if isinstance(self.positive_cost, str):
            choose({"balanced": None}, self.positive_cost, "positive_cost")
        else:
            positive_number(self.positive_cost, "positive_cost")
        positive_number(self.tol, "tol")
        positive_integer(self.max_iter, "max_iter")

    def _place(self, X: Any, targets: Targets, weights: NDArray[Any], C: float) -> Pass:
        weights, options = self._objective(targets, weights, C)
        return place(X, targets.labels, weights, device=self.device, **options)

    def _place_grown(
        self, memory: Memory, X: Any, targets: Targets, weights: NDArray[Any]
    ) -> tuple[LocalPass, State] | None:
        """Return the pass, and the state of the last fit, if its rows are the first of these."""
        labels = targets.labels
        device = fitting_device(self.device, X.shape[0], X.shape[1], labels.n_labels)
        if device is not None or self.checkpoint is not None:
            return None
        weights, options = self._objective(targets, weights, self.C)
        return grown(memory, X, labels, weights, **options)

    def _objective(
        self, targets: Targets, weights: NDArray[Any], C: float
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Return the weights of the rows, and what else decides what is minimised."""
        cost: Any = self.positive_cost
        if isinstance(cost, str):
            weights, cost = balanced(targets.labels, weights)
        penalize = self.penalize_intercept
        return weights, {"C": C, "positive_cost": cost, "penalize_intercept": penalize}

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: not what only serves the next fit of this very object."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_memory"}

    def _keep(
        self,
        coefficients: tuple[NDArray[Any], NDArray[Any]],
        solution: Solution | Fitted,
        constants: NDArray[Any],
        dtype: Any,
    ) -> None:
        self._set_coefficients(*coefficients, constants, dtype)
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged | ~np.isnan(constants)
        self.objective_ = solution.value
        self.gradient_norm_ = solution.gradient_norm
        late = int((~self.converged_).sum())
        if late:
            warnings.warn(
                f"{late} of {len(constants)} labels did not reach tol={self.tol} in "
                f"max_iter={self.max_iter} passes; raise max_iter, or scale the features",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _scores(self, X: Any) -> NDArray[Any]:
        device = scoring_device(self.device, X, self.coef_)
        if device is None:
            return super()._scores(X)
        return device_scores(X, self.coef_, self.intercept_, device)

    def _best_columns(self, X: Any, top: int) -> NDArray[np.intp]:
        device = scoring_device(self.device, X, self.coef_)
        if device is None or self._form == "binary":
            return super()._best_columns(X, top)
        return device_ranking(X, self.coef_, self.intercept_, top, device)

    def _relevance(self, scores: NDArray[Any]) -> NDArray[Any]:
        if isinstance(self.positive_cost, str):
            return expit(scores)
        # A relevant cell that costs kappa moves the best score up by log(kappa), for every label.
        return expit(scores - np.log(self.positive_cost))
