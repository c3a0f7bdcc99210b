"""Linear rankers trained on label pairs, by any of the pairwise losses."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from deltarank.base.parameters import positive_integer, positive_number
from deltarank.base.ranker import CELLS_PER_CHUNK, constant_scores, training_weights
from deltarank.base.targets import Targets
from deltarank.core import memory
from deltarank.core.labels import LabelSets, row_numbers
from deltarank.core.weights import Weight
from deltarank.linear.ranker import LinearRanker, with_constants
from deltarank.pairs.objective import PairLoss, PairwisePass, bytes_of_solver, pair_loss

ROWS_FOR_THRESHOLD = 10_000
# All labels are one problem, of which no block can be solved alone.
TOO_LARGE = (
    "fit fewer labels or features, or one regression per label (LogisticRanker): pairs tie labels "
    "together, so that these cannot go block by block"
)


class PairProblem(NamedTuple):
    """The label pairs to learn from.

    `fitted` are the columns of Y that `labels` holds, those without a constant score. Two classes,
    which share one column, are two labels here. `weights`, shape (n, 2), are what a pair of a row
    counts, and what the row counts.
    """

    labels: LabelSets
    weights: NDArray[np.float64]
    fitted: NDArray[np.intp]
    constants: NDArray[np.float64]
    n_columns: int

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring values a fitted label to all columns of Y; two classes leave their difference."""
        if self.labels.n_labels > len(self.fitted):
            return values[1:] - values[:1]
        wide = np.zeros((self.n_columns, *values.shape[1:]))
        wide[self.fitted] = values
        return wide


def pair_problem(targets: Targets, Y: Any, weight: Weight, sample_weight: Any) -> PairProblem:
    """Weigh pairs by w(y), scaled so that the rows' pairs count as much as the rows, Eq. (45)."""
    labels = targets.labels
    weights = training_weights(targets, Y, weight, sample_weight)
    counts = np.ones(labels.n_rows)
    if sample_weight is not None:
        counts = row_numbers(sample_weight, labels.n_rows, "sample_weight")
    constants = constant_scores(labels, weights)
    fitted = np.flatnonzero(np.isnan(constants))
    if targets.form == "binary" and len(fitted):
        two = np.stack([labels.sizes == 0, labels.sizes == 1], axis=1)
        ranked = LabelSets(
            np.arange(labels.n_rows + 1), np.nonzero(two)[1].astype(np.int32), n_labels=2
        )
        n_pairs = np.ones(labels.n_rows, np.int64)
    else:
        kept = labels.to_csr()[:, fitted]
        kept.sort_indices()
        ranked = LabelSets(kept.indptr.astype(np.int64), kept.indices.astype(np.int32), len(fitted))
        n_pairs = labels.sizes * (labels.n_labels - labels.sizes)
    mass = float(weights @ n_pairs)
    if mass > 0:
        weights = weights * (counts[n_pairs > 0].sum() / mass)
    weights = np.where(ranked.trivial, 0.0, weights)
    both = np.column_stack([weights, counts])
    return PairProblem(ranked, both, fitted, constants, labels.n_labels)


class PairwiseLinearRanker(LinearRanker):
    """A linear ranker whose scores a pairwise loss fixes up to a shift, the same for all labels."""

    tol: float

    def _minimise(
        self, X: Any, problem: PairProblem, loss: PairLoss, *, C: float, limit: str
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return coefficients and intercepts of the fitted labels with the least objective.

        `limit` is the parameter that holds the largest number of passes.
        """
        tol, max_iter = self.tol, getattr(self, limit)
        self.n_iter_, self.converged_, self.objective_ = 1, True, 0.0
        n_labels, n_features = problem.labels.n_labels, X.shape[1]
        if not problem.weights[:, 0].any():
            return np.zeros((n_labels, n_features)), np.zeros(n_labels)
        memory.require(
            bytes_of_solver(X.shape, n_labels),
            f"{type(self).__name__} of {n_labels} labels and {n_features} features",
            TOO_LARGE,
        )
        data = PairwisePass(X, problem.labels, problem.weights, loss=loss, C=C)
        solution = data.solve(tol=tol, max_iter=max_iter)
        self.n_iter_, self.converged_ = int(solution.n_iter[0]), bool(solution.converged[0])
        self.objective_ = float(solution.value[0])
        if not self.converged_:
            warnings.warn(
                f"the objective did not reach tol={tol} in {limit}={max_iter} passes; "
                f"raise {limit}, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )
        return data.to_features(solution.point)

    def _set(
        self, X: Any, problem: PairProblem, coef: NDArray[Any], intercept: NDArray[Any]
    ) -> None:
        """Keep the coefficients and intercepts of all columns of Y."""
        intercept = intercept - self._threshold(X, problem, coef, intercept)
        parts = problem.spread(coef), problem.spread(intercept), problem.constants
        coef, intercept = with_constants(*parts)
        self.coef_, self.intercept_ = coef.astype(X.dtype), intercept.astype(X.dtype)

    def _threshold(
        self, X: Any, problem: PairProblem, coef: NDArray[Any], intercept: NDArray[Any]
    ) -> float:
        """Return the score above which training rows have as many labels as in truth.

        Pairs say nothing about a threshold. A few thousand rows suffice to find one; two classes
        need none, nor does a problem without pairs.
        """
        counted = np.flatnonzero(problem.weights[:, 0])
        if self._form == "binary" or not len(counted):
            return 0.0
        at_most = max(1, min(ROWS_FOR_THRESHOLD, CELLS_PER_CHUNK // len(coef)))
        rows = counted[:: -(-len(counted) // at_most)]
        scores = np.asarray(_safe_indexing(X, rows) @ coef.T + intercept).ravel()
        n_relevant = int(problem.labels.sizes[rows].sum())
        ordered = np.partition(scores, [len(scores) - n_relevant - 1, len(scores) - n_relevant])
        return float(ordered[[len(scores) - n_relevant - 1, len(scores) - n_relevant]].mean())

    @property
    def estimates_marginals(self) -> bool:
        """Whether scores are chances of labels: no, pairs leave them free up to a shift."""
        return False


class PairwiseRanker(PairwiseLinearRanker):
    r"""Rank labels by a linear model trained on label pairs, Eq. (18).

    With scores :math:`h_l(x) = \theta_l \cdot x + b_l` it minimises

    .. math:: \sum_i w(y_i) \sum_{(p,q): y_{ip} > y_{iq}} \phi(h_p(x_i) - h_q(x_i))
              + \frac{1}{2C} \sum_l \|\theta_l\|^2.

    Most of these losses are *not* consistent for the rank loss: with ever more data they may settle
    on a worse order than `LogisticRanker` does, and they cost more. They are here to be compared.

    Parameters
    ----------
    loss : str
        phi(z), or what replaces the sum over pairs:

        ==================== ========================================= ============ ===========
        "logistic"           log(1 + exp(-z)), the loss of LLLR        inconsistent O(s (m - s))
        "exponential"        exp(-z), the loss of AdaBoost.MR          inconsistent O(m)
        "squared"            (1 - z)^2                                 inconsistent O(m)
        "squared_hinge"      max(1 - z, 0)^2                           inconsistent O(m log m)
        "hinge"              max(1 - z, 0), its kink rounded off       inconsistent O(m log m)
        "penalized_linear"   -z, and half the squared scores, Eq. (40) consistent   O(m)
        "all_pairs_squared"  tied pairs count too, Eq. (41)            consistent   O(m)
        ==================== ========================================= ============ ===========

        Also any other loss of `deltarank.core.losses.LOSSES` whose expectation has a minimiser, in
        O(s (m - s)) and uncompiled.
    C : float
        Inverse of the penalty's strength.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        What a pair of a row counts: see `deltarank.instance_weights`. Scaled so that all pairs
        count as much as the rows, Eq. (45); with "rank" each row's pair loss is a mean over pairs.
    tol : float
        Stop when the estimated gap to the least objective is below this share of it.
    max_iter : int
        Largest number of passes over the data.

    Attributes
    ----------
    coef_ : array of shape (m, d)
    intercept_ : array of shape (m,)
        A label never relevant in training has no coefficients and scores below all others, one
        always relevant above; their pairs take no part in the fit. The common shift of the others,
        which no pair determines, lets training rows have as many scores above 0 as labels.
    classes_ : array of shape (m,)
        Names of the labels.
    n_iter_ : int
    converged_ : bool
    objective_ : float

    See Also
    --------
    LogisticRanker : Consistent, and faster.
    LogLinearRanker : The logistic loss by the parallel update of its authors.

    Examples
    --------
    >>> from deltarank import PairwiseRanker
    >>> from deltarank.datasets import SyntheticModel
    >>> model = SyntheticModel.random(n_labels=5, random_state=0)
    >>> X, Y = model.sample(2000, random_state=1)
    >>> PairwiseRanker(loss="exponential").fit(X, Y).rank(X[:2], top=3)
    array([[1, 2, 3],
           [3, 2, 4]])
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
        C: float = 1.0,
        weight: Weight = "rank",
        tol: float = 1e-6,
        max_iter: int = 500,
    ) -> None:
        self.loss = loss
        self.C = C
        self.weight = weight
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PairwiseRanker":
        """Fit all labels: for the parameters see `LogisticRanker.fit`."""
        loss = pair_loss(self.loss)
        positive_number(self.C, "C")
        positive_number(self.tol, "tol")
        positive_integer(self.max_iter, "max_iter")
        X = self._check_rows(X, fitting=True)
        targets = self._check_labels(y, X.shape[0])
        problem = pair_problem(targets, y, self.weight, sample_weight)
        self._set(X, problem, *self._minimise(X, problem, loss, C=self.C, limit="max_iter"))
        return self
