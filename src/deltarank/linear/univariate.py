"""What the linear rankers of single labels share: options, what is kept, scores on a device."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from deltarank.base.chances import chances, trainable_loss
from deltarank.base.parameters import positive_integer, positive_number, unit_number
from deltarank.core.choices import choose
from deltarank.core.devices import device_ranking, device_scores, scoring_device
from deltarank.core.losses import Loss
from deltarank.linear.fit import Fitted, Options
from deltarank.linear.ranker import LinearRanker
from deltarank.linear.unknown import UNKNOWN


class UnivariateRanker(LinearRanker):
    """A linear ranker whose labels are problems of their own under a univariate loss."""

    positive_cost: float
    balance: float
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
        positive_number(self.positive_cost, "positive_cost")
        unit_number(self.balance, "balance")
        self._loss()
        choose(dict.fromkeys(UNKNOWN), self.unknown, "unknown")
        positive_number(self.tol, "tol")
        positive_integer(self.max_iter, "max_iter")
        if self.prune is not None:
            positive_number(self.prune, "prune")
        return Options(self.tol, self.max_iter, self.prune, self.n_jobs, self.checkpoint)

    def _loss(self) -> Loss:
        return trainable_loss(self.loss)

    def _keep(self, fitted: Fitted, constants: NDArray[Any], dtype: Any) -> None:
        """Keep what was fitted; a label with a constant score (not NaN) gets that alone."""
        self._set_coefficients(fitted.coef, fitted.intercept, constants, dtype)
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
        return chances(self._loss(), self.positive_cost, scores)
