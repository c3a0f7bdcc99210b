"""The head of an ARFF file: its attributes, and which of them are labels."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from xml.etree import ElementTree

from deltarank.datasets.readers.errors import DataFileError, shown

_WORD = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s,{}'"%]+"""
_ATTRIBUTE = re.compile(
    r"""\s*@attribute\s+(?P<name>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{}]+)\s*(?P<type>\S.*)""",
    re.I,
)
_VALUE = re.compile(rf"\s*({_WORD})\s*(,|$)")
_MEKA = re.compile(r"-C\s+(-?\d{1,9})\b")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_NUMBERS = {"numeric", "real", "integer"}
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True)
class Attribute:
    """A column: a number if it has no values, a choice among values, or a string."""

    name: str
    values: tuple[str, ...] | None = None
    is_string: bool = False

    @property
    def is_number(self) -> bool:
        """Whether all its cells are numbers, as those of a choice among numbers are."""
        if self.values is None:
            return not self.is_string
        return all(_NUMBER.fullmatch(value) for value in self.values)


@dataclass(frozen=True)
class Header:
    """What stands above the rows."""

    attributes: tuple[Attribute, ...]
    relation: str
    n_lines: int

    @property
    def names(self) -> list[str]:
        """Return the names of the attributes."""
        return [attribute.name for attribute in self.attributes]


def parse_header(path: Path, text: str) -> Header:
    """Read the lines up to ``@data``."""
    attributes: list[Attribute] = []
    seen: set[str] = set()
    relation = ""
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        word = line.strip().partition(" ")[0].partition("\t")[0].lower()
        if not word or word.startswith("%") or word == "@data":
            continue
        if word == "@relation":
            relation = line.strip()[len("@relation") :]
        elif word == "@attribute":
            attribute = _parse_attribute(path, line, number)
            if attribute.name in seen:
                problem = f"two attributes have the name {attribute.name!r}"
                raise DataFileError(path, problem, line=number, column=1)
            seen.add(attribute.name)
            attributes.append(attribute)
        else:
            problem = f"@relation, @attribute or @data is wanted; got {shown(line.strip())}"
            raise DataFileError(path, problem, line=number, column=1)
    if not attributes:
        raise DataFileError(path, "no @attribute stands before @data", line=len(lines))
    return Header(tuple(attributes), relation, len(lines))


def _parse_attribute(path: Path, line: str, number: int) -> Attribute:
    match = _ATTRIBUTE.fullmatch(line.rstrip())
    if match is None:
        problem = "@attribute must be followed by a name and a type"
        raise DataFileError(path, problem, line=number, column=1)
    name, kind = unquoted(match["name"]), match["type"]
    column = match.start("type") + 1
    if kind.startswith("{"):
        return Attribute(name, _parse_values(path, kind, number, column))
    kind = kind.partition("%")[0].split()[0].lower() if kind.partition("%")[0].split() else ""
    if kind in _NUMBERS:
        return Attribute(name)
    if kind == "string":
        return Attribute(name, is_string=True)
    problem = f"the type must be numeric, string or {{values}}; got {shown(match['type'])}"
    raise DataFileError(path, problem, line=number, column=column)


def _parse_values(path: Path, text: str, number: int, column: int) -> tuple[str, ...]:
    """Read the list of values ``{a, 'b c'}``."""
    inner, brace, after = text[1:].rpartition("}")
    if not brace or after.partition("%")[0].strip():
        problem = "the list of values does not end in a brace"
        raise DataFileError(path, problem, line=number, column=column)
    values: list[str] = []
    at = 0
    while at < len(inner) or not values:
        match = _VALUE.match(inner, at)
        if match is None:
            problem = f"a value is wanted; got {shown(inner[at:].strip())}"
            raise DataFileError(path, problem, line=number, column=column + 1 + at)
        values.append(unquoted(match[1]))
        at = match.end()
    return tuple(values)


def unquoted(word: str) -> str:
    r"""Take off quotes and their backslashes; ``\n``, ``\t`` and ``\r`` are what Weka writes so.

    Examples
    --------
    >>> unquoted("plain"), unquoted(r"'it\'s'"), unquoted(r"'a\tb'")
    ('plain', "it's", 'a\tb')
    """
    if word[:1] in ("'", '"'):
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), word[1:-1])
    return word


def label_columns(
    path: Path, header: Header, labels: int | str | PathLike[str] | Sequence[str] | None
) -> list[int]:
    """Return the columns of the labels, in the order of the file.

    `labels` is the file of label names (XML), their number (from the front; negative, from the
    back), or their names; by default the XML beside the file, else ``-C`` in the relation's name.
    """
    n = len(header.attributes)
    if labels is None:
        labels = _xml_beside(path)
    if labels is None and (match := _MEKA.search(header.relation)):
        labels = int(match[1])
    if labels is None:
        raise ValueError(
            f"{path}: labels= must be the XML file of label names, their number (from the front; "
            "negative, from the back), or their names; no XML lies beside the file"
        )
    if isinstance(labels, int):
        if not 0 < abs(labels) <= n:
            raise ValueError(f"{path}: labels={labels} is not among its {n} attributes")
        return list(range(labels)) if labels > 0 else list(range(n + labels, n))
    if isinstance(labels, str | PathLike):
        return _named(path, header, read_label_names(Path(labels)), f"which {labels} names")
    return _named(path, header, labels, "which labels= names")


def _named(path: Path, header: Header, names: Iterable[str], why: str) -> list[int]:
    column_of = {name: column for column, name in enumerate(header.names)}
    for name in names:
        if name not in column_of:
            raise ValueError(f"{path} has no attribute {name!r}, {why}")
    return sorted({column_of[name] for name in names})


def _xml_beside(path: Path) -> Path | None:
    """Find the label file of ``set-train.arff``: ``set-train.xml`` or ``set.xml``."""
    stem = re.sub(r"\.(gz|bz2|xz)$", "", path.name)
    stem = re.sub(r"\.arff$", "", stem)
    base = re.sub(r"([-_](train|test|sparse))+$", "", stem)
    for name in (f"{stem}.xml", f"{base}.xml"):
        if (path.parent / name).is_file():
            return path.parent / name
    return None


def read_label_names(path: Path) -> list[str]:
    """Return the names in a MULAN file of labels."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        line, column = error.position
        problem = f"not XML ({error.msg})"
        raise DataFileError(path, problem, line=line, column=column + 1) from None
    elements = [e for e in root.iter() if str(e.tag).rpartition("}")[2] == "label"]
    names = [element.get("name") for element in elements]
    if not names or None in names:
        raise DataFileError(path, 'labels must be written <label name="..."/>')
    return [str(name) for name in names]
