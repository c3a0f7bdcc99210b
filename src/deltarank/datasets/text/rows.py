"""Texts to rows of a sparse matrix: counted in blocks, arranged by columns, weighed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.threads import n_threads, run
from deltarank.datasets.text.analysis import Analysis, Counts, blocks_of_texts
from deltarank.datasets.text.kernels.rows import add_holding, arrange, weigh
from deltarank.datasets.text.room import Room, mapped

NORMS = {"l1": 1, "l2": 2}
# More than one block for each thread, so that none waits long for the others.
_BLOCKS_PER_THREAD = 4


@dataclass
class Rows:
    """Some rows: where each starts, its n-grams by codes or columns, and their counts."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    counts: NDArray[np.int32]

    def arranged(self, columns: NDArray[np.int32]) -> "Rows":
        """Return rows sorted by the columns that codes stand for; these rows are used up."""
        starts = arrange(self.starts, self.columns, self.counts, columns)
        return Rows(starts, self.columns[: starts[-1]], self.counts[: starts[-1]])


@dataclass(frozen=True)
class Weighing:
    """How counts become weights: the options of `TextVectorizer` that say so."""

    use_idf: bool = True
    smooth_idf: bool = True
    sublinear_tf: bool = False
    norm: str | None = "l2"

    def idf(self, n_holding: NDArray[np.int64], n_rows: int) -> NDArray[np.float64]:
        """Return how much each column counts, by how few of the rows hold it."""
        if not self.use_idf:
            return np.ones(len(n_holding))
        if self.smooth_idf:
            return np.log((1 + n_rows) / (1 + n_holding)) + 1
        # A hashed column that no row holds has the weight of one that a single row holds.
        return np.log(n_rows / np.maximum(1, n_holding)) + 1

    def write(self, rows: Rows, idf: NDArray[np.float64], values: NDArray[Any]) -> None:
        """Write the weights of rows."""
        norm = 0 if self.norm is None else NORMS[self.norm]
        weigh(rows.starts, rows.columns, rows.counts, idf, self.sublinear_tf, norm, values)

    def matrix(
        self, blocks: list[Rows], idf: NDArray[np.float64], dtype: Any, room: Room
    ) -> sparse.csr_array:
        """Return weighed rows as one matrix; the list is emptied on the way."""
        starts = np.cumsum([0, *(block.starts[-1] for block in blocks)])
        n_rows = sum(len(block.starts) - 1 for block in blocks)
        n_entries = int(starts[-1])
        index = np.int32 if max(n_entries, len(idf)) < 2**31 else np.int64
        row_starts = np.zeros(n_rows + 1, index)
        indices, values = room.empty(n_entries, index), room.empty(n_entries, dtype)

        def write(block: Rows, first: int, row: int) -> None:
            end = first + len(block.columns)
            row_starts[row + 1 : row + len(block.starts)] = block.starts[1:] + first
            indices[first:end] = block.columns
            self.write(block, idf, values[first:end])

        rows = np.cumsum([0, *(len(block.starts) - 1 for block in blocks)])
        tasks = [
            partial(write, block, first, row)
            for block, first, row in zip(blocks, starts, rows, strict=False)
        ]
        blocks.clear()
        run(tasks)
        return sparse.csr_array((values, indices, row_starts), shape=(n_rows, len(idf)))


def counted(documents: Iterable[Any], analysis: Analysis) -> Iterator[list[Counts]]:
    """Yield the n-grams of documents, some blocks at a time."""
    blocks = blocks_of_texts(documents)
    while group := list(islice(blocks, _BLOCKS_PER_THREAD * n_threads())):
        yield run([partial(analysis.count, block) for block in group])


def rows_of(
    documents: Iterable[Any],
    analysis: Analysis,
    columns_of: Callable[[Counts], NDArray[np.int32]],
    room: Room,
) -> list[Rows]:
    """Count documents into columns that are known."""

    def arranged(block: Counts) -> Rows:
        return Rows(block.row_starts, block.ids, block.counts).arranged(columns_of(block))

    rows: list[Rows] = []
    for blocks in counted(documents, analysis):
        rows += placed(run([partial(arranged, block) for block in blocks]), room)
    return rows


def placed(blocks: list[Rows], room: Room) -> list[Rows]:
    """Return rows where there is room for them: these, or all of them as one block in a file."""
    ends = np.cumsum([0, *(len(block.columns) for block in blocks)])
    n_entries = int(ends[-1])
    if not n_entries or room.takes(2 * n_entries * np.dtype(np.int32).itemsize):
        return blocks
    columns, counts = mapped((2, n_entries), np.int32)
    np.concatenate([block.columns for block in blocks], out=columns)
    np.concatenate([block.counts for block in blocks], out=counts)
    starts = [block.starts[1:] + end for block, end in zip(blocks, ends, strict=False)]
    return [Rows(np.concatenate([np.zeros(1, np.int64), *starts]), columns, counts)]


def holding(blocks: list[Rows], n_columns: int) -> NDArray[np.int64]:
    """Return how many rows hold each column."""
    n_holding = np.zeros(n_columns, np.int64)
    for block in blocks:
        add_holding(block.columns, n_holding)
    return n_holding
