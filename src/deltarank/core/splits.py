"""Folds in which every label is spread as evenly as in the whole sample."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.kernels.stratify import assign_folds
from deltarank.core.labels import label_sets


class LabelStratifiedKFold:
    """Split rows with label sets into folds by iterative stratification.

    Rows of the rarest label are dealt out first, each to the fold that lacks that label most, then
    those of the next rarest among what is left (Sechidis, Tsoumakas, Vlahavas 2011). A scikit-learn
    splitter: pass it as ``cv=``.

    Parameters
    ----------
    n_splits : int
        Number of folds.
    random_state : int, generator or None
        Decides ties and the order of rows.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0], [0, 1]] * 6)
    >>> for train, test in LabelStratifiedKFold(3, random_state=0).split(Y, Y):
    ...     print(Y[test].sum(axis=0))
    [2 2]
    [2 2]
    [2 2]
    """

    def __init__(self, n_splits: int = 5, random_state: Any = None) -> None:
        if not isinstance(n_splits, int | np.integer) or n_splits < 2:
            raise ValueError(f"n_splits must be an integer of at least 2; got {n_splits!r}")
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Examples
        --------
        >>> LabelStratifiedKFold(3).get_n_splits()
        3
        """
        return self.n_splits

    def folds(self, Y: Any) -> NDArray[np.int32]:
        """Return the fold of each row.

        Examples
        --------
        >>> folds = LabelStratifiedKFold(2, random_state=0).folds([[1, 0], [0, 1], [1, 0], [0, 1]])
        >>> bool(folds[0] != folds[2] and folds[1] != folds[3])
        True
        """
        labels = label_sets(Y)
        if labels.n_rows < self.n_splits:
            raise ValueError(
                f"n_splits must be at most the number of rows; got {self.n_splits} "
                f"with n_samples={labels.n_rows}"
            )
        generator = np.random.default_rng(self.random_state)
        return assign_folds(
            labels.starts,
            labels.members,
            *labels.by_label(),
            generator.permutation(labels.n_rows),
            self.n_splits,
        )

    def split(
        self, X: Any, y: Any, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the rows to train on and those to test on, fold by fold."""
        folds = self.folds(y)
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
