"""WBR-KLR: logistic ranking on a Nystrom map, non-linear at the speed of matrix products."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from deltarank.base.chunked import dtype_of
from deltarank.base.parameters import positive_integer, positive_number, unit_number
from deltarank.base.ranker import Ranker, training_weights
from deltarank.base.selection import Scoring, choose_scorer, split_rows
from deltarank.core.chunks import is_chunked, is_frame, row_chunks
from deltarank.core.progress import progress
from deltarank.core.weights import Weight
from deltarank.linear.kernel_search import SHARE_OF_MORE, KernelSearch
from deltarank.linear.nystrom import NystromMap


class KernelLogisticRanker(Ranker):
    r"""Rank labels by weighted logistic regression with a Gaussian kernel, Eq. (12).

    Rows are mapped to features whose products approximate :math:`e^{-\gamma |x - z|^2}`
    (Nystrom's method, with random rows as landmarks); on them a `LogisticRanker` is fitted.
    Whatever is not given, the width, the number of landmarks or C, is chosen by cross-validated
    rank loss in one economical search: the width by climbing from the mean distance of rows in
    factors of 2, with the fewest landmarks, then the number of landmarks; C comes with each of
    them from one `LogisticRankerCV`.

    The kernel takes distances as they are: bring features to one scale first, for example with
    scikit-learn's ``StandardScaler``.

    Parameters
    ----------
    n_landmarks : int or sequence of int
        Numbers to try, ascending; fewer where there are fewer rows.
    gamma : float, optional
        Width of the kernel, chosen if not given.
    C : float, optional
        Inverse of the penalty's strength, chosen among 10^-3, ..., 10^3 if not given.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        What a row counts, by its label set: see `deltarank.instance_weights`.
    balance : float
        As in `LogisticRanker`, for all fits on the map.
    unknown : {"expected", "known_part"}
        As in `LogisticRanker`, for all fits on the map.
    cv : int, splitter or iterable of (train, test)
        An integer stands for as many folds stratified by label.
    scoring : str or callable
        As in `LogisticRankerCV`.
    tol : float
        Of the final fit: see `LogisticRanker`.
    max_iter : int
    device, n_jobs, checkpoint
        As in `LogisticRanker`, for all fits on the map; the folder holds one for each of them.
    random_state : int, generator or None
        For landmarks and folds.

    Attributes
    ----------
    gamma_, C_ : float
    n_landmarks_ : int
    search_ : list of dict
        What was tried: ``gamma``, ``n_landmarks``, ``C`` (the best for them) and ``score``.
    landmarks_ : array or CSR array of shape (k, d)
    whitening_ : array of shape (k, r)
        Turns kernel values between rows and landmarks into features.
    coef_ : array of shape (m, r)
        Of those features.
    intercept_ : array of shape (m,)
    n_iter_ : array of shape (m,)
        Passes each label took in the final fit.
    classes_ : array of shape (m,)

    Examples
    --------
    Labels by distance from the centre, which no linear ranker can tell:

    >>> import numpy as np
    >>> from deltarank import KernelLogisticRanker, LogisticRanker, rank_loss
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> distance = np.linalg.norm(X, axis=1)
    >>> Y = np.column_stack([distance < 1, distance > 1, distance > 2]).astype(int)
    >>> ranker = KernelLogisticRanker(n_landmarks=50, random_state=0).fit(X, Y)
    >>> bool(rank_loss(Y, ranker.decision_function(X)) < 0.02)
    True
    >>> bool(rank_loss(Y, LogisticRanker().fit(X, Y).decision_function(X)) > 0.1)
    True
    """

    def __init__(
        self,
        *,
        n_landmarks: int | Sequence[int] = (300, 1000),
        gamma: float | None = None,
        C: float | None = None,
        weight: Weight = "rank",
        balance: float = 0.0,
        unknown: str = "expected",
        cv: Any = 5,
        scoring: Scoring = "neg_rank_loss",
        tol: float = 1e-6,
        max_iter: int = 500,
        device: str = "cpu",
        n_jobs: int | None = None,
        checkpoint: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.gamma = gamma
        self.C = C
        self.weight = weight
        self.balance = balance
        self.unknown = unknown
        self.cv = cv
        self.scoring = scoring
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.random_state = random_state

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y: such a cell has no loss."""
        return True

    def _largest_feature(self, dtype: Any) -> float:
        # Squared distances are sums of squares in the precision of X.
        return float(np.sqrt(np.finfo(dtype).max)) / 1e4

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "KernelLogisticRanker":
        """Fit all labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            The mapped rows, n times the number of landmarks, are held in memory. Or a Dask array
            cut by rows, mapped and fitted on the workers: see `LogisticRanker.fit`.
        y : array, sparse matrix, data frame or list of label sets
            Zero-one matrix of shape (n, m), label sets, or a vector of classes, one per row. NaN in
            a matrix means unknown, as in `LogisticRanker`.
        sample_weight : array of shape (n,), optional
            Multiplies the weights of the label sets.
        """
        counts = self._check_numbers()
        generator = check_random_state(self.random_state)
        if is_chunked(X) or is_chunked(y):
            rows = _sampled_rows(X, max(counts), generator)
            distance, cv = scale(rows, np.ones(rows.shape[0])), self.cv
        else:
            X, rows, distance, cv = self._candidates(X, y, sample_weight, generator, len(counts))
        counts = sorted({min(count, rows.shape[0]) for count in counts})
        with progress("choosing a kernel", 1.0) as done:
            search = KernelSearch(self, X, y, sample_weight, rows, cv, done)
            self._choose(search, counts, distance)
            feature_map = search.map(self.gamma_, self.n_landmarks_)
            final = search.final(feature_map, self.C_)
        self.landmarks_, _, self.whitening_ = feature_map
        self.coef_, self.intercept_, self.n_iter_ = final.coef_, final.intercept_, final.n_iter_
        self.classes_, self._form, self.n_features_in_ = final.classes_, final._form, X.shape[1]
        self.search_ = search.tried
        return self

    def _candidates(
        self, X: Any, y: Any, sample_weight: Any, generator: Any, n_counts: int
    ) -> tuple[Any, Any, float, Any]:
        """Return checked rows, those that may be landmarks, their distance, and the splits."""
        X = self._check_rows(X, fitting=True)
        targets = self._check_labels(y, X.shape[0])
        choose_scorer(self.scoring, targets)
        weights = training_weights(targets, y, self.weight, sample_weight)
        usable, splits = generator.permutation(np.flatnonzero(weights > 0)), None
        if self.C is None or self.gamma is None or n_counts > 1:
            splits = split_rows(self.cv, X, y, targets, generator.randint(2**31 - 1))
        return X, X[usable], scale(X, weights), splits

    def _check_numbers(self) -> list[int]:
        counts = self.n_landmarks if isinstance(self.n_landmarks, Sequence) else [self.n_landmarks]
        if not len(counts):
            raise ValueError("n_landmarks must hold at least one number; got none")
        if self.gamma is not None:
            positive_number(self.gamma, "gamma")
        if self.C is not None:
            positive_number(self.C, "C")
        unit_number(self.balance, "balance")
        positive_number(self.tol, "tol")
        positive_integer(self.max_iter, "max_iter")
        return [positive_integer(count, "each value of n_landmarks") for count in counts]

    def _choose(self, search: KernelSearch, counts: list[int], distance: float) -> None:
        gamma, count = self.gamma, counts[0]
        if gamma is None:
            gamma = search.climb(1 / distance, count)
        search.share = SHARE_OF_MORE
        for more in counts[1:]:
            if search.score(gamma, more) <= search.score(gamma, count):
                break
            count = more
        self.gamma_, self.n_landmarks_ = float(gamma), count
        self.C_ = float(self.C if self.C is not None else search.best_penalty(gamma, count))

    def _scores(self, X: Any) -> NDArray[Any]:
        features = NystromMap(self.landmarks_, self.gamma_, self.whitening_)(X)
        return np.asarray(features @ self.coef_.T + self.intercept_)


def _sampled_rows(X: Any, n_rows: int, generator: Any) -> Any:
    """Return rows of a Dask array, drawn at random, in random order."""
    import dask

    if is_frame(X) or not is_chunked(X):
        raise ValueError(
            "X must be a Dask array, as Y is, for landmarks to be drawn from its rows; "
            f"got {type(X).__name__}: use X.to_dask_array(lengths=True)"
        )
    chunks, ends = row_chunks(X, "X"), np.cumsum(X.chunks[0])
    drawn = np.sort(generator.permutation(int(ends[-1]))[:n_rows])
    owner = np.searchsorted(ends, drawn, side="right")
    take = dask.delayed(lambda chunk, rows: chunk[rows])
    parts = [
        take(chunks[number], drawn[owner == number] - (ends[number - 1] if number else 0))
        for number in np.unique(owner)
    ]
    drawn_parts = dask.compute(*parts)
    rows = (
        sparse.vstack(drawn_parts, format="csr")
        if sparse.issparse(drawn_parts[0])
        else np.vstack(drawn_parts)
    )
    return rows[generator.permutation(rows.shape[0])].astype(dtype_of(X), copy=False)


def scale(X: Any, weights: NDArray[np.float64]) -> float:
    """Return the mean squared distance between rows drawn by their weights, or 1 if it is 0.

    Twice the sum of the features' variances; a row given twice counts as one of twice the weight.
    """
    shares = weights / weights.sum()
    mean = shares @ X
    squares = shares @ (X.multiply(X) if sparse.issparse(X) else X * X)
    distance = 2 * float(np.sum(squares - mean**2))
    return distance if distance > 0 else 1.0
