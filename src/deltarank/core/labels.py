"""Label sets in one form: whatever Y is given as, kernels see lists of relevant labels."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.arguments import refuse_hidden
from deltarank.core.kernels.dense_labels import list_marked

FORMS = "a zero-one array or sparse matrix with one column per label, or a list of label sets"

# Characters of a name beyond which rankings would be mostly padding.
LONGEST_NAME = 64


class LabelSets(NamedTuple):
    """Relevant labels of each row, row after row, as in the index arrays of a CSR matrix.

    ``members[starts[i]:starts[i + 1]]`` are the relevant labels of row ``i``, ascending. Labels of
    which nobody knows whether they are relevant are `unknown`, in the same form; None if there are
    none, which is the usual case. All others are irrelevant.
    """

    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    n_labels: int
    unknown: "LabelSets | None" = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of relevant labels of each row, s."""
        return np.diff(self.starts)

    @property
    def n_known(self) -> NDArray[np.int64]:
        """Number of labels of each row that are known: relevant or not."""
        if self.unknown is None:
            return np.full(self.n_rows, self.n_labels)
        return self.n_labels - self.unknown.sizes

    @property
    def rows(self) -> NDArray[np.int64]:
        """Row of each member."""
        return np.repeat(np.arange(self.n_rows), self.sizes)

    def by_label(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of each label, label after label, and where each label's rows start."""
        order = np.argsort(self.members, kind="stable")
        starts = np.searchsorted(self.members[order], np.arange(self.n_labels + 1))
        return starts, self.rows[order]

    def take(self, rows: NDArray[Any]) -> "LabelSets":
        """Return the label sets of some rows, given by a mask or by their numbers."""
        taken = self.to_csr()[rows]
        starts = taken.indptr.astype(np.int64)
        unknown = None if self.unknown is None else self.unknown.take(rows)
        return LabelSets(starts, taken.indices, self.n_labels, unknown)

    def to_csr(self) -> sparse.csr_array:
        """Return the label sets as a zero-one matrix; unknown labels are zeros like irrelevant."""
        ones = np.ones(len(self.members), np.int8)
        shape = (self.n_rows, self.n_labels)
        return sparse.csr_array((ones, self.members, self.starts), shape=shape)

    def to_matrix(self) -> sparse.csr_array:
        """Return the label sets as a sparse matrix that `label_sets` reads back, NaN for unknown.

        Zero-one integers where every label is known.
        """
        if self.unknown is None:
            return self.to_csr()
        cells, is_relevant = self.with_unknown()
        values = np.where(is_relevant, 1.0, np.nan)
        shape = (self.n_rows, self.n_labels)
        return sparse.csr_array((values, cells.members, cells.starts), shape=shape)

    def with_unknown(self) -> "tuple[LabelSets, NDArray[np.bool_]]":
        """Return the cells that are not known to be irrelevant, and which of them are relevant."""
        if self.unknown is None:
            return self, np.ones(len(self.members), bool)
        rows = np.concatenate([self.rows, self.unknown.rows])
        members = np.concatenate([self.members, self.unknown.members])
        order = np.lexsort((members, rows))
        cells = LabelSets(self.starts + self.unknown.starts, members[order], self.n_labels)
        return cells, order < len(self.members)

    @property
    def trivial(self) -> NDArray[np.bool_]:
        """Whether a row has no pair to rank: no known label is relevant, or all are."""
        return (self.sizes == 0) | (self.sizes == self.n_known)


def label_sets(
    Y: Any,
    *,
    n_labels: int | None = None,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    argument: str = "Y",
    without_unknown: str | None = None,
) -> LabelSets:
    """Bring label sets of any accepted form into one.

    Parameters
    ----------
    Y : array, sparse matrix, data frame, list or Series of label sets
        Zero-one matrix of shape (n, m), or one collection of labels per row: column indices, or
        names when `classes` is given. NaN in a matrix, stored as such if it is sparse, means
        unknown.
    n_labels : int, optional
        Number of labels m, where the caller knows it; Y must then have as many columns.
    classes : sequence, optional
        Names of the labels, in column order, for a list of sets of names.
    argument : str
        What the caller calls Y, for error messages.
    without_unknown : str, optional
        Who takes no unknown labels and what to do then, for the refusal; by default they are taken.

    Examples
    --------
    >>> label_sets([{0, 2}, set()], n_labels=3).members
    array([0, 2], dtype=int32)
    >>> label_sets([[1, np.nan, 0]]).unknown.members
    array([1], dtype=int32)
    """
    refuse_hidden(Y, argument)
    Y = without_series(Y)
    if classes is not None:
        n_labels = _agreeing(len(classes), n_labels, "classes")
    if sparse.issparse(Y):
        sets = _from_sparse(Y, argument)
    elif is_list_of_sets(Y):
        return _from_sets(Y, n_labels, classes, argument)
    else:
        sets = _from_dense(_as_array(Y, argument), argument)
    if sets.n_rows == 0:
        raise ValueError(f"{argument} must have at least one row; got none")
    _agreeing(sets.n_labels, n_labels, argument)
    if sets.unknown is not None and without_unknown is not None:
        row, column = int(sets.unknown.rows[0]), int(sets.unknown.members[0])
        wrong = _not_zero_one(np.nan, row, column, argument)
        raise ValueError(f"{wrong}: {without_unknown}")
    return sets


def _agreeing(n_labels: int, wanted: int | None, argument: str) -> int:
    if wanted is not None and n_labels != wanted:
        raise ValueError(f"{argument} must have {wanted} labels; got {n_labels}")
    return n_labels


def without_series(Y: Any) -> Any:
    """Return a column whose cells are collections (pandas, polars, objects) as a list of them.

    Examples
    --------
    >>> without_series(np.array([{"a"}, {"a", "b"}], dtype=object)) == [{"a"}, {"a", "b"}]
    True
    """
    is_series = hasattr(Y, "to_list") and not hasattr(Y, "columns")
    is_column = isinstance(Y, np.ndarray) and Y.dtype == object and Y.ndim == 1
    if not is_series and not is_column:
        return Y
    cells = Y.to_list() if is_series else Y.tolist()
    collections = (list, tuple, set, frozenset, np.ndarray)
    return cells if any(isinstance(cell, collections) for cell in cells) else Y


def is_list_of_sets(Y: Any) -> bool:
    """Tell a list of label collections from a matrix written as nested lists.

    Lists of equal length that hold only 0, 1 and NaN are a matrix; sets and ragged lists never are.
    Nor are collections among other things: `check_label_rows` says what is wrong with those.
    """
    if not isinstance(Y, list | tuple) or len(Y) == 0:
        return False
    if any(isinstance(row, set | frozenset | Mapping) for row in Y):
        return True
    listed = [isinstance(row, list | tuple | np.ndarray) for row in Y]
    if not all(listed):
        return any(listed)
    lengths = {len(row) for row in Y}
    return len(lengths) > 1 or any(
        value not in (0, 1) and value == value for row in Y for value in row
    )


def label_array(names: Any) -> NDArray[Any]:
    """Return names as an array; long ones as objects, as NumPy gives every cell the longest width.

    Examples
    --------
    >>> label_array(["a", "bc"]).dtype, label_array(["a", "x" * 5000]).dtype
    (dtype('<U2'), dtype('O'))
    """
    array = np.asarray(names)
    return array.astype(object) if array.dtype.itemsize > LONGEST_NAME * 4 else array


def check_label_rows(Y: Sequence[Any], argument: str) -> None:
    """Refuse rows that are no collections of labels, and labels that are no names or numbers.

    A string would be taken for its letters, a mapping for its keys, and True for the label 1.
    """
    for i, row in enumerate(Y):
        if isinstance(row, str | bytes | Mapping) or not isinstance(row, Iterable):
            raise ValueError(
                f"{argument} must hold a set or list of labels in every row; row {i} is {row!r}"
                + (f" (write {[row]!r} for one label)" if isinstance(row, str) else "")
            )
        for label in row:
            is_number = isinstance(label, int | float | np.number) and label == label
            if not (isinstance(label, str) or (is_number and not isinstance(label, bool))):
                raise ValueError(
                    f"{argument} must hold labels that are strings or numbers; got {label!r} in "
                    f"row {i}"
                )


def _as_array(Y: Any, argument: str) -> NDArray[Any]:
    array = np.asarray(Y)
    if array.dtype == object and hasattr(Y, "to_numpy"):
        # A frame's own missing values, which only it can turn into NaN.
        with suppress(TypeError, ValueError):
            array = Y.to_numpy(dtype=np.float64, na_value=np.nan)
    if array.ndim != 2:
        raise ValueError(
            f"{argument} must be {FORMS}; got shape {array.shape}"
            + ("; use Y.reshape(-1, 1) for a single label" if array.ndim == 1 else "")
        )
    if array.dtype == object:
        with suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "buif":
        raise ValueError(f"{argument} must hold only 0 and 1; got values of type {array.dtype}")
    return array


def _from_dense(array: NDArray[Any], argument: str) -> LabelSets:
    if array.shape[1] == 0:
        raise ValueError(f"{argument} must have at least one label; got shape {array.shape}")
    marks = np.ascontiguousarray(array != 0)
    if array.dtype == bool or np.count_nonzero(array == 1) == np.count_nonzero(marks):
        return _listed(marks)
    missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros_like(marks)
    wrong = np.nonzero(marks & (array != 1) & ~missing)
    if len(wrong[0]):
        row, column = (int(place[0]) for place in wrong)
        raise ValueError(_not_zero_one(array[row, column], row, column, argument))
    return _listed(marks & ~missing)._replace(unknown=_listed(missing))


def _listed(marks: NDArray[np.bool_]) -> LabelSets:
    n_rows, n_labels = marks.shape
    n_marked = int(np.count_nonzero(marks))
    starts = np.empty(n_rows + 1, np.int64)
    members = np.empty(n_marked + 1, np.int32)
    list_marked(marks, starts, members)
    return LabelSets(starts, members[:n_marked], n_labels)


def _from_sparse(Y: Any, argument: str) -> LabelSets:
    if Y.ndim != 2 or Y.shape[1] == 0:
        raise ValueError(f"{argument} must have at least one label; got shape {Y.shape}")
    matrix = sparse.csr_array(Y)
    if not matrix.has_canonical_format or not np.all(matrix.data):
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    missing = np.isnan(matrix.data) if matrix.dtype.kind == "f" else np.zeros(matrix.nnz, bool)
    if matrix.dtype != bool:
        wrong = np.flatnonzero((matrix.data != 1) & ~missing)
        if len(wrong):
            row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
            column = int(matrix.indices[wrong[0]])
            raise ValueError(_not_zero_one(matrix.data[wrong[0]], row, column, argument))
    stored = LabelSets(
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int32, copy=False),
        matrix.shape[1],
    )
    if not missing.any():
        return stored
    return _members_where(stored, ~missing)._replace(unknown=_members_where(stored, missing))


def _members_where(labels: LabelSets, kept: NDArray[np.bool_]) -> LabelSets:
    """Return the label sets with some of their members only."""
    n_before = np.concatenate([[0], np.cumsum(kept)])
    return LabelSets(n_before[labels.starts], labels.members[kept], labels.n_labels)


def _not_zero_one(value: Any, row: int, column: int, argument: str) -> str:
    return f"{argument} must hold only 0 and 1; got {value} in row {row}, column {column}"


def _from_sets(
    Y: Sequence[Iterable[Any]],
    n_labels: int | None,
    classes: Sequence[Any] | NDArray[Any] | None,
    argument: str,
) -> LabelSets:
    if n_labels is None:
        raise ValueError(
            f"{argument} is a list of label sets, so the number of labels is unknown; "
            "pass a zero-one matrix or name the labels with classes="
        )
    check_label_rows(Y, argument)
    names = range(n_labels) if classes is None else list(classes)
    column_of = {name: column for column, name in enumerate(names)}
    rows = []
    for i, labels in enumerate(Y):
        try:
            rows.append(sorted({column_of[label] for label in labels}))
        except KeyError as unknown:
            wanted = f"0 to {n_labels - 1}" if classes is None else "in classes"
            raise ValueError(
                f"{argument} holds the unknown label {unknown} in row {i}; labels must be {wanted}"
            ) from None
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    members = np.array([label for row in rows for label in row], dtype=np.int32)
    return LabelSets(starts, members, n_labels)


def row_numbers(values: Any, n_rows: int, argument: str, *, of: str = "row") -> NDArray[np.float64]:
    """Check a vector of finite, non-negative numbers, one per row (or label: say so with `of`)."""
    refuse_hidden(values, argument)
    array = np.asarray(values)
    if array.dtype.kind not in "buif":
        raise ValueError(f"{argument} must be numbers; got values of type {array.dtype}")
    if array.shape != (n_rows,):
        raise ValueError(
            f"{argument} must have shape ({n_rows},), one value per {of}; got shape {array.shape}"
        )
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(wrong):
        raise ValueError(
            f"{argument} must be finite and not negative; got {array[wrong[0]]} at {of} {wrong[0]}"
        )
    return array.astype(np.float64)
