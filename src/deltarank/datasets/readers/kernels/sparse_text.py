"""Rows of LIBSVM and XMC text, ``l1,l2 f:v f:v``, straight from bytes to arrays."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.datasets.readers.kernels.decimals import (
    NOT_A_NUMBER,
    TOO_LARGE,
    UNDECIDED,
    read_number,
)

# What was wrong with a line.
FINE, BAD_LABEL, BAD_FEATURE, BAD_VALUE, LARGE_VALUE = 0, 1, 2, 3, 4
LABEL_RANGE, FEATURE_RANGE, TWICE = 5, 6, 7

_NEWLINE, _HASH, _COMMA, _ZERO, _COLON = 10, 35, 44, 48, 58
_BEYOND = 1 << 40  # larger indices are all alike: too large


@njit(nogil=True, cache=True)
def parse_rows(text, feature_range, label_range):
    """Parse whole lines; the last byte must be a newline.

    A line is a row, also an empty one, unless its first byte is ``#``. Labels come first, joined by
    commas; a row without labels starts with a blank or with a feature. Ranges are the least and the
    largest index that may occur.

    Returns
    -------
    rows : tuple
        Starts, indices (int32) and values (float64) of the features, starts and members (int32) of
        the label sets, all counted from the first index of their range. Labels ascend; features
        stand as in the text. Values that `read_number` could not decide are its NaNs.
    seen : tuple
        Number of lines, one more than the largest feature, one more than the largest label, rows
        whose features do not ascend, undecided values.
    problem : tuple
        What was wrong (FINE if nothing), and the offsets of its line and its place.
    """
    n_lines, n_colons, n_commas = _count(text)
    feature_starts, label_starts = np.zeros(n_lines + 1, np.int64), np.zeros(n_lines + 1, np.int64)
    indices, values = np.empty(n_colons, np.int32), np.empty(n_colons, np.float64)
    members = np.empty(n_commas + n_lines, np.int32)
    row = line = cell = member = width = height = n_unordered = n_undecided = 0
    at = line_at = place = 0
    problem = FINE
    while at < text.shape[0]:
        line_at = at
        if text[at] == _HASH:
            at = _line_end(text, at) + 1
            line += 1
            continue
        begin = member
        at, member, problem, place = _read_labels(text, at, label_range, members, member)
        if problem != FINE:
            break
        if member > begin:
            height = max(height, np.int64(members[member - 1]) + 1)
        begin = cell
        at, cell, doubts, problem, place = _read_features(
            text, at, feature_range, indices, values, cell
        )
        if problem != FINE:
            break
        n_undecided += doubts
        ordered, last = _order(indices[begin:cell])
        width = max(width, last + 1)
        if not ordered:
            n_unordered += 1
            if has_twins(indices[begin:cell]):
                problem, place = TWICE, line_at
                break
        at += 1
        line += 1
        row += 1
        feature_starts[row], label_starts[row] = cell, member
    rows = (
        feature_starts[: row + 1], indices[:cell], values[:cell],
        label_starts[: row + 1], members[:member],
    )  # fmt: skip
    return rows, (line, width, height, n_unordered, n_undecided), (problem, line_at, place)


@njit(nogil=True, cache=True)
def _count(text):
    """Return how many lines, features and commas there are at most."""
    lines = colons = commas = 0
    for i in range(text.shape[0]):
        lines += text[i] == _NEWLINE
        colons += text[i] == _COLON
        commas += text[i] == _COMMA
    return lines, colons, commas


@njit(nogil=True, cache=True)
def _read_labels(text, at, label_range, members, member):
    """Read the labels of a line; return the end, the number of members, and what was wrong."""
    begin, line_at = member, at
    if _ends_word(text[at]):
        return at, member, FINE, at
    while True:
        place = at
        at, label = _read_index(text, at)
        if text[at] == _COLON and place == line_at:
            return line_at, member, FINE, at  # a feature: the row has no labels
        if at == place or not (text[at] == _COMMA or _ends_word(text[at])):
            return at, member, BAD_LABEL, place
        if not label_range[0] <= label <= label_range[1]:
            return at, member, LABEL_RANGE, place
        members[member] = label - label_range[0]
        member += 1
        if text[at] != _COMMA:
            break
        at += 1
    for k in range(begin + 1, member):
        if members[k] <= members[k - 1]:
            member = begin + _make_set(members[begin:member])
            break
    return at, member, FINE, at


@njit(nogil=True, cache=True)
def _read_features(text, at, feature_range, indices, values, cell):
    """Read the features of a line; return its end, the number of cells, and what was wrong."""
    bits = values.view(np.uint64)
    doubts = 0
    while True:
        while _is_blank(text[at]):
            at += 1
        if text[at] == _HASH:
            at = _line_end(text, at)
        if text[at] == _NEWLINE:
            return at, cell, doubts, FINE, at
        place = at
        at, feature = _read_index(text, at)
        if at == place or text[at] != _COLON:
            return at, cell, doubts, BAD_FEATURE, place
        if not feature_range[0] <= feature <= feature_range[1]:
            return at, cell, doubts, FEATURE_RANGE, place
        place = at + 1
        at, kind = read_number(text, place, values, bits, cell)
        if kind == NOT_A_NUMBER or not _ends_word(text[at]):
            return at, cell, doubts, BAD_VALUE, place
        if kind == TOO_LARGE:
            return at, cell, doubts, LARGE_VALUE, place
        doubts += kind == UNDECIDED
        indices[cell] = feature - feature_range[0]
        cell += 1


@njit(nogil=True, cache=True, inline="always")
def _is_blank(c):
    return c == 32 or c == 9 or c == 13


@njit(nogil=True, cache=True, inline="always")
def _ends_word(c):
    return c in (_NEWLINE, _HASH) or _is_blank(c)


@njit(nogil=True, cache=True)
def _line_end(text, at):
    while text[at] != _NEWLINE:
        at += 1
    return at


@njit(nogil=True, cache=True, inline="always")
def _read_index(text, at):
    """Return the end and the value of a run of digits."""
    value = 0
    while True:
        digit = np.uint8(text[at] - np.uint8(_ZERO))
        if digit >= 10:
            return at, value
        if value < _BEYOND:
            value = value * 10 + np.int64(digit)
        at += 1


@njit(nogil=True, cache=True)
def _order(indices):
    """Return whether the indices ascend, and the largest (-1 if there is none)."""
    ascend, largest = True, -1
    for k in range(indices.shape[0]):
        ascend &= indices[k] > largest
        largest = max(largest, np.int64(indices[k]))
    return ascend, largest


@njit(nogil=True, cache=True)
def has_twins(indices):
    """Tell whether an index occurs twice."""
    ordered = np.sort(indices)
    return np.any(ordered[1:] == ordered[:-1])


@njit(nogil=True, cache=True)
def _make_set(members):
    """Sort labels in place, drop repeats, and return how many are left."""
    members.sort()
    kept = 0
    for k in range(members.shape[0]):
        if kept == 0 or members[k] != members[kept - 1]:
            members[kept] = members[k]
            kept += 1
    return kept
