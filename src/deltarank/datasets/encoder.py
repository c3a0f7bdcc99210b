"""Columns of a table become features: numbers as they are, categories as 0 and 1, text as TF-IDF.

A fitted encoder is plain data. It goes into a model file as JSON and does the same to new rows,
also to rows with categories or words it has never seen.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.choices import choose
from deltarank.datasets.readers.cells import as_cells, as_numbers, guess_kind, is_known, known

MOST_WORDS = 100_000
# With so many rows, a word that occurs in only one of them says nothing about the others.
ROWS_FOR_RARE_WORDS = 50
# More columns of 0 and 1 than this are kept sparse.
MOST_DENSE_CATEGORIES = 100


@dataclass(frozen=True)
class NumberColumn:
    """Numbers as they are; a missing one becomes the mean in training."""

    name: str
    fill: float
    kind: ClassVar[str] = "number"

    @classmethod
    def fit(cls, name: str, cells: Any) -> "NumberColumn":
        """Learn the mean."""
        numbers = as_numbers(name, cells)
        present = numbers[~np.isnan(numbers)]
        return cls(name, float((present / max(1, len(present))).sum()))

    def feature_names(self) -> list[str]:
        """Return the name of the column."""
        return [self.name]

    def features(self, cells: Any) -> NDArray[np.float64]:
        """Return one column of numbers."""
        numbers = as_numbers(self.name, cells)
        return np.where(np.isnan(numbers), self.fill, numbers)[:, None]


@dataclass(frozen=True)
class CategoryColumn:
    """One column of 0 and 1 per category; an unknown or missing one is 0 in all of them."""

    name: str
    values: tuple[str, ...]
    kind: ClassVar[str] = "category"

    @classmethod
    def fit(cls, name: str, cells: Any) -> "CategoryColumn":
        """List the categories."""
        return cls(name, tuple(sorted({str(cell) for cell in known(cells)})))

    def feature_names(self) -> list[str]:
        """Return ``column=category`` for each."""
        return [f"{self.name}={value}" for value in self.values]

    def features(self, cells: Any) -> sparse.csr_array:
        """Return the columns of 0 and 1."""
        column_of = {value: i for i, value in enumerate(self.values)}
        numbers = [column_of.get(str(cell), -1) if is_known(cell) else -1 for cell in cells]
        columns = np.array(numbers, dtype=np.int64)
        rows = np.flatnonzero(columns >= 0)
        shape = (len(columns), len(self.values))
        return sparse.csr_array((np.ones(len(rows)), (rows, columns[rows])), shape=shape)


@dataclass(frozen=True)
class TextColumn:
    """TF-IDF of lower-case words: (1 + log count) log((1 + n) / (1 + n_l)) + 1, rows of length 1.

    Words are runs of two or more letters or digits, as in scikit-learn. Kept are those that occur
    in two rows or more (all of them if there are few rows), at most 100,000.
    """

    name: str
    words: tuple[str, ...]
    weights: tuple[float, ...]
    kind: ClassVar[str] = "text"

    @classmethod
    def fit(cls, name: str, cells: Any) -> "TextColumn":
        """Choose words and weigh them by how few rows hold them."""
        words, counts = _count_words(cells)
        n_rows = counts.shape[0]
        n_holding = np.bincount(counts.indices, minlength=len(words))
        least = 2 if n_rows >= ROWS_FOR_RARE_WORDS else 1
        frequent = np.argsort(-n_holding, kind="stable")[:MOST_WORDS]
        kept = np.sort(frequent[n_holding[frequent] >= least])
        weights = np.log((1 + n_rows) / (1 + n_holding[kept])) + 1
        return cls(name, tuple(words[kept].tolist()), tuple(weights.tolist()))

    def feature_names(self) -> list[str]:
        """Return ``column:word`` for each."""
        return [f"{self.name}:{word}" for word in self.words]

    @cached_property
    def _counter(self) -> Any:
        # Made once: a server counts the words of a single text many times over.
        return _counter(self.words)

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        return np.asarray(self.weights)

    def features(self, cells: Any) -> sparse.csr_array:
        """Return one column per word."""
        if not self.words:
            return sparse.csr_array((len(cells), 0))
        matrix = sparse.csr_array(self._counter.transform(_texts(cells))).astype(np.float64)
        matrix.data = (1 + np.log(matrix.data)) * self._weights[matrix.indices]
        lengths = np.sqrt(matrix.power(2).sum(axis=1))
        lengths[lengths == 0] = 1
        matrix.data /= np.repeat(lengths, np.diff(matrix.indptr))
        return matrix


Column = NumberColumn | CategoryColumn | TextColumn
KINDS: dict[str, type[Column]] = {
    column.kind: column for column in (NumberColumn, CategoryColumn, TextColumn)
}


@dataclass(frozen=True)
class Encoder:
    """How columns of a table become features.

    Examples
    --------
    >>> table = {"size": [1, 2, None], "colour": ["red", "blue", "red"]}
    >>> encoder = Encoder.fit(table)
    >>> encoder.feature_names()
    ['size', 'colour=blue', 'colour=red']
    >>> encoder.transform({"size": [4], "colour": ["green"]})
    array([[4., 0., 0.]])
    >>> Encoder.from_json(encoder.to_json()) == encoder
    True
    """

    columns: tuple[Column, ...]

    @classmethod
    def fit(cls, table: Mapping[str, Any], kinds: Mapping[str, str] | None = None) -> "Encoder":
        """Learn the columns of a table; kinds that are not given are told by the cells."""
        kinds = kinds or {}
        return cls(
            tuple(
                choose(KINDS, kinds.get(name) or guess_kind(name, cells), "kind").fit(name, cells)
                for name, cells in table.items()
            )
        )

    @property
    def is_sparse(self) -> bool:
        """Whether features come as a sparse matrix.

        Examples
        --------
        >>> Encoder.fit({"size": [1, 2]}).is_sparse
        False
        >>> Encoder.fit({"plot": ["a signal comes from space"]}).is_sparse
        True
        """
        n_categories = sum(len(c.values) for c in self.columns if isinstance(c, CategoryColumn))
        has_text = any(isinstance(column, TextColumn) for column in self.columns)
        return has_text or n_categories > MOST_DENSE_CATEGORIES

    def feature_names(self) -> list[str]:
        """Return one name per feature."""
        return [name for column in self.columns for name in column.feature_names()]

    def transform(self, table: Any) -> Any:
        """Return the features of rows; `table` is a data frame or a dict of columns."""
        if not self.columns:
            raise ValueError("the table has no feature columns")
        names = getattr(table, "columns", table)
        names = getattr(table, "column_names", names)  # an Arrow table's columns are arrays
        for column in self.columns:
            if column.name not in names:
                raise ValueError(f"the table lacks the column {column.name!r}")
        blocks: list[Any] = [
            column.features(as_cells(table[column.name])) for column in self.columns
        ]
        if self.is_sparse:
            return sparse.csr_array(sparse.hstack(blocks, format="csr"))
        dense = [block.toarray() if sparse.issparse(block) else block for block in blocks]
        return np.hstack(dense)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the encoder as lists, strings and numbers."""
        return [{"kind": column.kind, **asdict(column)} for column in self.columns]

    @classmethod
    def from_json(cls, state: Any) -> "Encoder":
        """Make an encoder of what `to_json` gave, and refuse anything else."""
        if not isinstance(state, list):
            raise ValueError(f"an encoder must be a list of columns; got {type(state).__name__}")
        return cls(tuple(_column_from_json(entry) for entry in state))


def _column_from_json(entry: Any) -> Column:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise ValueError("each column of an encoder must have a kind and a name")
    fields: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()
    }
    kind = choose(KINDS, fields.pop("kind", None), "kind")
    wanted = {field.name for field in dataclasses.fields(kind)}
    if set(fields) != wanted:
        raise ValueError(f"a {kind.kind} column must have {sorted(wanted)}; got {sorted(fields)}")
    strings = fields.get("values", fields.get("words", ()))
    numbers = fields["weights"] if "weights" in fields else (fields.get("fill", 0.0),)
    if (
        not isinstance(strings, tuple)
        or not isinstance(numbers, tuple)
        or not all(isinstance(text, str) for text in strings)
        or not all(type(x) in (int, float) and math.isfinite(x) for x in numbers)
        or len(set(strings)) < len(strings)
        or ("weights" in fields and len(numbers) != len(strings))
    ):
        raise ValueError(f"column {entry['name']!r} of an encoder is damaged")
    return kind(**fields)


def _counter(words: Sequence[str] | None) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(vocabulary=words, dtype=np.int64)


def _texts(cells: Any) -> list[str]:
    return [str(cell) if is_known(cell) else "" for cell in as_cells(cells)]


def _count_words(cells: Any) -> tuple[NDArray[Any], sparse.csr_array]:
    """Return words in order and how often each occurs in each row."""
    texts, counter = _texts(cells), _counter(None)
    if not any(counter.build_analyzer()(text) for text in texts):
        return np.empty(0, dtype=object), sparse.csr_array((len(texts), 0), dtype=np.int64)
    counts = counter.fit_transform(texts)
    return counter.get_feature_names_out(), sparse.csr_array(counts)
