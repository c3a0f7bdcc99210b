"""WBR-LR: weighted logistic regression, all labels as one matrix problem."""

from typing import Any

from deltarank.base.parameters import positive_number
from deltarank.core.weights import Weight
from deltarank.linear.fit import fit
from deltarank.linear.last_fit import LastFit
from deltarank.linear.placing import placed
from deltarank.linear.univariate import LabelNumbers, UnivariateRanker

# The univariate losses that Wu, Li, Xu and Zhu (2021) compare, by the options that give them; rows
# without a pair to rank weigh 0. With P the relevant and N the irrelevant labels of a row:
SUCCESSOR_LOSSES: dict[str, dict[str, Any]] = {
    # (1/m) sum_l: consistent for precision at k, and for rank loss counted in pairs.
    "u1": {"weight": "uniform"},
    # 1 / (|P| |N|) sum_l: consistent for rank loss, Eq. (12) with (21).
    "u2": {"weight": "rank"},
    # (1/|P|) sum_P + (1/|N|) sum_N: bounds the rank loss from above, and is consistent for it where
    # all label sets of an x have one size or labels are independent given x, not in general.
    "u3": {"weight": "rank", "balance": 1.0},
    # 1 / min(|P|, |N|) sum_l: consistent for rank loss weighted so, not by (21).
    "u4": {"weight": "min"},
}


class LogisticRanker(UnivariateRanker):
    r"""Rank labels by weighted logistic regression, consistent for rank loss, Eq. (12).

    For every label l it minimises

    .. math:: \sum_i w(y_i) \log(1 + e^{-y_{il} h_l(x_i)}) + \frac{1}{2C} \|\theta_l\|^2,
              \quad h_l(x) = \theta_l \cdot x + b_l,

    to the same optimum as a loop of weighted logistic regressions would, in a few dozen products of
    X with all labels' coefficients at once.

    Consistent means: if the log-odds of every label's weighted chance are linear in the features,
    the order becomes the best one as rows are added (with C fixed or growing). If they are not,
    it is a compromise that suits the loss, not the order, and a `KernelLogisticRanker`, an
    `AdaBoostRanker` or `WeightedBinaryRelevance` round trees may rank better: ``docs/theory.md``.

    Parameters
    ----------
    C : float
        Inverse of the penalty's strength, as in scikit-learn.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        What a row counts, by its label set: see `deltarank.instance_weights`. Normalised to mean 1
        over the rows with a pair to rank, so that C means the same for every weight.
    positive_cost : float, sequence of m numbers, or mapping from labels to numbers
        What a relevant cell costs beside an irrelevant one: one number for all labels, or one per
        label (1 for those a mapping does not name). A label's cost c moves its best score by a
        known shift, log c for the logistic loss; costs that differ are taken back out of
        `intercept_`, so that any numbers keep consistency, unless `keep_shift`.
    keep_shift : bool
        Let labels that cost more rank higher: scores keep the shifts of `positive_cost`.
    label_weight : sequence, mapping, "inverse_frequency" or "effective_number", optional
        What a label's losses count beside its penalty: a weight of 2 is twice the C for that label.
        It moves no best score, so any weights keep consistency. By name: one over the number of
        rows that have the label, or over their effective number (Cui et al. 2019, with 0.999),
        scaled to mean 1.
        There is no ``class_weight``, which weighs relevant rows by label: that moves each label's
        scores by an amount of its own, and so changes the order. See ``docs/faq.md``.
    balance : float
        From 0 to 1: a relevant cell weighs w(y) (m - s)^balance and an irrelevant one
        w(y) s^balance, Eq. (72), with s labels of m relevant. 0 is the consistent loss (12); at 1 a
        row's relevant cells together weigh as much as its irrelevant ones: the loss of Wu et al.
        (2021), which bounds the rank loss from above. Above 0 the order need not become the best
        one where labels depend on each other: see ``docs/theory.md``.
    loss : {"logistic", "exponential", "squared", "squared_hinge"}
        What a cell costs by its margin: a name of `deltarank.core.losses.LOSSES` whose expectation
        has a minimiser. All of these are consistent for rank loss, each where its own best scores
        are linear; the logistic one is compiled and by far the quickest.
    unknown : {"expected", "completed", "known_part"}
        What becomes of a row with unknown labels (NaN in Y). "expected": it weighs the mean of w(y)
        over what they may be, Eq. (60), by chances from a first fit of every label on the rows in
        which it is known. "completed": unknown cells are fitted too, to soft targets, Eq. (61), for
        labels looked at because of what others are; a row with u of them becomes u + 1 rows in
        memory. "known_part": w of the known labels as if there were no others, Eq. (53): one fit
        instead of two, and not consistent in general. See ``docs/labels.md``.
    penalize_intercept : bool
        Penalise the intercept like a coefficient, as Mallet does.
    tol : float
        Stop a label when the estimated gap to its least objective is below this share of it.
    max_iter : int
        Largest number of passes over the data.
    warm_start : bool
        Start from the coefficients of the last fit. Rows may have been added or left out; labels
        are matched by name, and new ones start afresh. Features must be the same.
    device : {"cpu", "cuda", "auto"} or "cuda:<number>"
        Where to fit and to score. "auto" takes a CUDA device if PyTorch sees one and the data are
        not small. The minimum is the same; its last digits are those of float32.
    n_jobs : int, optional
        Fit this many blocks of labels at a time as jobs of their own, through joblib: processes by
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
        positive_cost: LabelNumbers = 1.0,
        keep_shift: bool = False,
        label_weight: LabelNumbers | str | None = None,
        balance: float = 0.0,
        loss: str = "logistic",
        unknown: str = "expected",
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
        self.keep_shift = keep_shift
        self.label_weight = label_weight
        self.balance = balance
        self.loss = loss
        self.unknown = unknown
        self.penalize_intercept = penalize_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.device = device
        self.n_jobs = n_jobs
        self.prune = prune
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LogisticRanker":
        """Fit all labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Dense in any order, float32 or float64, memory-mapped or not; or sparse. Or a Dask
            array (its chunks dense or CSR) or data frame, cut by rows: it stays on the workers of
            the Dask client in use, and only coefficients and gradients travel.
        y : array, sparse matrix, data frame or list of label sets
            Zero-one matrix of shape (n, m), label sets, or a vector of classes, one per row. NaN in
            a matrix means unknown: such a cell has no loss; for the row's weight see `unknown`.
            Beside a Dask X: a zero-one Dask array (its chunks dense or CSR) or data frame, cut
            alike.
        sample_weight : array of shape (n,), optional
            Multiplies the weights of the label sets.
        """
        positive_number(self.C, "C")
        options = self._options()
        if self.prune is not None and self.warm_start:
            raise ValueError(
                "prune leaves coefficients out, and warm_start needs them all; use one of them"
            )
        last = LastFit.of(self) if self.warm_start else None
        with placed(self, X, y, sample_weight) as data:
            objective = self._objective(data.rows, self.C)
            start = None if last is None else objective.start_at(*last.for_labels_of(self))
            fitted = fit(objective, options, start)
        self._keep(fitted, data.constants, data.dtype)
        return self
