"""Rows of ARFF that hold strings or choices among them, cell by cell."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deltarank.datasets.readers.arff_header import Attribute, Header, unquoted
from deltarank.datasets.readers.cells import CellError, as_numbers
from deltarank.datasets.readers.errors import DataFileError, shown

_CELL = re.compile(r"""[ \t]*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,'"]*)[ \t]*(,|$)""")


def read_cells(
    path: Path, chunks: Iterator[bytes], header: Header, is_sparse: bool
) -> dict[str, Any]:
    """Return the columns: arrays of numbers, lists of strings, None where ``?`` stands."""
    rows: list[list[str]] = []
    line_of: list[int] = []
    number = header.n_lines
    for chunk in chunks:
        for raw in chunk.split(b"\n")[:-1]:
            number += 1
            line = _decoded(path, raw, number).strip()
            if line and not line.startswith("%"):
                split = _split_sparse if is_sparse else _split
                rows.append(split(path, line, number, header))
                line_of.append(number)
    if not rows:
        raise DataFileError(path, "the file holds no rows")
    columns = {}
    for attribute, words in zip(header.attributes, zip(*rows, strict=True), strict=True):
        try:
            columns[attribute.name] = _column(attribute, words)
        except CellError as error:
            raise DataFileError(
                path, error.problem, line=line_of[error.row], column=error.column
            ) from None
    return columns


def _decoded(path: Path, raw: bytes, number: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        problem = f"text must be UTF-8; got the byte 0x{raw[error.start]:02x}"
        raise DataFileError(path, problem, line=number, column=error.start + 1) from None


def _split(path: Path, line: str, number: int, header: Header) -> list[str]:
    words = _words(path, line, number)
    if len(words) != len(header.attributes):
        problem = f"a row must have {len(header.attributes)} values; got {len(words)}"
        raise DataFileError(path, problem, line=number)
    return words


def _words(path: Path, line: str, number: int) -> list[str]:
    words: list[str] = []
    at, comma = 0, ","
    while comma:
        match = _CELL.match(line, at)
        if match is None:
            problem = f"quotes do not match in {shown(line[at:])}"
            raise DataFileError(path, problem, line=number, column=at + 1)
        words.append(match[1].strip())
        comma, at = match[2], match.end()
    return words


def _split_sparse(path: Path, line: str, number: int, header: Header) -> list[str]:
    """Fill in what a sparse row leaves out: 0, or the first value of a choice."""
    if not (line.startswith("{") and line.endswith("}")):
        raise DataFileError(path, "a sparse row must stand in braces", line=number, column=1)
    row = [_left_out(attribute) for attribute in header.attributes]
    seen = set()
    inner = line[1:-1].strip()
    for part in _sparse_cells(path, inner, number) if inner else ():
        index, _, word = part
        if not re.fullmatch(r"[0-9]{1,9}", index) or int(index) >= len(row) or not word:
            problem = f"a cell must be written 'index value', with an index below {len(row)}"
            raise DataFileError(path, f"{problem}; got {shown(' '.join(part))}", line=number)
        if int(index) in seen:
            raise DataFileError(path, f"attribute {index} occurs twice", line=number)
        seen.add(int(index))
        row[int(index)] = word
    return row


def _sparse_cells(path: Path, inner: str, number: int) -> Iterator[tuple[str, str, str]]:
    at, comma = 0, ","
    pattern = re.compile(r"[ \t]*([0-9]+)([ \t]+)" + _CELL.pattern)
    while comma:
        match = pattern.match(inner, at)
        if match is None:
            yield inner[at : at + 30], " ", ""
            return
        yield match[1], match[2], match[3].strip()
        comma, at = match[4], match.end()


def _left_out(attribute: Attribute) -> str:
    return "0" if attribute.values is None else f"'{attribute.values[0]}'"


def _column(attribute: Attribute, words: tuple[str, ...]) -> Any:
    cells = [None if word == "?" else unquoted(word) for word in words]
    if attribute.values is not None:
        for row, cell in enumerate(cells):
            if cell is not None and cell not in attribute.values:
                values = ", ".join(attribute.values[:9])
                problem = f"one of {values} is wanted; got {shown(cell)}"
                raise CellError(problem, attribute.name, row)
    if not attribute.is_number:
        return cells
    for row, cell in enumerate(cells):
        if cell == "":
            raise CellError("a number is wanted; got ''", attribute.name, row)
    return np.asarray(as_numbers(attribute.name, cells))
