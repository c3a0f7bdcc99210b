"""A known distribution of label sets at one x: its risks, its Bayes ranker, its regrets."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.choices import choose
from deltarank.core.labels import row_numbers
from deltarank.core.weights import Weight, instance_weights

Floats = NDArray[np.float64]
MAX_LABELS = 20


class LabelDistribution:
    """A distribution P(y | x) of label sets at a fixed x: one probability per set of m labels.

    Parameters
    ----------
    probabilities : mapping or array of shape (2**m,)
        Either ``{"100": 0.25, "110": 0.75}``, label sets left out having probability 0 (keys may
        also be tuples of 0 and 1), or a table in the order of `labelings`: entry ``b`` is the set
        written by the binary digits of ``b``, the first label the most significant.

    Attributes
    ----------
    labelings : array of shape (2**m, m)
        Every label set as a zero-one row.
    probabilities : array of shape (2**m,)
    n_labels : int

    Examples
    --------
    >>> people = LabelDistribution({"100": 0.25, "110": 0.50, "011": 0.20, "001": 0.05})
    >>> people.marginal_weights().round(3)
    array([0.375, 0.35 , 0.125])
    >>> people.bayes_risk()
    0.25
    >>> round(people.regret([1.0, 2.0, 0.0]), 3)
    0.025
    """

    def __init__(self, probabilities: Mapping[Any, float] | Iterable[float]) -> None:
        table = (
            _table_of_mapping(probabilities)
            if isinstance(probabilities, Mapping)
            else np.asarray(probabilities)
        )
        n_labels = int(table.size).bit_length() - 1
        if table.ndim != 1 or table.size != 2**n_labels or not 2 <= n_labels <= MAX_LABELS:
            raise ValueError(
                "probabilities must have shape (2**m,), one value per label set, for "
                f"2 <= m <= {MAX_LABELS} labels (one label has no pair to rank); "
                f"got shape {table.shape}"
            )
        table = row_numbers(table, table.size, "probabilities", of="label set")
        if abs(table.sum() - 1) > 1e-9:
            raise ValueError(
                f"probabilities must sum to 1; they sum to {table.sum():.12g} "
                "(divide them by their sum)"
            )
        self.n_labels = n_labels
        self.probabilities = table / table.sum()
        digits = np.arange(n_labels - 1, -1, -1)
        self.labelings = (np.arange(2**n_labels)[:, None] >> digits & 1).astype(np.int8)

    @classmethod
    def independent(cls, marginals: Any) -> "LabelDistribution":
        """Build the distribution of independent labels with the given P(y_l = 1).

        Examples
        --------
        >>> LabelDistribution.independent([0.5, 0.2]).probabilities
        array([0.4, 0.1, 0.4, 0.1])
        """
        marginals = np.asarray(marginals)
        marginals = row_numbers(marginals, marginals.size, "marginals", of="label")
        if (marginals > 1).any():
            raise ValueError(f"marginals must be probabilities; got {marginals.max()}")
        table = np.ones(1)
        for chance in marginals:
            table = np.outer(table, [1 - chance, chance]).ravel()
        return cls(table)

    def weights(self, weight: Weight = "rank") -> Floats:
        """Return w(y) of every label set, not normalised.

        Examples
        --------
        >>> LabelDistribution({"10": 0.5, "11": 0.5}).weights()  # of 00, 01, 10 and 11
        array([0., 1., 1., 0.])
        """
        return instance_weights(self.labelings, weight, normalize=False)

    def mean_weight(self, weight: Weight = "rank") -> float:
        """Return W = E[w(Y)], Eq. (22).

        Examples
        --------
        >>> LabelDistribution({"10": 0.5, "11": 0.5}).mean_weight()
        0.5
        """
        return float(self.weights(weight) @ self.probabilities)

    def pair_weights(self, weight: Weight = "rank") -> Floats:
        """Return Delta_ij^uv = E[w(Y) 1{Y_i = u, Y_j = v}] as an array [u, v, i, j], Eq. (22).

        Examples
        --------
        >>> delta = LabelDistribution({"10": 0.75, "01": 0.25}).pair_weights()
        >>> float(delta[1, 0, 0, 1]), float(delta[0, 1, 0, 1])
        (0.75, 0.25)
        """
        mass = self.weights(weight) * self.probabilities
        sides = [1 - self.labelings.astype(float), self.labelings.astype(float)]
        return np.array([[(mass[:, None] * a).T @ b for b in sides] for a in sides])

    def marginal_weights(self, weight: Weight = "rank") -> Floats:
        """Return Delta_i^1 = E[w(Y) 1{Y_i = 1}] of each label, Eq. (23)."""
        return (self.weights(weight) * self.probabilities) @ self.labelings.astype(float)

    def relevances(self, weight: Weight = "rank") -> Floats:
        """Return eta_i = Delta_i^1 / W, the weighted chance that label i is relevant, Eq. (23).

        Examples
        --------
        >>> LabelDistribution({"10": 0.3, "01": 0.1, "11": 0.6}).relevances()
        array([0.75, 0.25])
        """
        mean = self.mean_weight(weight)
        if mean == 0:
            raise ValueError(
                "every possible label set weighs 0, so the weighted chances are undefined; "
                "use another weight or give probability to a label set with pairs"
            )
        return np.clip(self.marginal_weights(weight) / mean, 0.0, 1.0)

    def risk(self, scores: Any, weight: Weight = "rank") -> float:
        """Return the expected rank loss of the scores, Eq. (5). Infinite scores are allowed.

        Examples
        --------
        >>> LabelDistribution({"10": 0.75, "01": 0.25}).risk([1.0, 0.0])
        0.25
        """
        scores = self.check_scores(scores)
        both = self.pair_weights(weight)[1, 0]
        return float((both * _misordered(scores)).sum())

    def bayes_scores(self, weight: Weight = "rank") -> Floats:
        """Return scores no others beat: the marginal weights, Eq. (20).

        Examples
        --------
        >>> LabelDistribution({"10": 0.75, "01": 0.25}).bayes_scores()
        array([0.75, 0.25])
        """
        return self.marginal_weights(weight)

    def bayes_risk(self, weight: Weight = "rank") -> float:
        """Return the least expected rank loss of any scores, Eq. (7)."""
        both = self.pair_weights(weight)[1, 0]
        return float(np.triu(np.minimum(both, both.T), 1).sum())

    def regret(self, scores: Any, weight: Weight = "rank", form: str = "definition") -> float:
        """Return how much the scores lose to the Bayes ranker.

        Parameters
        ----------
        scores : array of shape (m,)
        weight : str, ("ndcg", k) or callable
        form : {"definition", "lemma"}
            Risk less Bayes risk, Eq. (3), or Lemma 3.1, Eq. (8), which needs only the marginal
            weights. They are equal.
        """
        return choose(_REGRETS, form, "form")(self, scores, weight)

    def _regret_by_definition(self, scores: Any, weight: Weight) -> float:
        return self.risk(scores, weight) - self.bayes_risk(weight)

    def _regret_by_lemma(self, scores: Any, weight: Weight) -> float:
        marginal = self.marginal_weights(weight)
        gaps = np.maximum(marginal[:, None] - marginal[None, :], 0)
        return float((gaps * _misordered(self.check_scores(scores))).sum())

    def check_scores(self, scores: Any) -> Floats:
        """Return scores as an array of one value per label, or refuse them.

        Examples
        --------
        >>> LabelDistribution({"10": 0.75, "01": 0.25}).check_scores([2, 1])
        array([2., 1.])
        """
        array = np.asarray(scores, dtype=float)
        if array.shape != (self.n_labels,):
            raise ValueError(
                f"scores must have shape ({self.n_labels},), one value per label; "
                f"got shape {array.shape}"
            )
        if np.isnan(array).any():
            raise ValueError("scores must be numbers; got NaN")
        return array


_REGRETS = {
    "definition": LabelDistribution._regret_by_definition,
    "lemma": LabelDistribution._regret_by_lemma,
}


def _misordered(scores: Floats) -> Floats:
    """Return, for a pair (i, j) that should have i first: 1 if j is, 1/2 if they tie."""
    first, second = scores[:, None], scores[None, :]
    return (first < second) + 0.5 * (first == second)


def _table_of_mapping(probabilities: Mapping[Any, float]) -> Floats:
    keys = ["".join(str(digit) for digit in _digits(key)) for key in probabilities]
    lengths = sorted({len(key) for key in keys})
    if len(lengths) != 1 or not 1 <= lengths[0] <= MAX_LABELS:
        raise ValueError(
            "probabilities must name label sets of one length, as '100' and '110', of at most "
            f"{MAX_LABELS} labels; got lengths {lengths}"
        )
    table = np.zeros(2 ** lengths[0])
    for key, probability in zip(keys, probabilities.values(), strict=True):
        if set(key) - {"0", "1"}:
            raise ValueError(f"a label set is written in 0 and 1, as '100'; got {key!r}")
        table[int(key, 2)] += probability
    return table


def _digits(key: Any) -> Iterable[Any]:
    if not isinstance(key, str | tuple):
        raise ValueError(f"a label set is written as '100' or (1, 0, 0); got {key!r}")
    return key
