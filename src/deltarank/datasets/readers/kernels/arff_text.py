"""Rows of numeric ARFF, dense ``1,2.5,?`` and sparse ``{3 1,7 0.5}``, from bytes to arrays."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.datasets.readers.kernels.decimals import (
    NOT_A_NUMBER,
    TOO_LARGE,
    UNDECIDED,
    read_number,
)
from deltarank.datasets.readers.kernels.sparse_text import has_twins

# What was wrong with a line.
FINE, BAD_VALUE, LARGE_VALUE, ROW_LENGTH, NO_BRACE, BAD_INDEX, TWICE, AFTER_ROW = range(8)

_TAB, _NEWLINE, _RETURN, _SPACE = 9, 10, 13, 32
_QUOTE, _PERCENT, _APOSTROPHE, _COMMA, _ZERO, _QUESTION = 34, 37, 39, 44, 48, 63
_OPEN, _CLOSE = 123, 125


@njit(nogil=True, cache=True)
def parse_dense(text, n_columns):
    """Parse lines of numbers with commas between them; the last byte must be a newline.

    Returns
    -------
    values : array of shape (n, n_columns)
        NaN where ``?`` stands.
    row_at : array of shape (n,)
        Offset of each row in the text.
    n_undecided : int
        Values left as NaNs of `read_number`.
    problem, place : int
        What was wrong (FINE if nothing), and where.
    """
    n_rows = _most_rows(text, n_columns)
    values, row_at = np.empty((n_rows, n_columns)), np.empty(n_rows, np.int64)
    flat = values.reshape(-1)
    bits = flat.view(np.uint64)
    row = n_undecided = 0
    at = _next_row(text, 0)
    while at < text.shape[0]:
        if row == n_rows:  # only a row that is too short can be one too many
            return values[:row], row_at[:row], n_undecided, ROW_LENGTH, at
        row_at[row] = at
        for j in range(n_columns):
            place = at = _skip_blanks(text, at)
            at, kind = _read_value(text, at, flat, bits, row * n_columns + j)
            if kind == NOT_A_NUMBER:
                short = text[place] == _NEWLINE and j > 0
                problem = ROW_LENGTH if short else BAD_VALUE
                return values[:row], row_at[:row], n_undecided, problem, place
            if kind == TOO_LARGE:
                return values[:row], row_at[:row], n_undecided, LARGE_VALUE, place
            n_undecided += kind == UNDECIDED
            at = _skip_blanks(text, at)
            wanted = _COMMA if j < n_columns - 1 else _NEWLINE
            if text[at] != wanted:
                wrong_end = text[at] == _NEWLINE or text[at] == _COMMA
                problem = ROW_LENGTH if wrong_end else BAD_VALUE
                return values[:row], row_at[:row], n_undecided, problem, place
            at += 1
        row += 1
        at = _next_row(text, at)
    return values[:row], row_at[:row], n_undecided, FINE, at


@njit(nogil=True, cache=True)
def parse_sparse(text, n_columns):
    """Parse lines ``{index value,index value}``; the last byte must be a newline.

    Returns
    -------
    starts, indices, values : arrays
        The rows, as in a CSR matrix; indices in the order of the text.
    row_at, n_undecided, problem, place
        As of `parse_dense`.
    """
    n_rows, n_cells = _most_sparse(text)
    starts, row_at = np.zeros(n_rows + 1, np.int64), np.empty(n_rows, np.int64)
    indices, values = np.empty(n_cells, np.int32), np.empty(n_cells)
    row = cell = n_undecided = 0
    problem = FINE
    place = at = _next_row(text, 0)
    while at < text.shape[0]:
        row_at[row] = at
        if text[at] != _OPEN:
            problem, place = NO_BRACE, at
            break
        begin = cell
        at, cell, doubts, problem, place = _read_cells(
            text, at + 1, n_columns, indices, values, cell
        )
        if problem != FINE:
            break
        n_undecided += doubts
        if has_twins(indices[begin:cell]):
            problem, place = TWICE, row_at[row]
            break
        at = _skip_blanks(text, at)
        if text[at] != _NEWLINE:
            problem, place = AFTER_ROW, at
            break
        row += 1
        starts[row] = cell
        at = _next_row(text, at)
    return (
        (starts[: row + 1], indices[: starts[row]], values[: starts[row]]),
        row_at[:row], n_undecided, problem, place,
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _read_cells(text, at, n_columns, indices, values, cell):
    """Read the cells of a sparse row up to its brace; return the end and what was wrong."""
    bits = values.view(np.uint64)
    doubts = 0
    at = _skip_blanks(text, at)
    if text[at] == _CLOSE:
        return at + 1, cell, doubts, FINE, at
    while True:
        place = at = _skip_blanks(text, at)
        index = 0
        while np.uint8(text[at] - np.uint8(_ZERO)) < 10:
            if index < n_columns:
                index = index * 10 + np.int64(text[at]) - _ZERO
            at += 1
        if at == place or index >= n_columns or _skip_blanks(text, at) == at:
            return at, cell, doubts, BAD_INDEX, place
        place = at = _skip_blanks(text, at)
        at, kind = _read_value(text, at, values, bits, cell)
        if kind == NOT_A_NUMBER:
            return at, cell, doubts, BAD_VALUE, place
        if kind == TOO_LARGE:
            return at, cell, doubts, LARGE_VALUE, place
        doubts += kind == UNDECIDED
        indices[cell] = index
        cell += 1
        at = _skip_blanks(text, at)
        if text[at] == _CLOSE:
            return at + 1, cell, doubts, FINE, at
        if text[at] != _COMMA:
            return at, cell, doubts, BAD_VALUE, place
        at += 1


@njit(nogil=True, cache=True)
def _read_value(text, at, floats, bits, index):
    """Read a number, in quotes or not, or a question mark as NaN."""
    if text[at] == _QUESTION:
        floats[index] = np.nan
        return at + 1, 0
    quote = text[at]
    if quote != _QUOTE and quote != _APOSTROPHE:
        return read_number(text, at, floats, bits, index)
    end, kind = read_number(text, at + 1, floats, bits, index)
    return (end + 1, kind) if text[end] == quote else (at, NOT_A_NUMBER)


@njit(nogil=True, cache=True)
def _skip_blanks(text, at):
    while text[at] == _SPACE or text[at] == _TAB or text[at] == _RETURN:
        at += 1
    return at


@njit(nogil=True, cache=True)
def _next_row(text, at):
    """Return where the next line starts that is neither empty nor a comment."""
    while at < text.shape[0]:
        at = _skip_blanks(text, at)
        if text[at] == _PERCENT:
            while text[at] != _NEWLINE:
                at += 1
        if text[at] != _NEWLINE:
            return at
        at += 1
    return at


@njit(nogil=True, cache=True)
def _most_rows(text, n_columns):
    """Return how many rows there can be, by lines and by commas: empty lines cost nothing."""
    lines = commas = 0
    for i in range(text.shape[0]):
        lines += text[i] == _NEWLINE
        commas += text[i] == _COMMA
    return min(lines, commas // (n_columns - 1)) if n_columns > 1 else lines


@njit(nogil=True, cache=True)
def _most_sparse(text):
    """Return how many rows and cells there can be."""
    lines = commas = 0
    for i in range(text.shape[0]):
        lines += text[i] == _NEWLINE
        commas += text[i] == _COMMA
    return lines, commas + lines
