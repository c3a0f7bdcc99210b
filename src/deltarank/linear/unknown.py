"""What rows with unknown labels weigh, and as what they are fitted, Eq. (60) and (61)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.base.placing import CheckedRows, Totals
from deltarank.base.ranker import (
    CELLS_PER_CHUNK,
    NO_ROW_COUNTS,
    constant_scores,
    constants_of,
    training_weights,
)
from deltarank.base.targets import Targets
from deltarank.core import memory
from deltarank.core.balance import row_masses
from deltarank.core.completion import completed, soft_targets
from deltarank.core.labels import LabelSets, row_numbers
from deltarank.core.losses import LOSSES, sigmoid
from deltarank.core.threads import row_blocks
from deltarank.core.weights import Weight, expected_weights, normalized
from deltarank.core.workers import Chunks
from deltarank.linear.coefficients import linear_scores
from deltarank.linear.fit import fit
from deltarank.linear.objective import Objective
from deltarank.linear.ranker import with_constants
from deltarank.linear.rows.cluster import ClusterRows, RowChunk
from deltarank.linear.rows.place import place

# What becomes of a row with unknown labels: see `LogisticRanker`.
UNKNOWN = ("expected", "completed", "known_part")
# The penalty of the marginals where the ranker's own is still to be chosen.
DEFAULT_C = 1.0


class Marginals(NamedTuple):
    """Chances P(y_l = 1 | x) of single labels: log-odds are linear."""

    coef: Any
    intercept: NDArray[Any]

    @staticmethod
    def fitted(ranker: Any, rows: Any, constants: NDArray[Any]) -> "Marginals":
        """Fit every label on the rows in which it is known, each row counting once.

        More rounds, with these chances in place of unknown labels, would change nothing but for the
        penalty: what is best for the known cells is best for cells that have these very chances.
        """
        options = ranker._options()._replace(checkpoint=None)
        C = getattr(ranker, "C", DEFAULT_C)
        objective = Objective(rows, C=C, penalize_intercept=ranker.penalize_intercept)
        fitted = fit(objective, options)
        return Marginals(*with_constants(fitted.coef, fitted.intercept, constants))

    def of_unknown(self, X: Any, labels: LabelSets) -> NDArray[np.float64]:
        """Return the chances of the unknown cells, row after row."""
        assert labels.unknown is not None
        starts, members = labels.unknown.starts, labels.unknown.members
        chances = np.empty(len(members))
        for some in row_blocks(labels.n_rows, max(1, CELLS_PER_CHUNK // labels.n_labels)):
            cells = slice(starts[some.start], starts[some.stop])
            if cells.start < cells.stop:
                scores = linear_scores(X[some], self.coef, self.intercept)
                rows = labels.unknown.rows[cells] - some.start
                chances[cells] = sigmoid(scores[rows, members[cells]])
        return chances


def averages(ranker: Any) -> bool:
    """Tell whether a ranker averages its weights over unknown labels, should there be any.

    A callable weight is given Y as it came and decides for itself.
    """
    return bool(ranker.unknown != "known_part") and not callable(ranker.weight)


def weights_of(
    ranker: Any, X: Any, targets: Targets, y: Any, sample_weight: Any, balance: float
) -> NDArray[np.float64]:
    """Return the training weights of checked rows, by the ranker's rule for unknown labels."""
    labels, weight = targets.labels, ranker.weight
    if labels.unknown is not None and averages(ranker):
        _refuse_balance(balance)
        refuse_completion(ranker, "a cross-validation, whose folds are of given rows")
        means = expected_weights(labels, _chances(ranker, X, labels, sample_weight)[0], weight)
        weight = lambda _: means  # noqa: E731
    return np.asarray(training_weights(targets, y, weight, sample_weight, balance))


def rows_to_fit(
    ranker: Any, X: Any, targets: Targets, y: Any, sample_weight: Any
) -> tuple[Any, LabelSets, NDArray[np.float64]]:
    """Return checked rows with their labels and training weights, completed if need be."""
    labels = targets.labels
    if labels.unknown is None or ranker.unknown != "completed" or callable(ranker.weight):
        return X, labels, weights_of(ranker, X, targets, y, sample_weight, ranker.balance)
    _refuse_balance(ranker.balance)
    chances, counts = _chances(ranker, X, labels, sample_weight)
    means, soft = soft_targets(labels, chances, ranker.weight)
    weights = counts * normalized(means, labels, counts)
    if not means.any():  # no row can have a pair; such a fit has known cells alone
        return X, labels, weights
    used = np.flatnonzero(weights > 0)
    cells = (weights > 0)[labels.unknown.rows]
    taken = labels.take(used)
    _require_room(X, taken, used)
    rows, complete, shares = completed(taken, soft[cells])
    return X[used[rows]], complete, weights[used[rows]] * shares


def _require_room(X: Any, labels: LabelSets, used: NDArray[Any]) -> None:
    """Refuse to make more rows of the used ones of X than there is memory for."""
    assert labels.unknown is not None
    n_copies = labels.unknown.sizes + 1
    per_copy = 4 * (labels.sizes + labels.unknown.sizes)  # its labels, at most
    if sparse.issparse(X):
        per_copy += np.diff(X.indptr)[used] * (X.dtype.itemsize + X.indices.itemsize)
    else:
        per_copy += X.shape[1] * X.dtype.itemsize
    memory.require(
        float(n_copies @ per_copy),
        f"completing {len(used):,} rows to {n_copies.sum():,}",
        "unknown='expected' makes no more rows",
    )


def _chances(
    ranker: Any, X: Any, labels: LabelSets, sample_weight: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the chances of unknown cells, and how often each row counts."""
    counts = np.ones(labels.n_rows)
    if sample_weight is not None:
        counts = row_numbers(sample_weight, labels.n_rows, "sample_weight")
    if not counts.any():
        raise ValueError(NO_ROW_COUNTS)
    rows = place(X, labels, counts, device=ranker.device, loss=LOSSES["logistic"])
    marginals = Marginals.fitted(ranker, rows, constant_scores(labels, counts))
    return marginals.of_unknown(X, labels), counts


def refuse_completion(ranker: Any, where: str) -> None:
    """Refuse to complete rows where nobody can."""
    if ranker.unknown == "completed":
        raise ValueError(
            f"unknown='completed' makes several rows of one, which is not for {where}; "
            "use LogisticRanker on rows in memory, or unknown='expected'"
        )


def average_chunks(
    ranker: Any, checked: Chunks, totals: Totals, dtype: Any, balance: float
) -> tuple[Chunks, Totals]:
    """Return rows on a cluster with weights averaged over unknown labels, where there are any."""
    if not (totals.any_unknown and averages(ranker)):
        if not balance:
            return checked, totals
        balanced = checked.map(_balanced, balance)
        return balanced, balanced.total(CheckedRows.totals, merge=Totals.merged)
    _refuse_balance(balance)
    refuse_completion(ranker, "rows on a cluster")
    chunks, n_labels = checked.map(_counted), len(ranker.classes_)
    rows = ClusterRows(chunks, n_labels, dtype=dtype, loss=LOSSES["logistic"])
    summary = rows.summary
    constants = constants_of(summary.relevant, summary.n_counted - summary.unknown)
    marginals = Marginals.fitted(ranker, rows, constants)
    averaged = checked.map(_averaged, marginals, ranker.weight)
    return averaged, averaged.total(CheckedRows.totals, merge=Totals.merged)


def _counted(rows: CheckedRows) -> RowChunk:
    return RowChunk(rows.X, rows.labels, rows.counts, 1.0, rows.counts)


def _averaged(rows: CheckedRows, marginals: Marginals, weight: Weight) -> CheckedRows:
    if rows.labels.unknown is None:
        return rows
    raw = expected_weights(rows.labels, marginals.of_unknown(rows.X, rows.labels), weight)
    return CheckedRows(rows.X, rows.labels, rows.counts, raw, rows.form)


def _balanced(rows: CheckedRows, balance: float) -> CheckedRows:
    raw = rows.raw * row_masses(rows.labels, balance)
    return CheckedRows(rows.X, rows.labels, rows.counts, raw, rows.form)


def _refuse_balance(balance: float) -> None:
    if balance:
        raise ValueError(
            f"balance={balance:g} counts the labels of a row, and some of Y are unknown: "
            "pass unknown='known_part' to count the known ones, or balance=0"
        )
