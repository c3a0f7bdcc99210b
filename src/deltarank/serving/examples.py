"""Rows of a file as items to try: read once, when the server starts."""

import math
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.datasets import Preparation, detect_format
from deltarank.datasets.readers.table_files import TABLES

EXAMPLES = 20
_BYTES = 1 << 16


def read_examples(path: Path, preparation: Preparation) -> tuple[Any, ...]:
    """Return the first rows of a file as they could be sent."""
    name = detect_format(path)
    # Which also finds out whether the model could rank the file.
    first = next(preparation.read_blocks(path, format=name))
    if preparation.encoder is None or name not in TABLES:
        return tuple(_features(preparation, first.X, row) for row in range(_shown(first.X)))
    columns = [column.name for column in preparation.encoder.columns]
    table = next(TABLES[name](path, _BYTES))
    rows = zip(*(table.columns[name] for name in columns), strict=True)
    return tuple(
        {name: _plain(cell) for name, cell in zip(columns, row, strict=True)}
        for row in islice(rows, EXAMPLES)
    )


def read_truths(path: Path, preparation: Preparation) -> tuple[list[str], ...] | None:
    """Return the labels of those rows, where the file has the column of lists of training."""
    name = detect_format(path)
    if preparation.label_list is None or name not in TABLES:
        return None
    cells = next(TABLES[name](path, _BYTES)).columns.get(preparation.label_list)
    if cells is None:
        return None
    separator = preparation.separator
    return tuple(
        [label.strip() for label in str(cell or "").split(separator) if label.strip()]
        for cell in islice(cells, EXAMPLES)
    )


def _shown(X: Any) -> int:
    return min(EXAMPLES, X.shape[0])


def _features(preparation: Preparation, X: Any, row: int) -> Any:
    names = preparation.feature_names()
    if sparse.issparse(X):
        of_row = X[[row]]
        pairs = zip(of_row.indices.tolist(), of_row.data.tolist(), strict=True)
        return {names[j]: _plain(value) for j, value in pairs if j < len(names)}
    values = [_plain(value) for value in np.asarray(X[row]).tolist()]
    by_name = preparation.encoder is not None or preparation.names is not None
    return dict(zip(names, values, strict=True)) if by_name else values


def _plain(cell: Any) -> Any:
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return cell if isinstance(cell, str | int | bool | None) else str(cell)
