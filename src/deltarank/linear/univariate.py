"""What the linear rankers of single labels share: options, what is kept, scores on a device."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from deltarank.base.chances import chances, trainable_loss
from deltarank.base.parameters import positive_integer, positive_number, unit_number
from deltarank.core.choices import choose
from deltarank.core.devices import device_ranking, device_scores, scoring_device
from deltarank.core.label_costs import label_numbers, label_weights
from deltarank.core.losses import Loss
from deltarank.linear.fit import Fitted, Options
from deltarank.linear.objective import Objective
from deltarank.linear.ranker import LinearRanker
from deltarank.linear.unknown import UNKNOWN

# One number for all labels, one per label, or some by the names of their labels.
LabelNumbers = float | Sequence[float] | Mapping[Any, float]
# By what a cost of c of relevant cells moves the best score, as a multiple of log c.
SHIFTS = {"logistic": 1.0, "exponential": 0.5}


class UnivariateRanker(LinearRanker):
    """A linear ranker whose labels are problems of their own under a univariate loss."""

    positive_cost: LabelNumbers
    keep_shift: bool
    label_weight: LabelNumbers | str | None
    balance: float
    penalize_intercept: bool
    loss: str
    unknown: str
    tol: float
    max_iter: int
    device: str
    n_jobs: int | None
    prune: float | None
    checkpoint: str | None

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y: such a cell has no loss."""
        return True

    def _options(self) -> Options:
        """Check the options that every fit has, and return how problems are solved."""
        self._check_costs()
        unit_number(self.balance, "balance")
        self._loss()
        choose(dict.fromkeys(UNKNOWN), self.unknown, "unknown")
        positive_number(self.tol, "tol")
        positive_integer(self.max_iter, "max_iter")
        if self.prune is not None:
            positive_number(self.prune, "prune")
        return Options(self.tol, self.max_iter, self.prune, self.n_jobs, self.checkpoint)

    def _check_costs(self) -> None:
        if self._costs_alike:
            positive_number(self.positive_cost, "positive_cost")
        elif not self.keep_shift and self.loss not in SHIFTS:
            raise ValueError(
                f"loss={self.loss!r} moves scores otherwise than by a constant where labels have "
                "a positive_cost of their own, so it cannot be taken back: use loss='logistic' or "
                "'exponential', or keep_shift=True"
            )

    @property
    def _costs_alike(self) -> bool:
        return not isinstance(self.positive_cost, Mapping) and np.ndim(self.positive_cost) == 0

    @property
    def _label_names(self) -> NDArray[Any]:
        return self.classes_[-1:] if self._form == "binary" else self.classes_

    def _label_costs(self) -> NDArray[np.float64]:
        """Return what relevant cells of each label cost."""
        return label_numbers(self.positive_cost, self._label_names, "positive_cost")

    def _objective(self, rows: Any, C: float) -> Objective:
        """Return what is minimised over rows."""
        weights = label_weights(self.label_weight, self._label_names, rows.frequencies)
        penalized = self.penalize_intercept
        return Objective(rows, C=C, penalize_intercept=penalized, label_weights=weights)

    def _unshifted(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Take back what costs that differ between labels (the last axis) add to scores."""
        if self.keep_shift or self._costs_alike:
            return scores
        return scores - SHIFTS[self.loss] * np.log(self._label_costs())

    def _loss(self) -> Loss:
        return trainable_loss(self.loss)

    def _keep(self, fitted: Fitted, constants: NDArray[Any], dtype: Any) -> None:
        """Keep what was fitted; a label with a constant score (not NaN) gets that alone."""
        self._set_coefficients(fitted.coef, self._unshifted(fitted.intercept), constants, dtype)
        self.n_iter_ = fitted.n_iter
        self.converged_ = fitted.converged | ~np.isnan(constants)
        self.objective_ = fitted.value
        self.gradient_norm_ = fitted.gradient_norm
        if self.prune is not None:
            self.prune_effect_ = np.where(np.isnan(constants), fitted.prune_effect, 0.0)
        elif hasattr(self, "prune_effect_"):
            del self.prune_effect_
        late = int((~self.converged_).sum())
        if late:
            warnings.warn(
                f"{late} of {len(constants)} labels did not reach tol={self.tol} in "
                f"max_iter={self.max_iter} passes; raise max_iter, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
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
        # Costs that differ were taken back already, unless their shifts are kept.
        left = self.keep_shift or self._costs_alike
        return chances(self._loss(), self._label_costs() if left else 1.0, scores)
