"""Rankers whose fits are nested in their number of rounds: fitted and scored stage by stage."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from deltarank.base.parameters import positive_integer
from deltarank.base.publishing import published_stages
from deltarank.base.ranker import Ranker


class StagedRanker(Ranker):
    """A ranker that is fitted round by round."""

    # The parameter that says how many rounds are fitted, for a search over stages.
    rounds_parameter: ClassVar[str]

    @abstractmethod
    def _check_numbers(self) -> None:
        """Refuse parameters that make no sense."""

    @abstractmethod
    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, stages: list[int]) -> Iterator[None]:
        """Fit this many rounds, and keep what was found at every stage."""

    @abstractmethod
    def _staged(self, X: Any, stages: list[int]) -> Iterator[NDArray[np.float64]]:
        """Yield the scores of checked rows after some numbers of rounds."""

    @property
    def _n_wanted(self) -> Any:
        """How many rounds are to be fitted, as it was given."""
        return getattr(self, self.rounds_parameter)

    @property
    def _n_rounds(self) -> int:
        """How many rounds there are to score."""
        return int(self._n_wanted)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit all labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            NaN is a missing value. For `AdaBoostRanker` it may be a Dask collection.
        y : array, sparse matrix, data frame or list of label sets
            Zero-one matrix of shape (n, m), label sets, or a vector of classes, one per row. For
            `AdaBoostRanker` and `BoostedTreeRanker`, NaN in a matrix means unknown: such a cell has
            no weight.
        sample_weight : array of shape (n,), optional
            Multiplies the weights of the label sets.
        """
        for _ in self.fit_stages(X, y, sample_weight, stages=[self._n_wanted]):
            pass
        return self

    def fit_stages(
        self, X: Any, y: Any, sample_weight: Any = None, *, stages: Iterable[int]
    ) -> Iterator[Any]:
        """Fit some numbers of rounds in turn, each going on where the one before stopped.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        stages : iterable of int
            Numbers of rounds, ascending, at most what the ranker was made for.

        Yields
        ------
        ranker
            This one, fitted with this many rounds and no more.

        Examples
        --------
        >>> import numpy as np
        >>> from deltarank import AdaBoostRanker
        >>> X = np.arange(6.0)[:, None]
        >>> Y = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [1, 0]])
        >>> for ranker in AdaBoostRanker(n_stumps=3).fit_stages(X, Y, stages=[1, 3]):
        ...     print(ranker.score(X, Y))
        0.8333333333333334
        1.0
        """
        self._check_numbers()
        wanted = check_stages(stages, self._n_wanted)
        yield from published_stages(self, lambda it: it._fit_rows(X, y, sample_weight, wanted))

    def staged_decision_function(
        self, X: Any, at: Iterable[int] | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the scores after some numbers of rounds, as if no more had been fitted.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        at : iterable of int, optional
            Numbers of rounds, ascending; every one by default.

        Yields
        ------
        scores : array of shape (n, m)

        Examples
        --------
        >>> import numpy as np
        >>> from deltarank import AdaBoostRanker, rank_loss
        >>> X = np.arange(6.0)[:, None]
        >>> Y = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [1, 0]])
        >>> ranker = AdaBoostRanker(n_stumps=3).fit(X, Y)
        >>> [round(rank_loss(Y, s), 3) for s in ranker.staged_decision_function(X, at=[1, 3])]
        [0.167, 0.0]
        """
        check_is_fitted(self)
        stages = check_stages(at, self._n_rounds)
        return self._staged(self._check_rows(X), stages)


def check_stages(at: Iterable[int] | None, n_rounds: int) -> list[int]:
    """Return numbers of rounds that ascend from at least 1 to at most `n_rounds`."""
    if at is None:
        return list(range(1, n_rounds + 1))
    stages = [positive_integer(stage, "each value of at") for stage in at]
    if stages != sorted(set(stages)) or (stages and stages[-1] > n_rounds):
        raise ValueError(
            f"at must ascend and end at most at the number of rounds, {n_rounds}; got {stages}"
        )
    return stages
