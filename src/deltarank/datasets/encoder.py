"""Columns of a table become features: numbers, vectors, categories as 0 and 1, text as TF-IDF.

A fitted encoder is plain data. It goes into a model file as JSON and does the same to new rows,
also to rows with categories or words it has never seen.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.choices import choose
from deltarank.datasets.readers.cells import as_cells, as_numbers, categories
from deltarank.datasets.readers.kinds import guess_kind
from deltarank.datasets.text.column import TextColumn
from deltarank.datasets.vectors import VectorColumn

# More columns of 0 and 1 than this are kept sparse.
MOST_DENSE_CATEGORIES = 100
# Sets of categories have room for so many.
MOST_CODES = 256


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
    """One column of 0 and 1 per category; a cell may name one, several as a list, or none."""

    name: str
    values: tuple[str, ...]
    kind: ClassVar[str] = "category"

    @classmethod
    def fit(cls, name: str, cells: Any) -> "CategoryColumn":
        """List the categories."""
        named = {category for cell in as_cells(cells) for category in categories(cell)}
        return cls(name, tuple(sorted(named)))

    def feature_names(self) -> list[str]:
        """Return ``column=category`` for each."""
        return [f"{self.name}={value}" for value in self.values]

    def features(self, cells: Any) -> sparse.csr_array:
        """Return the columns of 0 and 1."""
        column_of = {value: i for i, value in enumerate(self.values)}
        rows = [{column_of.get(category, -1) for category in categories(cell)} for cell in cells]
        columns = [sorted(row - {-1}) for row in rows]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in columns])])
        indices = np.array([column for row in columns for column in row], dtype=np.int64)
        shape = (len(columns), len(self.values))
        return sparse.csr_array((np.ones(len(indices)), indices, starts), shape=shape)


@dataclass(frozen=True)
class CodeColumn(CategoryColumn):
    """One column of numbers of categories, for rankers that split them into sets; NaN for none."""

    kind: ClassVar[str] = "code"

    def feature_names(self) -> list[str]:
        """Return the name of the column."""
        return [self.name]

    def features(self, cells: Any) -> NDArray[np.float64]:
        """Return one column of numbers; of several categories the first known counts."""
        return _first_marks(super().features(cells))


def _first_marks(marks: sparse.csr_array) -> NDArray[np.float64]:
    """Return which column of 0 and 1 has the first 1 of each row, as a column; NaN for none."""
    lengths = np.diff(marks.indptr)
    codes = np.full((len(lengths), 1), np.nan)
    codes[lengths > 0, 0] = marks.indices[marks.indptr[:-1][lengths > 0]]
    return codes


Column = NumberColumn | CategoryColumn | TextColumn | VectorColumn
KINDS: dict[str, type[Column]] = {
    column.kind: column
    for column in (NumberColumn, CategoryColumn, CodeColumn, TextColumn, VectorColumn)
}
# Columns that hold arrays, which a model file takes as they are.
WITH_ARRAYS = (TextColumn, VectorColumn)


@dataclass(frozen=True)
class Encoder:
    """How columns of a table become features.

    Examples
    --------
    >>> table = {"size": [1, 2, None], "colour": ["red", "blue", "red"]}
    >>> encoder = Encoder.fit(table)
    >>> encoder.feature_names()
    ['size', 'colour=blue', 'colour=red']
    >>> encoder
    <Encoder: 'size' (number, 1), 'colour' (category, 2)>
    >>> encoder.transform({"size": [4], "colour": ["green"]})
    array([[4., 0., 0.]])
    >>> Encoder.from_json(encoder.to_json()) == encoder
    True
    """

    columns: tuple[Column, ...]

    def __repr__(self) -> str:
        parts = (f"{c.name!r} ({c.kind}, {len(c.feature_names())})" for c in self.columns)
        return f"<Encoder: {', '.join(parts)}>"

    @classmethod
    def fit(cls, table: Mapping[str, Any], kinds: Mapping[str, str] | None = None) -> "Encoder":
        """Learn the columns of a table; kinds that are not given are told by the cells."""
        return cls.fit_transform(table, kinds)[0]

    @classmethod
    def fit_transform(
        cls,
        table: Mapping[str, Any],
        kinds: Mapping[str, str] | None = None,
        *,
        fill_text: bool = True,
    ) -> tuple["Encoder", Any]:
        """Learn the columns of a table, and return its features too; texts are read once.

        Without `fill_text` the features of texts are there and empty.

        Examples
        --------
        >>> encoder, X = Encoder.fit_transform({"size": [1, 2]})
        >>> X.tolist()
        [[1.0], [2.0]]
        """
        columns: list[Column] = []
        blocks: list[Any] = []
        for name, cells in table.items():
            kind_name = (kinds or {}).get(name) or guess_kind(name, cells)
            kind = choose(KINDS, kind_name, "kind")
            if kind is TextColumn:
                words, block = kind.fit_features(name, cells, fill=fill_text)
                columns.append(words)
                blocks.append(block)
            else:
                columns.append(kind.fit(name, cells))
                blocks.append(columns[-1].features(as_cells(cells)))
        encoder = cls(tuple(columns))
        return encoder, encoder._joined(blocks)

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
        n_categories = sum(
            len(c.feature_names()) for c in self.columns if isinstance(c, CategoryColumn)
        )
        has_text = any(isinstance(column, TextColumn) for column in self.columns)
        return has_text or n_categories > MOST_DENSE_CATEGORIES

    def feature_names(self) -> list[str]:
        """Return one name per feature."""
        return [name for column in self.columns for name in column.feature_names()]

    def with_codes(self, X: Any) -> "Encoder":
        """Return an encoder that numbers categories, where no row of X names two of a column.

        Examples
        --------
        >>> encoder, X = Encoder.fit_transform({"colour": ["red", "blue", None], "size": [1, 2, 3]})
        >>> coded = encoder.with_codes(X)
        >>> coded
        <Encoder: 'colour' (code, 1), 'size' (number, 1)>
        """
        pairs = zip(self.columns, self._blocks(X), strict=True)
        return Encoder(tuple(_coded(column, block) for column, block in pairs))

    def recoded(self, X: Any, other: "Encoder") -> Any:
        """Return features of this encoder as those of one that `with_codes` made of it.

        Examples
        --------
        >>> encoder, X = Encoder.fit_transform({"colour": ["red", "blue", None], "size": [1, 2, 3]})
        >>> encoder.recoded(X, encoder.with_codes(X))
        array([[ 1.,  1.],
               [ 0.,  2.],
               [nan,  3.]])
        """
        return other._joined(
            [
                _first_marks(sparse.csr_array(block)) if before.kind != after.kind else block
                for before, after, block in zip(
                    self.columns, other.columns, self._blocks(X), strict=True
                )
            ]
        )

    def code_columns(self) -> dict[int, CodeColumn]:
        """Return the columns whose features are numbers of categories, by these features.

        Examples
        --------
        >>> encoder, X = Encoder.fit_transform({"size": [1, 2], "colour": ["red", "blue"]})
        >>> encoder.with_codes(X).code_columns()[1].values
        ('blue', 'red')
        """
        if not any(isinstance(column, CodeColumn) for column in self.columns):
            return {}  # naming the words of a text takes a while
        sizes = [len(column.feature_names()) for column in self.columns]
        firsts = np.cumsum([0, *sizes])[:-1].tolist()
        pairs = zip(firsts, self.columns, strict=True)
        return {first: column for first, column in pairs if isinstance(column, CodeColumn)}

    def code_features(self) -> tuple[int, ...]:
        """Return which features are numbers of categories.

        Examples
        --------
        >>> encoder, X = Encoder.fit_transform({"size": [1, 2], "colour": ["red", "blue"]})
        >>> encoder.with_codes(X).code_features()
        (1,)
        """
        return tuple(self.code_columns())

    def _blocks(self, X: Any) -> list[Any]:
        """Return the features of each column."""
        ends = np.cumsum([0, *(len(column.feature_names()) for column in self.columns)]).tolist()
        return [X[:, first:end] for first, end in pairwise(ends)]

    def transform(self, table: Any) -> Any:
        """Return the features of rows; `table` is a data frame or a dict of columns."""
        names = getattr(table, "columns", table)
        names = getattr(table, "column_names", names)  # an Arrow table's columns are arrays
        for column in self.columns:
            if column.name not in names:
                raise ValueError(f"the table lacks the column {column.name!r}")
        return self._joined(
            [column.features(as_cells(table[column.name])) for column in self.columns]
        )

    def _joined(self, blocks: list[Any]) -> Any:
        """Return the features of all columns side by side."""
        if not blocks:
            raise ValueError("the table has no feature columns")
        if len(blocks) == 1 and sparse.issparse(blocks[0]) and self.is_sparse:
            return blocks[0]
        if self.is_sparse:
            return sparse.csr_array(sparse.hstack(blocks, format="csr"))
        dense = [block.toarray() if sparse.issparse(block) else block for block in blocks]
        return np.hstack(dense)

    def to_json(self, *, packed: bool = False) -> list[dict[str, Any]]:
        """Return the encoder as lists, strings and numbers.

        With `packed` words and their weights are arrays, which model files hold as they are.
        """
        return [
            {
                "kind": column.kind,
                **(column.to_json(packed) if isinstance(column, WITH_ARRAYS) else asdict(column)),
            }
            for column in self.columns
        ]

    @classmethod
    def from_json(cls, state: Any) -> "Encoder":
        """Make an encoder of what `to_json` gave, and refuse anything else."""
        if not isinstance(state, list):
            raise ValueError(f"an encoder must be a list of columns; got {type(state).__name__}")
        return cls(tuple(_column_from_json(entry) for entry in state))


def _coded(column: Column, block: Any) -> Column:
    """Return a column of codes in place of few categories, of which each row has one at most."""
    if not isinstance(column, CategoryColumn) or len(column.values) > MOST_CODES:
        return column
    return CodeColumn(column.name, column.values) if (block.sum(axis=1) <= 1).all() else column


def _column_from_json(entry: Any) -> Column:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise ValueError("each column of an encoder must have a kind and a name")
    fields: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()
    }
    kind, name = choose(KINDS, fields.pop("kind", None), "kind"), fields.pop("name")
    if kind in WITH_ARRAYS:
        try:
            return kind.from_json(name, fields)
        except (TypeError, ValueError) as error:
            raise ValueError(f"column {name!r} of an encoder is damaged: {error}") from None
    wanted = {field.name for field in dataclasses.fields(kind)}
    if {"name", *fields} != wanted:
        raise ValueError(
            f"a {kind.kind} column must have {sorted(wanted)}; got {sorted({'name', *fields})}"
        )
    strings, number = fields.get("values", ()), fields.get("fill", 0.0)
    if (
        not isinstance(strings, tuple)
        or not all(isinstance(text, str) for text in strings)
        or len(set(strings)) < len(strings)
        or type(number) not in (int, float)
        or not math.isfinite(number)
    ):
        raise ValueError(f"column {name!r} of an encoder is damaged")
    return kind(name, **fields)
