"""A column of text in a table: TF-IDF of its words, as plain data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core import memory
from deltarank.core.caching import cached_property
from deltarank.datasets.readers.cells import as_cells, is_known
from deltarank.datasets.text.vectorizer import (
    NoWordsError,
    TextVectorizer,
    fitted_vectorizer,
    named_columns,
)
from deltarank.datasets.text.vocabulary import Vocabulary

MOST_WORDS = 100_000
# With this many rows, a word that occurs in only one of them says nothing about the others.
ROWS_FOR_RARE_WORDS = 50


@dataclass(frozen=True, eq=False)
class TextColumn:
    """TF-IDF of lower-case words: (1 + log count) log((1 + n) / (1 + n_l)) + 1, rows of length 1.

    Words are runs of two or more letters or digits, as in scikit-learn. Kept are those that occur
    in two rows or more (all of them if there are few rows), at most 100,000.
    """

    name: str
    words: Vocabulary
    weights: NDArray[np.float64]
    kind: ClassVar[str] = "text"

    @classmethod
    def fit(cls, name: str, cells: Any) -> "TextColumn":
        """Choose words and weigh them by how few rows hold them."""
        return cls.fit_features(name, cells, fill=False)[0]

    @classmethod
    def fit_features(
        cls, name: str, cells: Any, *, fill: bool = True
    ) -> tuple["TextColumn", sparse.csr_array]:
        """Do the same, and return the features of these cells too, empty unless they are to fill.

        Examples
        --------
        >>> column, X = TextColumn.fit_features("plot", ["far space", "deep space"], fill=False)
        >>> column.feature_names(), X.shape, X.nnz
        (['plot:deep', 'plot:far', 'plot:space'], (2, 3), 0)
        """
        least = 2 if len(cells) >= ROWS_FOR_RARE_WORDS else 1
        vectorizer = TextVectorizer(
            sublinear_tf=True, min_df=least, memory_limit=max(1, memory.budget())
        )
        try:
            X = vectorizer.fit_transform(_texts(cells)) if fill else None
            words = named_columns(vectorizer if fill else vectorizer.fit(_texts(cells)))
        except NoWordsError:
            return cls(name, Vocabulary.of([]), np.empty(0)), sparse.csr_array((len(cells), 0))
        column = cls(name, words, vectorizer.idf_)
        if len(words) > MOST_WORDS:
            # The weights fall as the rows that hold a word rise.
            frequent = np.sort(np.argsort(column.weights, kind="stable")[:MOST_WORDS])
            column, X = cls(name, words.take(frequent), column.weights[frequent]), None
        if not fill:
            return column, sparse.csr_array((len(cells), len(column.words)))
        return column, column.features(cells) if X is None else X

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TextColumn)
            and self.name == other.name
            and self.words == other.words
            and np.array_equal(self.weights, other.weights)
        )

    __hash__ = None  # type: ignore[assignment]

    def feature_names(self) -> list[str]:
        """Return ``column:word`` for each."""
        return [f"{self.name}:{word}" for word in self.words.words()]

    @cached_property
    def _vectorizer(self) -> TextVectorizer:
        return fitted_vectorizer(self.words, self.weights, sublinear_tf=True)

    def features(self, cells: Any) -> sparse.csr_array:
        """Return one column per word."""
        if not len(self.words):
            return sparse.csr_array((len(cells), 0))
        return self._vectorizer.transform(_texts(cells))

    def row(self, cell: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the columns and values of one cell."""
        if not len(self.words):
            return np.empty(0, np.int32), np.empty(0)
        return self._vectorizer.row(next(_texts([cell])))

    def to_json(self, packed: bool) -> dict[str, Any]:
        """Return the column as lists of words and numbers, or packed as arrays."""
        if packed:
            arrays = {"letters": self.words.letters, "starts": self.words.starts}
            return {"name": self.name, **arrays, "weights": self.weights}
        words, weights = self.words.words(), self.weights.tolist()
        return {"name": self.name, "words": words, "weights": weights}

    @classmethod
    def from_json(cls, name: str, fields: dict[str, Any]) -> "TextColumn":
        """Make a column of what `to_json` gave, in either form, and refuse anything else."""
        if set(fields) == {"letters", "starts", "weights"}:
            vocabulary = unpacked_vocabulary(fields["letters"], fields["starts"])
        elif set(fields) == {"words", "weights"} and _are_strings(fields["words"]):
            vocabulary = Vocabulary.of(fields["words"])
        else:
            raise ValueError("words and weights are not there")
        words, weights = vocabulary.words(), np.array(fields["weights"])
        if (
            len(set(words)) < len(words)
            or weights.shape != (len(words),)
            or weights.dtype.kind not in ("f" if len(words) else "fi")
            or not np.isfinite(weights).all()
        ):
            raise ValueError("words and weights do not fit")
        return cls(name, vocabulary, weights.astype(np.float64))


def unpacked_vocabulary(letters: Any, starts: Any) -> Vocabulary:
    """Return the vocabulary of two arrays; compiled code will trust them."""
    if (
        not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (letters, starts))
        or letters.dtype != np.uint8
        or starts.dtype != np.int64
        or not len(starts)
        or (starts[0], starts[-1]) != (0, len(letters))
        or not (np.diff(starts) > 0).all()
    ):
        raise ValueError("letters and starts do not fit")
    return Vocabulary(np.array(letters), np.array(starts))  # in memory, whatever the file becomes


def _are_strings(words: Any) -> bool:
    return isinstance(words, list | tuple) and all(type(word) is str for word in words)


def _texts(cells: Any) -> Iterator[str]:
    """Yield the texts; cells may be read from files as they are wanted."""
    is_array = hasattr(cells, "__array__") or isinstance(cells, list | tuple)
    return (
        str(cell) if is_known(cell) else "" for cell in (as_cells(cells) if is_array else cells)
    )
