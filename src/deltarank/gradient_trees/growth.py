"""A tree grows leaf by leaf, always at the leaf whose split gains most."""

from functools import partial
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.kernels.lanes import LANES
from deltarank.core.threads import run
from deltarank.gradient_trees.histograms import BinnedRows, Rows
from deltarank.gradient_trees.kernels.histograms import CURVATURE, WIDTH, subtract, sum_rows
from deltarank.gradient_trees.kernels.routes import MOST_CATEGORIES
from deltarank.gradient_trees.kernels.sets import best_sets
from deltarank.gradient_trees.kernels.splits import best_splits, find_leaves, part_rows

# Rows times features below which a node is searched sooner than threads would start.
CELLS_WORTH_THREADS = 100_000
# Codes of a feature, that of missing values included; and the cut of a split that has none.
N_CODES, A_SET = MOST_CATEGORIES + 1, -1


class Limits(NamedTuple):
    """How far a tree may grow, and what sums of small nodes are held to."""

    max_leaves: int
    max_depth: int
    min_child_weight: float
    l2: float


class Split(NamedTuple):
    """What a node gains over staying whole, and how it is cut: which codes go left."""

    gain: float
    feature: int
    cut: int
    missing_left: bool
    goes_left: NDArray[np.bool_]


class Found(NamedTuple):
    """The best split by each feature: its gain, its cut, and 1 where missing values go left.

    For categories it has a set in place of a cut, where there are any.
    """

    gains: NDArray[np.float64]
    cuts: NDArray[np.int64]
    sides: NDArray[np.int64]
    sets: NDArray[np.bool_]

    @classmethod
    def of(cls, is_categorical: NDArray[np.bool_]) -> "Found":
        """Return one in which no feature has a split yet."""
        n_features = len(is_categorical)
        sets = np.zeros((n_features if is_categorical.any() else 0, MOST_CATEGORIES), bool)
        cuts = np.where(is_categorical, A_SET, 0)
        return cls(np.full(n_features, -np.inf), cuts, np.zeros(n_features, np.int64), sets)

    def split(self, n_values: NDArray[np.int64], tie: float) -> Split:
        """Return the best; the first of those that differ by less than a share of `tie`."""
        best = self.gains.max()
        feature = int(np.argmax(self.gains >= best - tie * abs(best)))
        cut, way = int(self.cuts[feature]), bool(self.sides[feature])
        goes_left = np.arange(N_CODES) <= cut
        if cut == A_SET:
            goes_left[:-1] = self.sets[feature]
        goes_left[n_values[feature]] = way
        return Split(float(self.gains[feature]), feature, cut, way, goes_left)


class Node(NamedTuple):
    """A leaf so far: its rows within the order, sums of their cells, histograms, depth."""

    place: tuple[int, int]
    rows: slice
    total: NDArray[np.float64]
    histograms: NDArray[Any]
    depth: int


class Tree(NamedTuple):
    """Inner nodes in the order they were split, the root first; leaf k is child ~k.

    Attributes
    ----------
    features, cuts, missing_left : arrays of shape (v,)
        A row goes left if its code is at most the cut; of a set of categories there is none.
    goes_left : array of shape (v, codes)
        Whether rows with a code go left.
    gains : array of shape (v,)
    children : array of shape (v, 2)
    order : array of int
        The rows it was grown from, leaf by leaf.
    starts : array of shape (leaves + 1,)
        Where each leaf's rows begin in it.
    """

    features: NDArray[np.int32]
    cuts: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    goes_left: NDArray[np.bool_]
    gains: NDArray[np.float64]
    children: NDArray[np.int32]
    order: Rows
    starts: NDArray[np.int64]

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.starts) - 1


class Growth:
    """Grows trees from the same binned rows, one after the other."""

    def __init__(
        self, rows: BinnedRows, dtype: Any, limits: Limits, is_categorical: NDArray[np.bool_]
    ) -> None:
        self.rows, self.limits, self.is_categorical = rows, limits, is_categorical
        self._first_lines, self._n_values = rows.bins.first_lines, rows.bins.n_values
        self._shape, self._dtype = (int(self._first_lines[-1]), WIDTH), dtype
        # Gains closer than this share may differ by rounding only.
        self.tie = float(np.finfo(dtype).eps ** (2 / 3))
        self.held_to = (limits.l2, limits.min_child_weight * (1 - self.tie), self.tie)
        self._free: list[NDArray[Any]] = []

    def grow(self, order: Rows, cells: NDArray[Any], features: NDArray[Any]) -> Tree:
        """Grow a tree from some rows, which are put in the order of its leaves.

        Parameters
        ----------
        order : array of int
        cells : array of shape (n, WIDTH)
            Sketch and curvature of all rows.
        features : array of int
            Those to split by, ascending.
        """
        return _Growing(self, order, cells, features).tree()

    def take(self) -> NDArray[Any]:
        """Return room for the histograms of a node."""
        return self._free.pop() if self._free else np.empty(self._shape, self._dtype)

    def give_back(self, histograms: NDArray[Any]) -> None:
        """Let other nodes have the room."""
        self._free.append(histograms)

    def leaves_of(self, tree: Tree, rows: Rows, leaves: NDArray[np.int32]) -> None:
        """Set the leaves of rows that the tree was not grown from."""
        if tree.n_leaves == 1:
            leaves[rows] = 0
            return
        codes, lines = self.rows.codes(tree.features)
        route = (lines, tree.goes_left, tree.children, leaves)
        blocks = np.array_split(rows, len(self.rows.parts))
        run([partial(find_leaves, codes, block, *route) for block in blocks])


class _Growing:
    """One tree on its way."""

    def __init__(self, growth: Growth, order: Rows, cells: Any, features: Any) -> None:
        self.growth, self.order, self.cells = growth, order, cells
        parts = growth.rows.parts
        self._features = [part[np.isin(part, features, assume_unique=True)] for part in parts]
        is_set = [growth.is_categorical[part] for part in self._features]
        self._numbers = [part[~sets] for part, sets in zip(self._features, is_set, strict=True)]
        self._categories = [part[sets] for part, sets in zip(self._features, is_set, strict=True)]
        self._spare = np.empty_like(order)
        self._waiting: list[tuple[float, int, Split, Node]] = []
        self._splits: list[Split] = []
        self._children: list[list[int]] = []
        self._leaves: list[Node] = []

    def tree(self) -> Tree:
        total = self._sum(slice(0, len(self.order)))
        root = Node((-1, 0), slice(0, len(self.order)), total, self.growth.take(), 0)
        self._consider([root], self._searched(root, None))
        while self._waiting and self._n_leaves < self.growth.limits.max_leaves:
            self._split(*heappop(self._waiting)[2:])
        for *_, node in sorted(self._waiting):
            self._settle(node)
        return self._finished()

    @property
    def _n_leaves(self) -> int:
        return len(self._waiting) + len(self._leaves)

    def _split(self, split: Split, node: Node) -> None:
        place = len(self._splits)
        codes, (line,) = self.growth.rows.codes(np.array([split.feature]))
        node_rows = self.order[node.rows]
        n_left = part_rows(codes[line], split.goes_left, node_rows, self._spare)
        if n_left in (0, len(node_rows)):  # sums that are only rounding
            self._settle(node)
            return
        self._link(node, place)
        self._splits.append(split)
        self._children.append([0, 0])
        middle = node.rows.start + n_left
        sides = [slice(node.rows.start, middle), slice(middle, node.rows.stop)]
        small = int(n_left > len(node_rows) / 2)
        less = self._sum(sides[small])
        totals = [less, node.total - less]
        rooms = [self.growth.take(), node.histograms]
        made = [
            Node((place, side), sides[side], totals[which], rooms[which], node.depth + 1)
            for which, side in enumerate((small, 1 - small))
        ]
        is_last = self._n_leaves + 2 >= self.growth.limits.max_leaves
        if is_last or node.depth + 1 >= self.growth.limits.max_depth:
            for child in made:
                self._settle(child)
        else:
            self._consider(made, self._searched(*made))

    def _sum(self, rows: slice) -> NDArray[np.float64]:
        total = np.empty(WIDTH)
        sum_rows(self.order[rows], self.cells, total)
        return total

    def _searched(self, small: Node, large: Node | None) -> list[Split]:
        """Fill the histograms of a node, take them from its sibling's, and search both."""
        growth, nodes = self.growth, [small] if large is None else [small, large]
        layout = growth._first_lines, growth._n_values
        rows = self.order[small.rows]
        candidates = [Found.of(growth.is_categorical) for _ in nodes]

        def search(part: int) -> None:
            features = self._features[part]
            growth.rows.fill(part, features, rows, self.cells, small.total, small.histograms)
            if large is not None:
                halves = (it.histograms.reshape(-1, LANES) for it in (small, large))
                subtract(features, growth._first_lines, *halves)
            for node, (gains, cuts, sides, sets) in zip(nodes, candidates, strict=True):
                held = *layout, node.total, growth.held_to, gains
                best_splits(node.histograms, self._numbers[part], *held, cuts, sides)
                if len(self._categories[part]):
                    best_sets(node.histograms, self._categories[part], *held, sides, sets)

        tasks = [partial(search, part) for part in range(len(self._features))]
        if len(rows) * sum(map(len, self._features)) < CELLS_WORTH_THREADS:
            for task in tasks:
                task()
        else:
            run(tasks)
        return [best.split(growth._n_values, growth.tie) for best in candidates]

    def _consider(self, nodes: list[Node], splits: list[Split]) -> None:
        """Let nodes wait for their turn, or settle those that no split would help."""
        for which, (node, best) in enumerate(zip(nodes, splits, strict=True)):
            sketch, curvature = node.total[:CURVATURE], node.total[CURVATURE]
            whole = float(sketch @ sketch) / (curvature + self.growth.limits.l2)
            gain = best.gain - whole
            if gain > self.growth.tie * whole:
                split = best._replace(gain=gain)
                heappush(self._waiting, (-gain, len(self._splits) * 2 + which, split, node))
            else:
                self._settle(node)

    def _settle(self, node: Node) -> None:
        """Make a node a leaf."""
        self.growth.give_back(node.histograms)
        self._link(node, ~len(self._leaves))
        self._leaves.append(node)

    def _link(self, node: Node, child: int) -> None:
        parent, side = node.place
        if parent >= 0:
            self._children[parent][side] = child

    def _finished(self) -> Tree:
        features, cuts, missing_left = (
            np.array([getattr(split, name) for split in self._splits], dtype)
            for name, dtype in (("feature", np.int32), ("cut", np.int64), ("missing_left", bool))
        )
        lengths = [leaf.rows.stop - leaf.rows.start for leaf in self._leaves]
        order = np.concatenate([self.order[leaf.rows] for leaf in self._leaves])
        return Tree(
            features,
            cuts,
            missing_left,
            np.array([split.goes_left for split in self._splits], bool).reshape(-1, N_CODES),
            np.array([split.gain for split in self._splits]),
            np.array(self._children, np.int32).reshape(-1, 2),
            order,
            np.cumsum([0, *lengths]),
        )
