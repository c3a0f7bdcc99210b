"""Blocks of texts to counts of their n-grams."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.datasets.text.characters import CAPITAL_SIGMA, character_flags, folding
from deltarank.datasets.text.kernels.characters import byte_starts, fold
from deltarank.datasets.text.kernels.grams import count_grams
from deltarank.datasets.text.kernels.units import characters, padded_words, words
from deltarank.datasets.text.vocabulary import Vocabulary

# Large enough that a vocabulary of a block's own pays, small enough for the cores' caches.
BLOCK_CHARACTERS = 1 << 19

_Units = Callable[[NDArray[np.uint8], NDArray[np.int64], Vocabulary], Any]
UNITS: dict[str, _Units] = {
    "word": lambda text, starts, stop: words(text, starts, character_flags(), stop.table),
    "char": lambda text, starts, stop: characters(text, starts, character_flags()),
    "char_wb": lambda text, starts, stop: padded_words(text, starts, character_flags()),
}


@dataclass
class Counts:
    """The n-grams of a block of texts, and how often each text holds them.

    Attributes
    ----------
    text : array of uint8
        What the n-grams are pieces of.
    keys : tuple of arrays
        Where each n-gram starts and ends in it, its hash, how many texts hold it, and how often it
        occurs.
    row_starts, ids, counts : arrays
        The n-grams of each text by their numbers, and how often they occur in it.
    """

    text: NDArray[np.uint8]
    keys: tuple[NDArray[Any], ...]
    row_starts: NDArray[np.int64]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]


@dataclass(frozen=True)
class Analysis:
    """How texts become n-grams: the options of `TextVectorizer` that say so."""

    lowercase: bool
    strip_accents: str | None
    analyzer: str
    shortest: int
    longest: int
    stop_words: Vocabulary

    def count(self, texts: Sequence[str]) -> Counts:
        """Count the n-grams of texts."""
        text, starts = self._encoded(texts)
        if self.lowercase or self.strip_accents is not None:
            text, starts = fold(text, starts, folding(self.lowercase, self.strip_accents))
        units = UNITS[self.analyzer](text, starts, self.stop_words)
        keys, rows = count_grams(units, self.shortest, self.longest, self.analyzer == "char_wb")
        return Counts(units[0], keys, *rows)

    def _encoded(self, texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return texts as UTF-8, one after the other, and where each starts."""
        joined = "".join(texts)
        if self.lowercase and CAPITAL_SIGMA in joined:
            texts = [text.lower() for text in texts]
            joined = "".join(texts)
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=starts[1:])
        text = np.frombuffer(joined.encode("utf-8", "surrogatepass"), np.uint8)
        return text, starts if len(text) == len(joined) else byte_starts(text, starts)


def blocks_of_texts(documents: Iterable[Any]) -> Iterator[list[str]]:
    """Yield documents in lists of about this many characters; refuse what is no string."""
    block: list[str] = []
    size = 0
    for row, document in enumerate(documents):
        if not isinstance(document, str):
            raise ValueError(
                f"raw_documents must be strings; number {row} is {repr(document)[:40]}, of type "
                f"{type(document).__name__}"
            )
        block.append(document)
        size += len(document)
        if size >= BLOCK_CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block
