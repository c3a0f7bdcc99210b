"""A column of vectors in a table, such as embeddings: centred, and scaled as one block."""

import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deltarank.datasets.readers.cells import CellError, as_cells, is_known


@dataclass(frozen=True, eq=False)
class VectorColumn:
    """Vectors minus their mean, divided by the root mean square length that is left.

    All numbers of a vector are scaled alike, so that angles between rows stay as they are, and a
    row has a length of about 1, as one of TF-IDF has. A missing vector becomes the mean.

    Examples
    --------
    >>> column = VectorColumn.fit("embedding", [[1.0, 0.0], [3.0, 0.0], None])
    >>> column.feature_names()
    ['embedding[0]', 'embedding[1]']
    >>> column.features([[3.0, 1.0], None]).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """

    name: str
    mean: NDArray[np.float64]
    scale: float
    kind: ClassVar[str] = "vector"

    @classmethod
    def fit(cls, name: str, cells: Any) -> "VectorColumn":
        """Learn the mean and the scale."""
        vectors, known = _table(name, cells, None)
        present = vectors[known].astype(np.float64, copy=False)
        mean = (present / max(1, len(present))).sum(axis=0)
        largest = float(np.abs(present - mean).max(initial=0.0)) or 1.0
        square = np.square((present - mean) / largest).sum() / max(1, len(present))
        length = min(largest * math.sqrt(square), float(np.finfo(np.float64).max))
        return cls(name, mean, length or 1.0)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, VectorColumn)
            and (self.name, self.scale) == (other.name, other.scale)
            and np.array_equal(self.mean, other.mean)
        )

    __hash__ = None  # type: ignore[assignment]

    def feature_names(self) -> list[str]:
        """Return ``column[place]`` for each number."""
        return [f"{self.name}[{place}]" for place in range(len(self.mean))]

    def features(self, cells: Any) -> NDArray[Any]:
        """Return the scaled vectors, in float32 where they were given so."""
        vectors, known = _table(self.name, cells, len(self.mean))
        with np.errstate(over="ignore"):  # the ranker refuses what is not finite
            scaled = (vectors - self.mean.astype(vectors.dtype)) / vectors.dtype.type(self.scale)
        scaled[~known] = 0.0
        return scaled

    def row(self, cell: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the columns and values of one cell."""
        return np.arange(len(self.mean), dtype=np.int32), self.features([cell])[0]

    def to_json(self, packed: bool) -> dict[str, Any]:
        """Return the column as numbers, the mean as a list or, packed, as an array."""
        mean = self.mean if packed else self.mean.tolist()
        return {"name": self.name, "mean": mean, "scale": self.scale}

    @classmethod
    def from_json(cls, name: str, fields: dict[str, Any]) -> "VectorColumn":
        """Make a column of what `to_json` gave, in either form, and refuse anything else."""
        if set(fields) != {"mean", "scale"}:
            raise ValueError("mean and scale are not there")
        mean, scale = np.array(fields["mean"], ndmin=1), fields["scale"]
        if (
            mean.ndim != 1
            or mean.dtype.kind != "f"
            or not np.isfinite(mean).all()
            or type(scale) is not float
            or not 0 < scale < math.inf
        ):
            raise ValueError("mean and scale do not fit")
        return cls(name, mean.astype(np.float64), scale)


def is_vector(cell: Any) -> bool:
    """Tell whether a cell is a list of numbers, or text that looks like one in JSON.

    Examples
    --------
    >>> [is_vector(cell) for cell in ([0.5, 1], "[0.5, 1]", "[a]", ["a"], [], 1.0)]
    [True, True, False, False, False, False]
    """
    if isinstance(cell, str):
        cell = _from_text(cell)
    if isinstance(cell, np.ndarray):
        return cell.ndim == 1 and cell.dtype.kind in "iuf"
    return isinstance(cell, list | tuple) and bool(cell) and all(map(_is_number, cell))


def _is_number(item: Any) -> bool:
    return isinstance(item, int | float | np.number) and not isinstance(item, bool)


def _from_text(cell: str) -> Any:
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return cell
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return cell


def _table(name: str, cells: Any, width: int | None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the vectors of a column, zeros where one is missing, and which are there.

    Without a width the first vector tells it. Refuses the first cell that does not fit.
    """
    cells = as_cells(cells)
    if isinstance(cells, np.ndarray) and cells.ndim == 2:
        vectors = cells if cells.dtype in (np.float32, np.float64) else cells.astype(np.float32)
        if width not in (None, cells.shape[1]):
            raise CellError(_wanted(width, cells[0]), name, 0)
        known = np.ones(len(cells), bool)
    else:
        rows = [_from_text(cell) if isinstance(cell, str) else cell for cell in cells]
        known = np.array([not isinstance(row, str | None) or is_known(row) for row in rows], bool)
        if width is None:
            width = next((len(row) for row in rows if is_vector(row)), 0)
        vectors = np.zeros((len(rows), width))
        for i in np.flatnonzero(known):
            if not is_vector(rows[i]) or len(rows[i]) != width:
                raise CellError(_wanted(width, rows[i]), name, int(i))
            vectors[i] = rows[i]
    strange = ~np.isfinite(vectors).all(axis=1)
    if strange.any():
        row = int(np.flatnonzero(strange)[0])
        raise CellError("the numbers of a vector must be finite", name, row)
    return vectors, known


def _wanted(width: int | None, got: Any) -> str:
    shown = f"{len(got)} numbers" if is_vector(got) else repr(got)[:40]
    return f"a vector of {width} numbers is wanted; got {shown} (ignore=, --ignore leaves it out)"
