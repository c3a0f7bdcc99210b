"""Whether weights change the best order: rankers fitted with and without them, on held-out rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from deltarank.base.selection import Split, split_rows
from deltarank.base.targets import read_targets
from deltarank.core.labels import LabelSets
from deltarank.core.losses import sigmoid
from deltarank.core.progress import progress
from deltarank.core.statistics import Interval, paired_bootstrap
from deltarank.core.threads import row_blocks
from deltarank.metrics import rank_loss

Floats = NDArray[np.float64]
# Fewer rows with a changed pair than this are too few for a normal approximation.
FEWEST_CHANGED = 20
# Held-out rows whose scores by both fits are held at a time.
ROWS_PER_BLOCK = 4096
# Degree of the polynomial in the expected number of labels that stands for E[w(Y) | x].
DEGREE = 3


class WeightEffect(NamedTuple):
    """What the weights change on rows that were not fitted, Eq. (76).

    Attributes
    ----------
    changed : float
        Share of pairs of a relevant and an irrelevant label whose order differs between the fit
        with the weights and the fit with equal ones.
    loss, uniform_loss : float
        Mean of w(y) times the misordered pairs, by the fit with the weights and by the other; for
        ``weight="rank"`` the rank loss.
    gain : Interval
        The second less the first, paired by row, with its bootstrap interval of 95%.
    correlation : float
        Of the weight of a row with the side that its changed pairs take, both less what the
        features foretell of them; positive where heavy rows side with the weighted order.
    p_value : float
        Of no such dependence, against a positive one; NaN if fewer than 20 rows have a changed
        pair.
    """

    changed: float
    loss: float
    uniform_loss: float
    gain: Interval
    correlation: float
    p_value: float

    def lines(self) -> list[tuple[str, str]]:
        """Return names and values for people."""
        gain = self.gain
        tested = f"correlation {self.correlation:.2g}, p = {self.p_value:.2g}"
        return [
            ("label pairs that the weights put in another order", f"{self.changed:.2%}"),
            ("loss of held-out rows with them", f"{self.loss:.5f}"),
            ("and with equal weights", f"{self.uniform_loss:.5f}"),
            ("gain", f"{gain.mean:+.5f} ({gain.low:+.5f} to {gain.high:+.5f})"),
            (
                "dependence of labels through the weights",
                "too few changed pairs to test" if np.isnan(self.p_value) else tested,
            ),
        ]


class _Changed(NamedTuple):
    """Of each row: its changed pairs, the side they take, what is expected of it, its labels."""

    number: Floats
    side: Floats
    expected_side: Floats
    expected_size: Floats


def weight_effect(
    X: Any, labels: LabelSets, weights: Floats, ranker: Any, cv: Any, random_state: Any
) -> WeightEffect:
    """Fit a ranker with weights and with equal ones, and compare them on the rows held out."""
    _check(X, labels, ranker)
    Y = labels.to_csr()
    changed = _Changed(*np.zeros((4, labels.n_rows)))
    losses = np.zeros((2, labels.n_rows))
    splits = split_rows(cv, X, Y, read_targets(Y), random_state)
    with progress("comparing weights", 2 * len(splits)) as done:
        done.each = 1.0
        for train, test in splits:
            fits = _fits(ranker, _safe_indexing(X, train), Y[train], weights[train])
            for block in row_blocks(len(test), ROWS_PER_BLOCK):
                rows = test[block]
                scores = [fit.decision_function(_safe_indexing(X, rows)) for fit in fits]
                for k in (0, 1):
                    losses[k, rows] = rank_loss(
                        Y[rows], scores[k], weight="uniform", per_instance=True
                    )
                _compare(labels, rows, scores[0], scores[1], changed)
    losses *= weights
    weighted, equal = losses
    n_pairs = labels.sizes * (labels.n_labels - labels.sizes)
    correlation, p_value = _dependence(weights, changed)
    return WeightEffect(
        changed=float(changed.number.sum() / max(1, n_pairs[np.concatenate(_tests(splits))].sum())),
        loss=float(weighted.mean()),
        uniform_loss=float(equal.mean()),
        gain=paired_bootstrap(equal, weighted),
        correlation=correlation,
        p_value=p_value,
    )


def _tests(splits: list[Split]) -> list[NDArray[Any]]:
    return [test for _, test in splits]


def _check(X: Any, labels: LabelSets, ranker: Any) -> None:
    """Refuse what cannot be compared, before any work is done."""
    name = type(ranker).__name__
    if not hasattr(ranker, "get_params") or "weight" not in ranker.get_params(deep=False):
        raise ValueError(
            "ranker must have a parameter `weight`, as LogisticRanker has, to be fitted with and "
            f"without the weights; got {name} (of a pipeline, transform X first)"
        )
    if not getattr(ranker, "estimates_marginals", True):
        raise ValueError(
            f"ranker must score every label by its log odds; the scores of {name} mean nothing but "
            "an order (take LogisticRanker)"
        )
    if labels.unknown is not None:
        raise ValueError("Y must be known in every cell to compare weights on held-out rows")
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != labels.n_rows:
        raise ValueError(
            f"X and Y must have the same number of rows; X has {n_rows} and Y has {labels.n_rows}"
        )


def _fits(ranker: Any, X: Any, Y: Any, weights: Floats) -> list[Any]:
    """Return the fit with the weights and the one with equal weights, one where they are equal."""
    counted = weights[weights > 0]
    equal = clone(ranker).set_params(weight="uniform").fit(X, Y)
    if not len(counted) or counted.min() == counted.max():
        return [equal, equal]
    return [clone(ranker).set_params(weight=lambda _: weights).fit(X, Y), equal]


def _compare(
    labels: LabelSets, rows: NDArray[Any], scores: Floats, equal: Floats, changed: _Changed
) -> None:
    """Find the pairs that two fits order differently, and whether the rows side with the first."""
    changed.expected_size[rows] = sigmoid(equal).sum(axis=1)
    irrelevant = np.ones(labels.n_labels, bool)
    for place, row in enumerate(rows):
        relevant = labels.members[labels.starts[row] : labels.starts[row + 1]]
        irrelevant[relevant] = False
        ahead, equally = (
            of[place, relevant][:, None] - of[place, irrelevant] for of in (scores, equal)
        )
        irrelevant[relevant] = True
        differs = ahead * equally < 0
        sides = np.sign(ahead[differs])
        changed.number[row] = len(sides)
        changed.side[row] = sides.sum()
        # With independent labels, the one of two that is relevant alone is drawn by their odds.
        changed.expected_side[row] = (sides * np.tanh(equally[differs] / 2)).sum()


def _dependence(weights: Floats, changed: _Changed) -> tuple[float, float]:
    """Return the correlation and the p-value of Eq. (76), a generalised covariance measure."""
    rows = changed.number > 0
    if rows.sum() < FEWEST_CHANGED:
        return 0.0, float("nan")
    counts, sizes = changed.number[rows], changed.expected_size[rows]
    surprise = weights[rows] - _smooth(sizes, weights[rows], counts)
    side = (changed.side - changed.expected_side)[rows]
    products = np.zeros(len(weights))
    products[rows] = surprise * side
    spread = (counts * surprise**2).sum() * (side**2 / counts).sum()
    if spread <= 1e-24 * weights.max() ** 2:
        return 0.0, 1.0
    z = products.mean() / stats.sem(products)
    return float(products.sum() / np.sqrt(spread)), float(stats.norm.sf(z))


def _smooth(sizes: Floats, weights: Floats, counts: Floats) -> Floats:
    """Return the least-squares polynomial of the weights in the expected sizes."""
    centred = (sizes - sizes.mean()) / max(float(sizes.std()), 1e-12)
    table = np.vander(centred, DEGREE + 1)
    roots = np.sqrt(counts)
    return np.asarray(table @ np.linalg.lstsq(table * roots[:, None], weights * roots)[0])
