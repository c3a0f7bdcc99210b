"""LogisticRanker with C chosen by cross-validation: the whole grid as one job."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deltarank.base.parameters import positive_number
from deltarank.base.selection import Scoring, choose_value, tabulate
from deltarank.core.progress import progress
from deltarank.core.weights import Weight
from deltarank.linear.fit import fit, within
from deltarank.linear.univariate import UnivariateRanker
from deltarank.linear.validation import validation

# The paper's grid.
DEFAULT_CS = tuple(10.0**power for power in range(-3, 4))
# Scores of held-out rows settle long before the objective's last digits do.
VALIDATION_TOL = 2e-2


class LogisticRankerCV(UnivariateRanker):
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
    weight, positive_cost, loss, penalize_intercept, tol, max_iter, device, n_jobs
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
    C_ : float
        The chosen value, with which all rows were fitted again.
    best_score_ : float
        Its mean score on held-out rows.
    cv_results_ : dict
        ``param_C``, ``mean_test_score``, ``std_test_score`` and ``split{i}_test_score``, one
        value per C, ascending.
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
        self.weight = weight
        self.positive_cost = positive_cost
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
        values = DEFAULT_CS if self.Cs is None else self.Cs
        Cs = np.unique([positive_number(C, "each value of Cs") for C in values])
        if not len(Cs):
            raise ValueError("Cs must hold at least one value; got none")
        options = self._options()
        rough = within(options, "folds")._replace(tol=VALIDATION_TOL, prune=None)
        with validation(self, X, y, sample_weight, Cs[0]) as held_out:
            columns, solutions = [], []
            # One step per C, and the final fit: about as long, though of one fold, to more digits.
            with progress("choosing C", len(Cs) + 1) as done:
                done.each = held_out.steps_at_once(Cs)
                for scores, solution in held_out.path(Cs, rough):
                    columns.append(scores)
                    solutions.append(solution)
                    done(max(done.at, len(columns)))
                done.each = 1
                scores = np.column_stack(columns)
                best = choose_value(scores, self.one_standard_error)
                objective, near = held_out.objective.with_C(float(Cs[best])), solutions[best]
                start = None if near is None else objective.median_of_folds(near, len(scores))
                fitted = fit(objective, within(options, "final"), start)
        self.C_ = float(Cs[best])
        self.best_score_ = float(scores[:, best].mean())
        self.cv_results_ = tabulate("C", Cs, scores)
        self._keep(fitted, held_out.constants, held_out.dtype)
        return self
