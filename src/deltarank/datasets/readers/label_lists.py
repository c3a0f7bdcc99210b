"""Columns of label lists: which labels each cell names, and what stands between them."""

import json
import re
from ast import literal_eval
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from deltarank.datasets.readers.cells import MISSING, CellError, as_cells, is_known
from deltarank.datasets.readers.errors import shown

USUAL_SEPARATOR = ","
# Signs that names of labels hardly have in them, unlike a comma.
_CLEAR_SEPARATORS = (";", "|")
# In so large a share of the cells such a sign is a separator, not a part of a name.
_CLEAR_SHARE = 0.05
# Lists that hold this many labels, most of which stand in no other row, are probably cut wrongly;
# rare labels are common, but then frequent ones stand beside them.
_FEWEST_SUSPECT, _SUSPECT_SHARE = 20, 0.5
# Cut at one of these, lists that were cut at a wrong sign have far fewer different labels.
_OTHER_SEPARATORS = (";", "|", ",", "/", "\t", "\n", "+", "&")
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


class LabelLists(NamedTuple):
    """Label sets of a column of lists, what its labels are called, and what is worth telling."""

    Y: sparse.csr_array
    names: tuple[str, ...]
    separator: str | None
    notes: tuple[str, ...]


def guess_separator(cells: Any) -> str:
    """Return what stands between the labels of strings: a semicolon, a bar or a comma.

    Examples
    --------
    >>> guess_separator(["sea; sun", "Cooking, Finnish"]), guess_separator(["sea, sun", "snow"])
    (';', ',')
    """
    strings = [cell for cell in as_cells(cells) if isinstance(cell, str) and _is_plain(cell)]
    counts = {sign: sum(sign in cell for cell in strings) for sign in _CLEAR_SEPARATORS}
    sign = max(counts, key=lambda candidate: counts[candidate])
    is_clear = counts[sign] > _CLEAR_SHARE * len(strings)
    return sign if is_clear else USUAL_SEPARATOR


def _is_plain(text: str) -> bool:
    """Tell whether a string names labels without brackets, which need no separator."""
    text = text.strip()
    return text not in MISSING and not _OPENS.match(text)


def from_lists(
    name: str, cells: Any, separator: str | None, label_names: Sequence[str] | None
) -> LabelLists:
    """Return the label sets of a column of lists, and the names of the labels in order.

    A cell is a list, or a string of names with a separator between them, which is guessed if it is
    not given; an empty one, or a word such as ``n/a`` alone, has no label. A string in brackets is
    a list as pandas, JSON or Python writes one. Empty names, as after a last separator, are skipped
    and counted.

    Examples
    --------
    >>> lists = from_lists("tags", ["b; a;", ["b"], None], None, None)
    >>> lists.names, lists.Y.toarray().tolist()
    (('a', 'b'), [[1, 1], [0, 1], [0, 0]])
    >>> lists.notes
    ("column 'tags': labels are separated by ';'", "column 'tags': 1 empty label is skipped")
    """
    is_named = separator is not None
    separator = guess_separator(cells) if separator is None else separator
    cells = as_cells(cells)
    items = [_labels(name, cell, row, separator) for row, cell in enumerate(cells)]
    rows = [{label for label in labels if label} for labels in items]
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
    Y = sparse.csr_array(
        (np.ones(len(members), np.int8), members, starts), shape=(len(rows), len(names))
    )
    notes = []
    if not is_named and separator != USUAL_SEPARATOR:
        notes.append(f"labels are separated by {separator!r}")
    n_empty = sum(not label for labels in items for label in labels)
    if n_empty:
        notes.append(f"{n_empty} empty label{'s are' if n_empty > 1 else ' is'} skipped")
    if label_names is None:
        is_cut = [isinstance(cell, str) and _is_plain(cell) for cell in cells]
        notes += _suspicion(list(compress(rows, is_cut)), separator)
    return LabelLists(Y, names, separator, tuple(f"column {name!r}: {text}" for text in notes))


def _suspicion(rows: list[set[str]], separator: str) -> list[str]:
    """Return a warning if lists look cut at a wrong sign.

    Then most labels occur once, or would be parts of others if another sign were the separator.
    """
    counts = Counter(label for labels in rows for label in labels)
    if len(counts) < _FEWEST_SUSPECT:
        return []
    question = f"is {separator!r} what separates them? (separator=, --separator)"
    for sign in _OTHER_SEPARATORS:
        n_parts = len({part.strip() for label in counts for part in label.split(sign)} - {""})
        if n_parts < _SUSPECT_SHARE * len(counts):
            cut = f"cut at {sign!r}, the {len(counts)} labels would be {n_parts}"
            return [f"{cut}; {question}"]
    once = [label for label, count in counts.items() if count == 1]
    if len(once) <= _SUSPECT_SHARE * counts.total():
        return []
    share = f"{len(once)} of {len(counts)} labels occur in one row only, such as {once[0][:40]!r}"
    return [f"{share}; {question}"]


def _labels(name: str, cell: Any, row: int, separator: str) -> list[str]:
    """Return the names in a cell; empty ones are empty strings."""
    try:
        return [_label(item) for item in _items(cell, separator)]
    except ValueError as wrong:
        raise CellError(str(wrong), name, row) from None


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
                "labels must be names with a separator between them, or a list in brackets; "
                f"got {shown(cell)}"
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
        f"otherwise leave the brackets out; got {shown(text)}"
    )


def _label(item: Any) -> str:
    if isinstance(item, str):
        return item.strip()
    if item is None:
        return ""
    if isinstance(item, bool | np.bool_) or not isinstance(item, int | float | np.number):
        raise ValueError(f"each label must have a name or a number; got {repr(item)[:40]}")
    return str(item) if item == item else ""
