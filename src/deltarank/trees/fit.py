"""All problems of a forest: siblings together, over the rows with a label below their parent."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core import threads
from deltarank.core.arrays import with_narrow_places
from deltarank.core.labels import LabelSets, label_sets
from deltarank.core.losses import LOSSES
from deltarank.core.progress import progress
from deltarank.linear import fit as linear
from deltarank.linear.checkpoint import Checkpoint
from deltarank.linear.kernels.lanes import LANES
from deltarank.linear.objective import Objective
from deltarank.linear.rows.local import LocalRows
from deltarank.linear.rows.tables import are_small
from deltarank.trees.kernels.members import family_signs, kept_coefficients, rows_of_nodes
from deltarank.trees.kernels.siblings import ascend_siblings
from deltarank.trees.tree import Forest

Array = NDArray[Any]
# Score of a root that every row has: its chance is one.
CERTAIN = 1e30
LARGEST_C = 1e30
# Families solved together and kept together: few enough that a fit can be interrupted, tells how
# far it is, and loses little when it is killed.
FAMILIES_PER_BLOCK = 16
# What scores of a loss are multiplied by, so that the logistic function stands in for the inverse
# of its link. Of the squared hinge that is (1 + s) / 2: at 3 s it is never more than .07 away
# between the margins, and beyond them it still tells scores apart.
SHARPNESS = {"logistic": 1.0, "squared_hinge": 3.0}
# Rows of which more than this share is not zero are handled as dense.
DENSE_SHARE = 0.25


class Options(NamedTuple):
    """How problems are solved: see `LabelTreeRanker`; `of_groups` is its `inner_C`."""

    loss: str
    C: float
    of_groups: float
    penalize_intercept: bool
    tol: float
    max_iter: int
    prune: float
    checkpoint: str | None


class Fitted(NamedTuple):
    """Coefficients of nodes, one row per node, and how they were found.

    The coefficients of blocks of nodes are CSR, those of all nodes CSC: a search takes them so.
    """

    coef: sparse.csr_array | sparse.csc_array
    intercept: Array
    n_iter: Array
    gap: Array


class Rows(NamedTuple):
    """Rows to fit, scaled to a root mean square length of about 1.

    Attributes
    ----------
    matrix : tuple
        Starts, columns and float32 values of a CSR matrix.
    n_features : int
    scale : float
        What the values were divided by.
    weights : array of shape (n,)
    labels : LabelSets
    """

    matrix: tuple[Array, Array, Array]
    n_features: int
    scale: float
    weights: Array
    labels: LabelSets

    @classmethod
    def of(cls, X: Any, weights: Array, labels: LabelSets) -> "Rows":
        """Return checked rows, dense or sparse, as they are to be fitted."""
        matrix = sparse.csr_array(X)
        largest = float(np.abs(matrix.data).max(initial=0.0)) or 1.0
        squares = np.square(matrix.data / largest, dtype=np.float64).sum()
        length = largest * float(np.sqrt(squares / matrix.shape[0])) or 1.0
        scale = 2.0 ** round(np.log2(length))  # by a power of two, so that nothing is rounded
        values = (matrix.data / scale).astype(np.float32)
        structure = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        return cls((*structure, values), matrix.shape[1], scale, weights.astype(np.float32), labels)

    def take(self, rows: Array) -> Any:
        """Return some rows as they were given, up to rounding; dense where that is quicker."""
        shape = (len(self.matrix[0]) - 1, self.n_features)
        starts, indices, values = self.matrix
        taken = sparse.csr_array((values, indices, starts), shape=shape)[rows]
        taken.data = taken.data * self.scale
        return taken.toarray() if taken.nnz > DENSE_SHARE * np.prod(taken.shape) else taken

    @property
    def counted(self) -> Array:
        """The rows that count."""
        return np.flatnonzero(self.weights > 0).astype(np.int32)

    def by_label(self) -> tuple[Array, Array]:
        """Return the rows of each label that count, label after label, and where each's start."""
        counts = np.where(self.weights > 0, self.labels.sizes, 0)
        members = self.labels.members[self.weights[self.labels.rows] > 0]
        starts = np.concatenate([[0], np.cumsum(counts)])
        return LabelSets(starts, members, self.labels.n_labels).by_label()

    @property
    def are_small(self) -> bool:
        """Whether they are so few that exact Hessians are the quickest way."""
        return are_small(len(self.weights), self.n_features, self.labels.n_labels)


class _Family(NamedTuple):
    """Siblings to be solved together: nodes from `first` to `end`, over some rows."""

    first: int
    end: int
    rows: Array


def fit_nodes(rows: Rows, forest: Forest, options: Options) -> Fitted:
    """Fit every node on the rows that hold a label below its parent.

    Families do not depend on each other, so all trees and levels are solved at once, in blocks of
    some families. Those that dual coordinate ascent is slow to solve, as it is of dense rows and
    large C, are solved by passes over their rows, and so are all of small data.
    """
    leaves = forest.leaves(rows.labels.n_labels)
    labels, counted = rows.labels, rows.counted
    of_nodes = rows_of_nodes(labels.starts, labels.members, counted, leaves, forest.parents)
    families = list(_families(forest, of_nodes, counted))
    problems = _Problems(rows, of_nodes, forest.labels >= 0, options)
    costs = np.array([len(family.rows) for family in families])
    kept: Any = nullcontext()
    if options.checkpoint is not None:
        kept = Checkpoint(options.checkpoint, _fingerprint(rows, forest, options))
    blocks = threads.row_blocks(len(families), FAMILIES_PER_BLOCK)
    solved = []
    with kept, progress("fitting nodes", float(costs.sum())) as done:
        for number, block in enumerate(blocks):
            earlier = kept.load(number) if isinstance(kept, Checkpoint) else None
            if earlier is None:
                solved.append(problems.solve(families[block]))
                if isinstance(kept, Checkpoint):
                    kept.save(number, solved[-1]._asdict())
            else:
                solved.append(Fitted(**earlier))
            done(done.at + float(costs[block].sum()))
    return _joined(solved)


def _joined(parts: list[Fitted]) -> Fitted:
    """Put blocks of nodes together, coefficients feature by feature; the list is emptied."""
    _, *others = zip(*parts, strict=True)
    coef = with_narrow_places(sparse.vstack([part.coef for part in parts], format="csr"))
    parts.clear()  # else there would be three copies
    return Fitted(sparse.csc_array(coef), *map(np.concatenate, others))


def _fingerprint(rows: Rows, forest: Forest, options: Options) -> str:
    """Return a checksum of all that decides what nodes are solved to."""
    digest = hashlib.blake2b(digest_size=32)
    settings = options._replace(checkpoint=None)
    digest.update(json.dumps([rows.n_features, rows.scale, *settings]).encode())
    labels = (rows.labels.starts, rows.labels.members)
    for array in (*rows.matrix, rows.weights, *labels, *forest):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def _families(forest: Forest, of_nodes: tuple[Array, Array], counted: Array) -> Iterator[_Family]:
    """Yield all nodes, in their order; the roots are a family over all rows."""
    starts, rows = of_nodes
    bounds = np.concatenate([[0], forest.child_starts])
    for parent, (first, end) in enumerate(pairwise(bounds), start=-1):
        family_rows = counted if parent < 0 else rows[starts[parent] : starts[parent + 1]]
        for block in threads.row_blocks(end - first, LANES):
            yield _Family(first + block.start, first + block.stop, family_rows)


class _Problems(NamedTuple):
    """What the problems of all families have in common.

    Solutions are tuples of counts, features and values of kept coefficients, intercepts, epochs and
    gaps.
    """

    rows: Rows
    of_nodes: tuple[Array, Array]
    is_label: Array
    options: Options

    def solve(self, families: list[_Family]) -> Fitted:
        """Solve some families, the largest first, on all threads."""
        order = np.argsort([-len(family.rows) for family in families], kind="stable")
        ascended = threads.run([partial(self.ascend, families[k]) for k in order])
        parts: list[Any] = [None] * len(families)
        for k, part in zip(order, ascended, strict=True):
            parts[k] = self.descend(families[k]) if part is None else part
        counts, indices, values, *others = (
            np.concatenate(field) for field in zip(*parts, strict=True)
        )
        starts = np.concatenate([[0], np.cumsum(counts)])
        shape = (len(counts), self.rows.n_features)
        return Fitted(sparse.csr_array((values, indices, starts), shape=shape), *others)

    def ascend(self, family: _Family) -> tuple[Array, ...] | None:
        """Solve siblings by dual coordinate ascent; None where that is not the way."""
        (first, end, family_rows), rows, options = family, self.rows, self.options
        width = end - first
        starts, _ = self.of_nodes
        if (np.diff(starts[first : end + 1]) == len(family_rows)).all():
            # As for roots where all rows have a label: there is nothing to tell.
            nothing = np.zeros(width, np.int64)
            empty = np.empty(0, np.int32), np.empty(0, np.float32)
            return nothing, *empty, np.full(width, CERTAIN), nothing + 1, np.zeros(width)
        if rows.are_small:
            return None
        Cs = np.full(LANES, options.of_groups)
        Cs[:width] = self._Cs(family)
        with np.errstate(over="ignore"):
            scaled = np.minimum(Cs * np.square(rows.scale), LARGEST_C).astype(np.float32)
        intercept_Cs = np.where(options.penalize_intercept, Cs, np.inf).astype(np.float32)
        epochs = min(options.max_iter, linear.PATIENCE)
        limits = (intercept_Cs, options.tol, epochs, options.loss == "squared_hinge")
        features, coef, intercepts, n_epochs, gaps = ascend_siblings(
            rows.matrix, rows.n_features, family_rows, rows.weights, self._signs(family), scaled,
            limits, first + 1,
        )  # fmt: skip
        if gaps.max() > options.tol and options.max_iter > linear.PATIENCE:
            return None
        n_iter = np.full(width, n_epochs)
        return *self._kept(features, coef, intercepts[:width]), n_iter, gaps[:width]

    def descend(self, family: _Family) -> tuple[Array, ...]:
        """Solve siblings by the solvers of linear rankers."""
        (first, end, family_rows), options = family, self.options
        width = end - first
        X = self.rows.take(family_rows)
        signs, weights = self._signs(family), self.rows.weights[family_rows].astype(np.float64)
        features = np.arange(X.shape[1], dtype=np.int32)
        coef, intercept = np.empty((X.shape[1], width), np.float32), np.empty(width)
        n_iter, converged = np.empty(width, np.int64), np.empty(width, bool)
        limits = linear.Options(options.tol, options.max_iter)
        Cs = self._Cs(family)
        for C in np.unique(Cs):
            lanes = np.flatnonzero(Cs == C)
            loss = LOSSES[options.loss]
            local = LocalRows(X, label_sets(signs[:, lanes] > 0), weights, loss=loss)
            objective = Objective(local, C=C, penalize_intercept=options.penalize_intercept)
            solution = linear.solve(objective, np.arange(len(lanes)), limits)
            node_coef, intercept[lanes] = objective.to_features(solution.point)
            coef[:, lanes] = node_coef.T * self.rows.scale
            n_iter[lanes], converged[lanes] = solution.n_iter, solution.converged
        # These solvers estimate the gap, and tell whether it is below what was asked for.
        gaps = np.where(converged, 0.0, np.inf)
        return *self._kept(features, coef, intercept), n_iter, gaps

    def _Cs(self, family: _Family) -> Array:  # noqa: N802  C is the parameter's name
        is_label = self.is_label[family.first : family.end]
        return np.where(is_label, self.options.C, self.options.of_groups)

    def _signs(self, family: _Family) -> Array:
        return family_signs(family.rows, *self.of_nodes, family.first, family.end, LANES)

    def _kept(self, features: Array, coef: Array, intercepts: Array) -> tuple[Array, ...]:
        """Return the coefficients to keep, for rows as they were given, and intercepts."""
        sharpness, prune = SHARPNESS[self.options.loss], self.options.prune
        kept = kept_coefficients(features, coef, len(intercepts), prune / sharpness)
        counts, indices, values = kept
        values = (values / (self.rows.scale / sharpness)).astype(np.float32)
        return counts, indices, values, sharpness * intercepts
