"""Concepts of a SKOS vocabulary, in Turtle, N-Triples or RDF/XML: addresses and their names."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from deltarank.serving.turtle import RDF, Literal, Statement, absolute, statements

SKOS = "http://www.w3.org/2004/02/skos/core#"
DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"
TURTLE = (".ttl", ".nt", ".n3")
XML = (".rdf", ".xml", ".skos", ".owl")
_XML = "{http://www.w3.org/XML/1998/namespace}"
# Where a concept has names in several languages, this one is shown.
SHOWN_LANGUAGE = "en"


class Concept(NamedTuple):
    """The address of a concept, the name that is shown, and its names in all languages."""

    uri: str
    name: str
    names: tuple[str, ...]


def is_skos(path: Path) -> bool:
    """Tell by its ending whether a file is one that `read_concepts` reads."""
    return path.suffix.lower() in (*TURTLE, *XML)


def read_concepts(path: Path) -> list[Concept]:
    """Return the concepts that have a preferred name and are not deprecated, as Annif does."""
    try:
        facts = _from_xml(path) if path.suffix.lower() in XML else _from_turtle(path)
        concepts = _concepts(facts)
    except ElementTree.ParseError as error:
        raise ValueError(f"{path}, line {error.position[0]}: not XML ({error})") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: the text is not UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{path}, {error}") from None
    if not concepts:
        raise ValueError(f"{path}: no skos:Concept has a skos:prefLabel here")
    return concepts


def _concepts(facts: Iterator[Statement]) -> list[Concept]:
    concepts: set[str] = set()
    dropped: set[str] = set()
    names: dict[str, list[Literal]] = {}
    for subject, predicate, what in facts:
        if predicate == f"{RDF}type" and what == f"{SKOS}Concept":
            concepts.add(subject)
        elif predicate == f"{SKOS}prefLabel" and isinstance(what, Literal) and what.text.strip():
            names.setdefault(subject, []).append(what)
        elif predicate == DEPRECATED and _text(what) in ("true", "1"):
            dropped.add(subject)
    return [
        Concept(uri, _shown(labels), tuple(_clean(it.text) for it in labels))
        for uri, labels in names.items()
        if uri in concepts and uri not in dropped
    ]


def _shown(labels: list[Literal]) -> str:
    english = [it for it in labels if (it.language or "").split("-")[0] == SHOWN_LANGUAGE]
    return _clean((english or labels)[0].text)


def _clean(text: str) -> str:
    return " ".join(text.split())


def _text(what: str | Literal) -> str:
    return (what.text if isinstance(what, Literal) else what).strip()


def _from_turtle(path: Path) -> Iterator[Statement]:
    return statements(path.read_text(encoding="utf-8-sig"))


def _from_xml(path: Path) -> Iterator[Statement]:
    """Yield what RDF/XML says of nodes with an address by their types and by texts."""
    above: list[ElementTree.Element] = []
    for event, element in ElementTree.iterparse(path, events=("start", "end")):
        if event == "start":
            above.append(element)
            continue
        yield from _node(element, _inherited(above, "base"), _inherited(above, "lang"))
        above.pop()
        if len(above) == 1:
            del above[0][:]  # what has been read need not stay in memory


def _inherited(above: list[ElementTree.Element], name: str) -> str:
    values = (element.get(f"{_XML}{name}") for element in reversed(above))
    return next((value for value in values if value is not None), "")


def _node(element: ElementTree.Element, base: str, language: str) -> Iterator[Statement]:
    about, name_here = element.get(f"{{{RDF}}}about"), element.get(f"{{{RDF}}}ID")
    if about is None and name_here is None:
        return
    uri = absolute(base, about if about is not None else f"#{name_here}")
    yield uri, f"{RDF}type", _address(element.tag)
    for name, value in element.attrib.items():
        yield uri, _address(name), Literal(value, language)
    for child in element:
        what = child.get(f"{{{RDF}}}resource")
        if what is not None:
            yield uri, _address(child.tag), absolute(base, what)
        elif child.text is not None and not len(child):
            spoken = child.get(f"{_XML}lang", language).lower()
            yield uri, _address(child.tag), Literal(child.text, spoken)


def _address(tag: str) -> str:
    return tag[1:].replace("}", "", 1) if tag.startswith("{") else tag
