"""Statements of a Turtle or N-Triples file, as far as vocabularies use the language.

A reader of our own: rdflib would be a dependency for a few lines of syntax, and holds a graph of a
vocabulary in many times its size. What is left out is what has no name: blank nodes and lists are
read over.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urljoin

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_NAME = r"(?:\\.|[^\s<>\"'\[\](){};,^@#.\\])"
_TOKEN = re.compile(
    rf"""
    (?P<skip>\s+|\#[^\n]*)
    |(?P<iri><[^<>\s]*>)
    |(?P<long>\"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*''')
    |(?P<short>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<directive>@prefix\b|@base\b|(?i:prefix|base)(?=\s))
    |(?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
    |(?P<mark>\^\^|[;,.\[\]()])
    |(?P<name>{_NAME}+(?:\.+{_NAME}+)*)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def absolute(base: str, address: str) -> str:
    """Return an address, which may be relative to another.

    Examples
    --------
    >>> absolute("http://example.org/a", "b"), absolute("http://example.org/a", "urn:b#")
    ('http://example.org/b', 'urn:b#')
    """
    # `urljoin` would take an empty fragment off, which prefixes end in.
    return address if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", address) else urljoin(base, address)


class Literal(NamedTuple):
    """A text, and its language if it has one."""

    text: str
    language: str | None = None


# Subject, predicate, object; the address of a node without a name is empty.
Statement = tuple[str, str, str | Literal]


class Token(NamedTuple):
    """A piece of the text, of what kind, and where it begins."""

    kind: str
    text: str
    at: int


def statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a text; one that is not understood is an error with its line.

    Examples
    --------
    >>> text = '@prefix ex: <http://example.org/> . ex:c1 a ex:Cat ; ex:name "cat"@en, "chat"@fr .'
    >>> for statement in statements(text):
    ...     print(statement[1:])
    ('http://www.w3.org/1999/02/22-rdf-syntax-ns#type', 'http://example.org/Cat')
    ('http://example.org/name', Literal(text='cat', language='en'))
    ('http://example.org/name', Literal(text='chat', language='fr'))
    """
    return _Reader(text).statements()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.prefixes, self.base = text, dict[str, str](), ""
        self.tokens = self._tokens()
        self.token = next(self.tokens)

    def _tokens(self) -> Iterator[Token]:
        at = 0
        while at < len(self.text):
            token = _TOKEN.match(self.text, at)
            if token is None:
                raise self._error(at)
            if token.lastgroup != "skip":
                yield Token(str(token.lastgroup), token[0], at)
            at = token.end()
        while True:
            yield Token("end", "", at)

    def _error(self, at: int, wanted: str = "") -> ValueError:
        line = self.text.count("\n", 0, at) + 1
        rest = self.text[at : at + 30].split("\n")[0]
        wanted = f"{wanted} is wanted" if wanted else "this is not understood"
        return ValueError(f"line {line}: {wanted}; got {rest!r}")

    def _take(self) -> Token:
        token, self.token = self.token, next(self.tokens)
        return token

    def _take_mark(self, mark: str) -> None:
        if self.token.text != mark:
            raise self._error(self.token.at, repr(mark))
        self._take()

    def statements(self) -> Iterator[Statement]:
        while self.token.kind != "end":
            if self.token.kind == "directive":
                self._directive()
                continue
            is_nameless = self.token.text == "["
            subject = self._node()
            if not (is_nameless and self.token.text == "."):
                yield from self._about(subject)
            self._take_mark(".")

    def _directive(self) -> None:
        word = self._take().text
        if word.lower().endswith("prefix"):
            name = self._take()
            if not name.text.endswith(":"):
                raise self._error(name.at, "a prefix such as skos:")
            self.prefixes[name.text[:-1]] = self._address()
        else:
            self.base = self._address()
        if word.startswith("@"):
            self._take_mark(".")

    def _about(self, subject: str) -> Iterator[Statement]:
        """Yield the statements up to the end of what is said of a subject."""
        while True:
            if self.token.text == "a":
                self._take()
                predicate = f"{RDF}type"
            else:
                predicate = self._node()
            while True:
                object_ = self._object()
                if subject:
                    yield subject, predicate, object_
                if self.token.text != ",":
                    break
                self._take()
            if self.token.text != ";":
                return
            while self.token.text == ";":
                self._take()
            if self.token.text in (".", "]"):
                return

    def _object(self) -> str | Literal:
        if self.token.kind not in ("long", "short"):
            return self._node()
        token = self._take()
        marks = 3 if token.kind == "long" else 1
        text = _unescaped(token.text[marks:-marks])
        if self.token.kind == "language":
            return Literal(text, self._take().text[1:].lower())
        if self.token.text == "^^":
            self._take()
            self._node()
        return Literal(text)

    def _node(self) -> str:
        """Return the address that comes next, or nothing for a node without one."""
        if self.token.text == "[":
            self._take()
            if self.token.text != "]":
                for _ in self._about(""):
                    pass
            self._take_mark("]")
            return ""
        if self.token.text == "(":
            self._take()
            while self.token.text != ")":
                self._object()
            self._take()
            return ""
        return self._address()

    def _address(self) -> str:
        token = self._take()
        if token.kind == "iri":
            return absolute(self.base, _unescaped(token.text[1:-1]))
        if token.kind != "name":
            raise self._error(token.at, "an address")
        prefix, colon, local = token.text.partition(":")
        if prefix == "_" or not colon:  # nodes without names; numbers, true and false
            return "" if colon else token.text
        if prefix not in self.prefixes:
            raise self._error(token.at, f"a known prefix, not {prefix}:,")
        return self.prefixes[prefix] + re.sub(r"\\(.)", r"\1", local)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def letter(escape: re.Match[str]) -> str:
        what = escape[1]
        return chr(int(what[1:], 16)) if len(what) > 1 else _LETTERS.get(what, what)

    return _ESCAPE.sub(letter, text)
