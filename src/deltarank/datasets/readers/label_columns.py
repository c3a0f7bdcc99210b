"""Labels of a table: columns of 0 and 1, or one column of label lists."""

import json
import re
from ast import literal_eval
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.datasets.readers.cells import MISSING, CellError, as_cells, is_known

# Names that say of themselves that a column holds labels.
OBVIOUS = ("labels", "label", "tags", "tag", "categories")
_BRACKETS = {"[": "]", "{": "}", "(": ")"}
# Adjacent strings, which Python would join, have no comma between them and do not match.
_HEX = "[0-9a-fA-F]"
_ESCAPED = rf"\\(?:[\\'\"bfnrt]|x{_HEX}{{2}}|u{_HEX}{{4}}|U000{_HEX}{{5}}|U0010{_HEX}{{4}})"
_ITEM = (
    rf"""(?:'(?:[^'\\\n]|{_ESCAPED})*'|"(?:[^"\\\n]|{_ESCAPED})*"|"""
    r"""-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)"""
)
# Tuples, too; a name may begin with a parenthesis, but hardly with one and a quote.
_OPENS = re.compile(r"[\[{]|\(\s*['\"]")
# What Python prints of other things, of which a part would be taken for a label.
_PRINTED = re.compile(r"b['\"]|(?:frozenset|array|Index|Series|dict_keys|OrderedSet)\([\[{('\"]")
_QUOTED_LIST = re.compile(rf"(?:{_ITEM}(?:\s*,\s*{_ITEM})*\s*,?)?")
_EMPTY = ("set()", "()")
_MARKS = {"0": False, "1": True, "false": False, "true": True}


def obvious_column(names: Iterable[str]) -> str | None:
    """Return the one column whose name says that it holds labels, if there is just one.

    Examples
    --------
    >>> obvious_column(["title", "Tags"]), obvious_column(["tags", "labels"])
    ('Tags', None)
    """
    matches = [name for name in names if name.lower() in OBVIOUS]
    return matches[0] if len(matches) == 1 else None


def from_marks(table: Mapping[str, Any], names: Sequence[str]) -> sparse.csr_array:
    """Return the label sets of columns that hold 0 and 1, or false and true.

    Examples
    --------
    >>> from_marks({"a": [1, 0], "b": ["true", "false"]}, ["a", "b"]).toarray()
    array([[1, 1],
           [0, 0]], dtype=int8)
    """
    columns = [_marks(name, as_cells(table[name])) for name in names]
    return sparse.csr_array(np.column_stack(columns).astype(np.int8))


def _marks(name: str, cells: Any) -> Any:
    if isinstance(cells, np.ndarray):
        wrong = np.flatnonzero((cells != 0) & (cells != 1))
        if len(wrong):
            row = int(wrong[0])
            raise CellError(f"a label must be 0 or 1; got {cells[row]}", name, row)
        return cells != 0
    marks = np.empty(len(cells), bool)
    for row, cell in enumerate(cells):
        text = str(int(cell)) if cell in (0, 1) else str(cell).strip().lower()
        if text not in _MARKS:
            raise CellError(f"a label must be 0 or 1; got {cell!r}", name, row)
        marks[row] = _MARKS[text]
    return marks


def from_lists(
    name: str, cells: Any, separator: str, label_names: Sequence[str] | None
) -> tuple[sparse.csr_array, tuple[str, ...]]:
    """Return the label sets of a column of lists, and the names of the labels in order.

    A cell is a list, or a string of names with a separator between them; an empty one, or a word
    such as ``n/a`` alone, has no label. A string in brackets is a list as pandas, JSON or Python
    writes one.

    Examples
    --------
    >>> Y, names = from_lists("tags", ["b, a", ["b"], None], ",", None)
    >>> names, Y.toarray().tolist()
    (('a', 'b'), [[1, 1], [0, 1], [0, 0]])
    """
    rows = [_names(name, cell, row, separator) for row, cell in enumerate(as_cells(cells))]
    occurring = {label for labels in rows for label in labels}
    if occurring and occurring <= {"0", "1"} and all(len(labels) == 1 for labels in rows):
        raise CellError(
            f"the column holds 0 and 1, so it is one label and no list: pass labels=[{name!r}]",
            name,
            0,
        )
    names = tuple(sorted(occurring)) if label_names is None else tuple(label_names)
    column_of = {label: i for i, label in enumerate(names)}
    members: list[int] = []
    starts = [0]
    for row, labels in enumerate(rows):
        unknown = [label for label in labels if label not in column_of]
        if unknown:
            raise CellError(f"the label {min(unknown)!r} is not in label_names", name, row)
        members.extend(sorted(column_of[label] for label in labels))
        starts.append(len(members))
    ones = np.ones(len(members), np.int8)
    return sparse.csr_array((ones, members, starts), shape=(len(rows), len(names))), names


def _names(name: str, cell: Any, row: int, separator: str) -> set[str]:
    try:
        items = _items(cell, separator)
        for item in items:
            _check_label(item)
    except ValueError as wrong:
        raise CellError(f"{wrong}; got {repr(cell)[:40]}", name, row) from None
    return {str(item).strip() for item in items}


def _items(cell: Any, separator: str) -> list[Any]:
    """Return the labels of a cell, whatever they are."""
    if isinstance(cell, str):
        text = cell.strip()
        if text in MISSING:
            return []
        if _OPENS.match(text) or text in _EMPTY:
            return _bracketed(text)
        if _PRINTED.match(text):
            raise ValueError(
                "labels must be names with a separator between them, or a list in brackets"
            )
        return text.split(separator) if text else []
    if isinstance(cell, list | tuple | np.ndarray):
        return list(cell)
    return [cell] if is_known(cell) else []


def _bracketed(text: str) -> list[Any]:
    """Read a list as programs print it: items in quotes, or numbers, with commas between them."""
    if text in _EMPTY:
        return []
    inside = text[1:-1].strip()
    if text[-1] == _BRACKETS[text[0]] and _QUOTED_LIST.fullmatch(inside):
        try:
            return list(json.loads(f"[{inside}]"))
        except ValueError:
            return list(literal_eval(f"[{inside}]"))
    raise ValueError(
        "a list in brackets must have labels in quotes with commas between them, as ['a', 'b']; "
        "otherwise leave the brackets out"
    )


def _check_label(item: Any) -> None:
    if isinstance(item, str):
        if not item.strip():
            raise ValueError("each label must have a name")
    elif isinstance(item, bool | np.bool_) or not (
        isinstance(item, int | float | np.number) and item == item
    ):
        raise ValueError("each label must have a name or a number")
