"""A label tree whose ranking is consistent for the rank loss: for very many labels."""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from deltarank.base.parameters import positive_integer, positive_number
from deltarank.base.ranker import Ranker, constant_scores, training_weights
from deltarank.base.scores import check_scores
from deltarank.core.choices import choose
from deltarank.core.progress import progress
from deltarank.core.scores import FIRST, LAST, check_finite
from deltarank.core.threads import row_blocks
from deltarank.core.weights import Weight
from deltarank.trees.clusters import LabelClusters
from deltarank.trees.fit import Fitted, Options, Rows, fit_nodes
from deltarank.trees.nodes import CELLS_PER_CHUNK, Nodes
from deltarank.trees.paths import Paths
from deltarank.trees.tree import Forest, from_hierarchy, number_nodes

Array = NDArray[Any]
# Chosen on training rows of EUR-Lex.
DEFAULT_C = {"logistic": 60.0, "squared_hinge": 3.0}
# Where more than this share of all labels is wanted, scores of all are quicker than a search.
MOST_SEARCHED = 0.1
# Rows searched at a time: few enough that a search can be interrupted and tells how far it is.
ROWS_SEARCHED = 4096
# Coefficients of larger features would be too small for float32, in which nodes keep them.
LARGEST_FEATURE = 1e30


class LabelTreeRanker(Ranker):
    r"""Rank very many labels by a tree of weighted logistic regressions, consistent for rank loss.

    Labels that occur in like rows stand together in a tree. A node v says how likely one of its
    labels is relevant, given that one of its parent's is:

    .. math:: \eta_v(x) = Q_x(z_v = 1 \mid z_{\mathrm{parent}(v)} = 1),

    where :math:`Q_x(y)` is proportional to :math:`w(y) P(y \mid x)`. The product along the path to
    label l is :math:`\Delta_l^1 / W`, what the best ranking orders labels by. A node is fitted on
    the rows of its parent alone, so that time grows with the number of relevant labels and the
    depth of the tree, and a ranking of the best k labels opens few nodes.

    Parameters
    ----------
    C : float, optional
        Inverse of the penalty's strength at the nodes of single labels, as in scikit-learn; by
        default 60 for the logistic loss and 3 for the squared hinge.
    inner_C : float, optional
        That at the nodes of groups; by default a sixth of C, for errors there reach all labels
        below.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        What a row counts, by its label set: see `deltarank.instance_weights`. Normalised to mean 1
        over the rows with a pair to rank.
    n_trees : int
        Trees with other random clusters, whose products are averaged. A tree that is given, or
        flat, is one tree.
    tree : {"clusters", "flat"} or mapping
        "clusters" puts labels together whose rows are alike, by balanced spherical 2-means of the
        sums of their rows. "flat" has one level, all labels under the root. A mapping is a
        hierarchy, such as a thesaurus: from the names of labels and groups to the name of what is
        above each; those without an entry are at the top.
    arity : int
        Most children of a node of clusters.
    leaf_size : int
        Most labels under one node of clusters.
    loss : {"logistic", "squared_hinge"}
        What nodes minimise. "logistic" estimates chances, and its ranking is consistent.
        "squared_hinge" stops caring about rows that are clearly on their side: it often gets more
        of the first few labels right, and its coefficients are sparser, but labels far down are in
        a worse order. Its scores are tripled, and the logistic function of them stands in for a
        chance.
    penalize_intercept : bool
        Penalise intercepts like coefficients. Without, a node of few rows may trust them too much.
    prune : float, optional
        Leave out coefficients smaller than this in size, as they would be if rows had a root mean
        square length of about 1; None keeps all.
    tol : float
        Stop when the duality gaps of siblings are below this share of their objectives. Nodes with
        a very large C are solved by passes over their rows, where the gap is an estimate.
    max_iter : int
        Most epochs, or passes, over the rows of a node.
    random_state : int, generator or None
        For the clusters.
    checkpoint : str, optional
        A folder in which blocks of nodes are kept once they are solved. A fit that was killed goes
        on from there, to the same result; a folder of other data, trees or parameters is refused,
        so give `random_state` too.

    Attributes
    ----------
    coef_ : CSC array of shape (n_nodes, d)
        Roots first, then the children of node 0, of node 1, and so on.
    intercept_ : array of shape (n_nodes,)
    child_starts_ : array of shape (n_nodes + 1,)
        The children of node v are those from ``child_starts_[v]`` to ``child_starts_[v + 1]``.
    node_labels_ : array of shape (n_nodes,)
        The label of a leaf, a column number; -1 of other nodes.
    constants_ : array of shape (m,)
        Scores of labels never (or always) relevant in training, which no tree has; else NaN.
    classes_ : array of shape (m,)
        Names of the labels.
    n_iter_ : array of shape (n_nodes,)
        Epochs, or passes.
    converged_ : array of shape (n_nodes,)

    See Also
    --------
    LogisticRanker : Every label on all rows: a little better, and slower by far.

    Notes
    -----
    Unknown labels are refused: whether a label below a node is relevant is then not known of many
    rows, and those of which it is known are no fair sample.

    Examples
    --------
    >>> from deltarank import LabelTreeRanker
    >>> from deltarank.datasets import long_tailed
    >>> X, Y = long_tailed(2000, 500, 300, random_state=0)
    >>> ranker = LabelTreeRanker(random_state=0).fit(X, Y)
    >>> ranker.rank(X[:2], top=3).shape
    (2, 3)
    >>> chances = ranker.marginal_weights(X[:2])
    >>> bool((chances.argmax(axis=1) == ranker.rank(X[:2], top=1)[:, 0]).all())
    True
    """

    def __init__(
        self,
        *,
        C: float | None = None,
        inner_C: float | None = None,
        weight: Weight = "rank",
        n_trees: int = 3,
        tree: str | Mapping[Any, Any] = "clusters",
        arity: int = 64,
        leaf_size: int = 64,
        loss: str = "logistic",
        penalize_intercept: bool = True,
        prune: float | None = 0.3,
        tol: float = 0.1,
        max_iter: int = 1000,
        random_state: Any = None,
        checkpoint: str | None = None,
    ) -> None:
        self.C = C
        self.inner_C = inner_C
        self.weight = weight
        self.n_trees = n_trees
        self.tree = tree
        self.arity = arity
        self.leaf_size = leaf_size
        self.loss = loss
        self.penalize_intercept = penalize_intercept
        self.prune = prune
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LabelTreeRanker":
        """Grow the trees and fit all their nodes.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array, sparse matrix, data frame or list of label sets
            Zero-one matrix of shape (n, m), label sets, or a vector of classes, one per row.
        sample_weight : array of shape (n,), optional
            Multiplies the weights of the label sets.
        """
        options = self._options()
        X = self._check_rows(X, fitting=True)
        targets = self._check_labels(y, X.shape[0])
        weights = training_weights(targets, y, self.weight, sample_weight)
        constants = constant_scores(targets.labels, weights)
        rows = Rows.of(X, weights, targets.labels)
        forest = self._grow(rows, np.flatnonzero(np.isnan(constants)))
        self._keep(forest, fit_nodes(rows, forest, options), constants)
        return self

    def _options(self) -> Options:
        for name in ("n_trees", "leaf_size", "max_iter"):
            positive_integer(getattr(self, name), name)
        if positive_integer(self.arity, "arity") < 2:
            raise ValueError(f"arity must be at least 2; got {self.arity!r}")
        if not isinstance(self.tree, Mapping):
            choose({"clusters": None, "flat": None}, self.tree, "tree")
        C = choose(DEFAULT_C, self.loss, "loss")
        if self.C is not None:
            C = positive_number(self.C, "C")
        return Options(
            loss=self.loss,
            C=C,
            of_groups=C / 6 if self.inner_C is None else positive_number(self.inner_C, "inner_C"),
            penalize_intercept=bool(self.penalize_intercept),
            tol=positive_number(self.tol, "tol"),
            max_iter=self.max_iter,
            prune=0.0 if self.prune is None else positive_number(self.prune, "prune"),
            checkpoint=self.checkpoint,
        )

    def _grow(self, rows: Rows, labels: Array) -> Forest:
        """Return the trees over some labels."""
        if isinstance(self.tree, Mapping):
            return from_hierarchy(self.tree, self.classes_.tolist(), labels)
        if self.tree == "flat" or len(labels) <= self.leaf_size:
            return number_nodes([labels])
        clusters = LabelClusters(rows.matrix, rows.n_features, *rows.by_label())
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_trees)
        return clusters.trees(labels, arity=self.arity, leaf_size=self.leaf_size, seeds=seeds)

    def _keep(self, forest: Forest, fitted: Fitted, constants: Array) -> None:
        self.child_starts_, self.node_labels_ = forest
        self.coef_, self.intercept_ = fitted.coef, fitted.intercept
        self.constants_, self.n_iter_ = constants, fitted.n_iter
        self.converged_ = fitted.gap <= self.tol
        self._restored()
        late = int((~self.converged_).sum())
        if late:
            warnings.warn(
                f"{late} of {len(self.converged_)} nodes did not reach tol={self.tol} in "
                f"max_iter={self.max_iter} epochs; raise max_iter, or scale the rows",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _restored(self) -> None:
        """Make ready for ranking, from what a fit found or a file holds."""
        forest = Forest(self.child_starts_, self.node_labels_)
        forest.check(len(self.constants_))
        self._nodes = Nodes.of(forest, len(self.constants_), self.coef_, self.intercept_)

    def _largest_feature(self, dtype: Any) -> float:
        return LARGEST_FEATURE

    def paths_to(self, column: int) -> Paths:
        """Return the nodes on the ways to a label, given by its column, one row per tree.

        Examples
        --------
        >>> from deltarank.datasets import long_tailed
        >>> X, Y = long_tailed(300, 20, 10, random_state=0)
        >>> ranker = LabelTreeRanker(arity=2, leaf_size=2, n_trees=2, random_state=0).fit(X, Y)
        >>> added, of_zeros = ranker.paths_to(0).contributions(X[[0]].toarray()[0])
        >>> bool(abs(added.sum() + of_zeros - ranker.decision_function(X[[0]])[0, 0]) < 1e-5)
        True
        """
        return Paths.to(self._nodes, column)

    def _scores(self, X: Any) -> NDArray[Any]:
        return self._nodes.scorer(self.constants_)(X)

    def _score_blocks(self, X: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
        if self._form == "binary":
            yield from super()._score_blocks(X)
            return
        score = self._nodes.scorer(self.constants_)  # costly to make, so once for all blocks
        with progress("scoring", X.shape[0]) as done:
            for rows in row_blocks(X.shape[0], max(1, CELLS_PER_CHUNK // len(self.constants_))):
                yield rows, check_scores(score(X[rows]), len(self.classes_), rows.start)
                done(rows.stop)

    def _best_columns(self, X: Any, top: int) -> NDArray[np.intp]:
        if not self._searches(top):
            return super()._best_columns(X, top)
        blocks = [columns for _, columns, _ in self._ranked_blocks(X, top)]
        return np.concatenate([np.empty((0, top), np.intp), *blocks])

    def _ranked_blocks(
        self, X: Any, top: int
    ) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[Any]]]:
        if not self._searches(top):
            yield from super()._ranked_blocks(X, top)
            return
        with progress("searching", X.shape[0]) as done:
            for rows in row_blocks(X.shape[0], ROWS_SEARCHED):
                columns, scores = self._search(X[rows], top)
                check_finite(scores, rows.start)
                yield rows, columns, scores
                done(rows.stop)

    def _searches(self, top: int) -> bool:
        # Where they do not fit, taking all scores reports it.
        fits = len(self.constants_) == len(self.classes_)
        return self._form != "binary" and fits and top <= MOST_SEARCHED * len(self.constants_)

    def _search(self, X: Any, top: int) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Return columns and scores of the best labels, those of constant scores at both ends."""
        first = np.flatnonzero(self.constants_ == FIRST)[:top]
        n_searched = min(top - len(first), self._nodes.n_labels)
        last = np.flatnonzero(self.constants_ == LAST)[: top - len(first) - n_searched]
        columns, scores = self._nodes.search(X, n_searched)
        ends = [np.broadcast_to(labels, (len(columns), len(labels))) for labels in (first, last)]
        constants = [self.constants_[labels].astype(X.dtype) for labels in ends]
        return (
            np.hstack([ends[0], columns, ends[1]]),
            np.hstack([constants[0], scores, constants[1]]),
        )
