"""Vocabularies: n-grams as one blob of UTF-8, and how blocks of texts grow one."""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.caching import cached_property
from deltarank.core.threads import run
from deltarank.datasets.text.kernels.keys import index_keys
from deltarank.datasets.text.kernels.merging import (
    find_keys,
    first_bytes,
    gather,
    merge_keys,
    sort_ties,
)

if TYPE_CHECKING:
    from deltarank.datasets.text.analysis import Counts

# Parts of all n-grams that grow side by side, a power of two.
N_PARTS = 8
# Pieces of a vocabulary that are sorted side by side.
_SORTED_PIECES = 16


class Vocabulary:
    """Distinct strings in a fixed order, and their numbers.

    Parameters
    ----------
    letters : array of uint8
        The strings in UTF-8, one after the other.
    starts : array of shape (n + 1,), int64
        Where each of them starts; and the end.

    Examples
    --------
    >>> vocabulary = Vocabulary.of(["ant", "bee"])
    >>> vocabulary.words()
    ['ant', 'bee']
    >>> bytes(vocabulary.letters), vocabulary.starts.tolist()
    (b'antbee', [0, 3, 6])
    """

    def __init__(self, letters: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
        self.letters, self.starts = letters, starts

    @classmethod
    def of(cls, words: Iterable[str]) -> "Vocabulary":
        """Return the vocabulary of some strings, in their order."""
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        starts = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(word) for word in encoded], out=starts[1:])
        return cls(np.frombuffer(bytearray(b"".join(encoded)), np.uint8), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Vocabulary)
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.letters, other.letters)
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def table(self) -> tuple[NDArray[Any], ...]:
        """What `find` looks strings up in; made on first use."""
        starts, ends = self.starts[:-1], self.starts[1:]
        return index_keys(self.letters, starts, ends), self.letters, starts, ends

    def words(self) -> list[str]:
        """Return the strings."""
        blob, starts = self.letters.tobytes(), self.starts.tolist()
        return [blob[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(starts)]

    def take(self, numbers: NDArray[np.intp]) -> "Vocabulary":
        """Return the strings of these numbers."""
        begins, ends = self.starts[:-1], self.starts[1:]
        letters = np.empty(int((ends - begins)[numbers].sum()), np.uint8)
        stops = gather(self.letters, begins, ends, numbers, letters, 0)
        return Vocabulary(letters, np.concatenate((np.zeros(1, np.int64), stops)))

    def columns(self, counts: "Counts") -> NDArray[np.int32]:
        """Return the number here of each n-gram of a block, -1 where it has none."""
        numbers: NDArray[np.int32] = find_keys(self.table, counts.text, counts.keys[:3])
        return numbers


class _Part(NamedTuple):
    """The n-grams of one part: arrays as `merge_keys` has them, and how many there are."""

    arrays: tuple[NDArray[Any], ...]
    size: int

    @classmethod
    def empty(cls) -> "_Part":
        kinds = (np.uint64, np.uint8, np.int64, np.int64, np.uint64, np.int64, np.int64)
        return cls(tuple(np.zeros(1024, kind) for kind in kinds), 0)


class GrowingVocabulary:
    """N-grams of blocks of texts, entered in the order of the blocks.

    They are parted by their hashes, and the parts grow side by side: the numbers that n-grams get
    do not depend on the number of threads.
    """

    def __init__(self) -> None:
        self._parts = [_Part.empty() for _ in range(N_PARTS)]

    def add(self, blocks: Sequence["Counts"]) -> list[NDArray[np.int32]]:
        """Enter the n-grams of blocks; return for each block the codes of its n-grams."""
        codes = [np.empty(len(block.keys[0]), np.int32) for block in blocks]
        tasks = [partial(self._add_part, part, blocks, codes) for part in range(N_PARTS)]
        self._parts = run(tasks)
        return codes

    def _add_part(
        self, part: int, blocks: Sequence["Counts"], codes: list[NDArray[np.int32]]
    ) -> _Part:
        arrays, size = self._parts[part]
        for block, numbers in zip(blocks, codes, strict=True):
            arrays, size = merge_keys(arrays, size, block.text, block.keys, part, N_PARTS, numbers)
        return _Part(arrays, size)

    def _gathered(self, position: int) -> NDArray[Any]:
        """Return one of the arrays of all parts, part after part."""
        return np.concatenate([part.arrays[position][: part.size] for part in self._parts])

    @property
    def n_holding(self) -> NDArray[np.int64]:
        """How many texts hold each n-gram; part after part."""
        return self._gathered(5)

    @property
    def totals(self) -> NDArray[np.int64]:
        """How often each n-gram occurs."""
        return self._gathered(6)

    def sorted(self, kept: NDArray[np.bool_]) -> tuple[Vocabulary, NDArray[np.intp]]:
        """Return the n-grams that are kept, in the order of their characters, and their places.

        Places are numbers of n-grams, part after part.
        """
        places = np.flatnonzero(kept)
        firsts = np.cumsum([0, *(part.size for part in self._parts)])
        bounds = np.searchsorted(places, firsts)
        sizes = self._gathered(3) - self._gathered(2)
        letters = np.empty(int(sizes[places].sum()), np.uint8)
        starts = np.zeros(len(places) + 1, np.int64)
        for number, part in enumerate(self._parts):
            low, high = bounds[number], bounds[number + 1]
            _, text, begins, ends, *_ = part.arrays
            chosen = places[low:high] - firsts[number]
            starts[low + 1 : high + 1] = gather(text, begins, ends, chosen, letters, starts[low])
        order = _in_order(letters, starts)
        return Vocabulary(letters, starts).take(order), places[order]

    def columns(self, places: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return, by the codes of `add`, the column of each n-gram: its rank among the places."""
        sizes = [part.size for part in self._parts]
        columns = np.full((max(sizes), N_PARTS), -1, np.int32)
        firsts = np.cumsum([0, *sizes])
        part = np.searchsorted(firsts, places, side="right") - 1
        columns[places - firsts[part], part] = np.arange(len(places))
        return columns.ravel()


def _in_order(letters: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the order of strings by their characters, which in UTF-8 is that of their bytes."""
    heads = first_bytes(letters, starts[:-1], starts[1:])
    order = np.argsort(heads)
    begins = np.flatnonzero(np.diff(heads[order], prepend=~heads[order[:1]]))
    bounds = [*begins[:: max(1, len(begins) // _SORTED_PIECES)].tolist(), len(order)]
    run(
        [
            partial(sort_ties, order[begin:end], heads, letters, starts[:-1], starts[1:])
            for begin, end in pairwise(bounds)
        ]
    )
    return order
