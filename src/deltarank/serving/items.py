"""Turn items as JSON into rows of X, or say which item is wrong and why."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.core.caching import cached_property
from deltarank.datasets import Encoder, Preparation
from deltarank.datasets.readers.cells import CellError
from deltarank.datasets.vectors import VectorColumn
from deltarank.serving.single_row import SingleRow

_SCALARS = (str, int, float, bool, type(None))
_NAMES_SHOWN = 10
# Fewer cells are quicker to rank dense; more may not fit into memory.
DENSE_CELLS = 1_000_000
LARGEST = 1.7e308


class ItemError(ValueError):
    """An item that the model cannot rank."""


class Reader:
    """Makes rows of items, as the ranker takes them.

    Items are dicts of columns where the model has an encoder. Else they are lists of numbers, or
    dicts of features, by name, or by number with those not named 0.

    Parameters
    ----------
    preparation : Preparation
    may_miss : bool
        Whether the ranker takes missing numbers; those of an encoder are filled in anyway.

    Examples
    --------
    >>> read = Reader(Preparation(3), may_miss=False)
    >>> read([[1, 2, 3], {"2": 5}])
    array([[1., 2., 3.],
           [0., 0., 5.]])
    >>> read([[1, 2]])
    Traceback (most recent call last):
    deltarank.serving.items.ItemError: items[0] must have 3 numbers; got 2
    """

    def __init__(self, preparation: Preparation, *, may_miss: bool) -> None:
        self._preparation, self._may_miss = preparation, may_miss
        self._n_features, self._first = preparation.n_features, preparation.first_number
        self._place = {name: j for j, name in enumerate(preparation.names or ())}

    def __call__(self, items: Sequence[Any]) -> Any:
        """Return the rows, or refuse the first item that is not one."""
        encoder = self._preparation.encoder
        if encoder is None:
            return self._preparation.transform(self._numbers(items))
        _check_columns(encoder, items)
        try:
            if len(items) == 1:
                return self._single(items[0])
            names = [column.name for column in encoder.columns]
            X = encoder.transform({name: [item[name] for item in items] for name in names})
        except CellError as error:
            problem = f"items[{error.row}], column {error.column!r}: {error.problem}"
            raise ItemError(problem) from None
        return self._preparation.transform(X)

    @cached_property
    def _single(self) -> SingleRow:
        return SingleRow(self._preparation)

    def _numbers(self, items: Sequence[Any]) -> Any:
        shape = (len(items), self._n_features)
        if math.prod(shape) <= DENSE_CELLS:
            dense = np.zeros(shape)
            for i, item in enumerate(items):
                for column, name, cell in self._cells(i, item):
                    dense[i, column] = self._number(i, name, cell)
            return dense
        rows, columns, values = [], [], []
        for i, item in enumerate(items):
            for column, name, cell in self._cells(i, item):
                rows.append(i)
                columns.append(column)
                values.append(self._number(i, name, cell))
        return sparse.csr_array((np.array(values, np.float64), (rows, columns)), shape=shape)

    def _cells(self, i: int, item: Any) -> Iterator[tuple[int, str, Any]]:
        n_features, known = self._n_features, self._preparation.names
        if isinstance(item, list):
            if len(item) != n_features:
                raise ItemError(f"items[{i}] must have {n_features} numbers; got {len(item)}")
            for column, cell in enumerate(item):
                yield column, known[column] if known else str(self._first + column), cell
        elif isinstance(item, dict):
            for name in known or ():
                if name not in item:
                    raise ItemError(f"items[{i}] has no feature {name!r}")
            for name, cell in item.items():
                place = self._column(name)
                if place is not None:
                    yield place, name, cell
                elif known is None:
                    last = self._first + n_features - 1
                    raise ItemError(
                        f"items[{i}]: no feature is called {name!r}; their names are "
                        f"{self._first} to {last}"
                    )
        else:
            raise ItemError(
                f"items[{i}] must be a list of {n_features} numbers, or an object of features; "
                f"got {_kind(item)}"
            )

    def _column(self, name: str) -> int | None:
        """Return the column of a feature; those without names have numbers."""
        if self._preparation.names is not None:
            return self._place.get(name)
        column = int(name) - self._first if name.isdecimal() and len(name) < 12 else -1
        plain = 0 <= column < self._n_features and name == str(self._first + column)
        return column if plain else None

    def _number(self, item: int, name: str, cell: Any) -> float:
        if cell is None and self._may_miss:
            return math.nan
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            number = float(cell) if abs(cell) < LARGEST else math.inf
            if math.isfinite(number):
                return number
        wanted = "a finite number or null" if self._may_miss else "a finite number"
        raise ItemError(f"items[{item}], feature {name!r}: {wanted} is wanted; got {_shown(cell)}")


def _check_columns(encoder: Encoder, items: Sequence[Any]) -> None:
    """Refuse items that lack a column, or hold what is no cell."""
    names = [column.name for column in encoder.columns]
    vectors = {column.name for column in encoder.columns if isinstance(column, VectorColumn)}
    for i, item in enumerate(items):
        if not isinstance(item, dict):
            raise ItemError(
                f"items[{i}] must be an object with the columns {_listed(names)}; got {_kind(item)}"
            )
        for name in names:
            if name not in item:
                raise ItemError(f"items[{i}] has no column {name!r}; null stands for a missing one")
            takes = (list, type(None)) if name in vectors else _SCALARS
            if not isinstance(item[name], takes):
                wanted = "a list of numbers" if name in vectors else "text, a number"
                raise ItemError(
                    f"items[{i}], column {name!r}: {wanted} or null is wanted; "
                    f"got {_kind(item[name])}"
                )


def _shown(cell: Any) -> str:
    return "null" if cell is None else repr(cell)[:40]


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return kinds.get(type(value), "null" if value is None else "a number")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:_NAMES_SHOWN])) + ", ..." * (len(names) > _NAMES_SHOWN)
