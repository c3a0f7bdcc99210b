"""Vocabularies in SKOS: Turtle, N-Triples and RDF/XML, beside rdflib where it is installed."""

import pytest

from deltarank.serving.annif import Vocabulary
from deltarank.serving.skos import read_concepts

TURTLE = '''@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
PREFIX owl: <http://www.w3.org/2002/07/owl#>
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@base <http://example.org/> .
@prefix : <http://example.org/v.1#> .

<scheme> a skos:ConceptScheme ; skos:prefLabel "All"@en
  ; skos:note [ a :Note ; skos:note "x ] ." ] .
<c1> a skos:Concept ;  # a cat; "not a string
  skos:prefLabel "kissa"@fi , "Cats"@en-GB , """Chats
 "grands\\u00e9" et petits"""@fr ;
  skos:altLabel "moggy"@en ; skos:notation 12.5, true, "7"^^xsd:integer ; .
:c.2 a skos:Concept , :Thing ; skos:prefLabel 'dogs' ; skos:broader <c1>, _:b1 .
:c%2D3 a skos:Concept ; skos:prefLabel "old"@en ; owl:deprecated true .
[] a skos:Concept ; skos:prefLabel "nobody"@en .
[ skos:prefLabel "nor this" ; a skos:Concept ] .
<list> skos:memberList ( <c1> :c.2 "text" ( ) ) .
<c4> skos:prefLabel "no concept" .
<c5> a skos:Concept ; skos:prefLabel "Cats"@sv .
'''
XML = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY v "http://example.org/v.1#">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xml:base="http://example.org/"
  xmlns:skos="http://www.w3.org/2004/02/skos/core#" xmlns:owl="http://www.w3.org/2002/07/owl#">
  <skos:ConceptScheme rdf:about="scheme"><skos:prefLabel>All</skos:prefLabel></skos:ConceptScheme>
  <skos:Concept rdf:about="c1" xml:lang="en">
    <skos:prefLabel xml:lang="fi">kissa</skos:prefLabel>
    <skos:prefLabel>Cats &amp; co</skos:prefLabel>
    <skos:narrower><skos:Concept rdf:about="&v;c.2" skos:prefLabel="dogs"/></skos:narrower>
  </skos:Concept>
  <rdf:Description rdf:about="http://example.org/c5">
    <rdf:type rdf:resource="http://www.w3.org/2004/02/skos/core#Concept"/>
    <skos:prefLabel xml:lang="sv">katter</skos:prefLabel>
  </rdf:Description>
  <skos:Concept rdf:about="c3"><skos:prefLabel xml:lang="en">old</skos:prefLabel>
    <owl:deprecated>true</owl:deprecated></skos:Concept>
</rdf:RDF>
"""
NTRIPLES = (
    "<http://example.org/c1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
    "<http://www.w3.org/2004/02/skos/core#Concept> .\n"
    "<http://example.org/c1> <http://www.w3.org/2004/02/skos/core#prefLabel> "
    '"tab\\there"@en .\n'
)
FILES = {"v.ttl": TURTLE, "v.rdf": XML, "v.nt": NTRIPLES}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_turtle(folder):
    found = {concept.uri: concept for concept in read_concepts(folder / "v.ttl")}
    assert list(found) == [
        "http://example.org/c1", "http://example.org/v.1#c.2", "http://example.org/c5",
    ]  # fmt: skip
    cats = found["http://example.org/c1"]
    assert cats.name == "Cats"
    assert cats.names == ("kissa", "Cats", 'Chats "grandsé" et petits')
    assert found["http://example.org/v.1#c.2"].name == "dogs"


def test_rdf_xml(folder):
    found = {concept.uri: concept for concept in read_concepts(folder / "v.rdf")}
    assert {uri.rpartition("/")[2]: it.name for uri, it in found.items()} == {
        "v.1#c.2": "dogs", "c1": "Cats & co", "c5": "katter",
    }  # fmt: skip
    assert found["http://example.org/c1"].names == ("kissa", "Cats & co")


@pytest.mark.parametrize("name", FILES)
def test_as_rdflib_reads_it(folder, name):
    rdflib = pytest.importorskip("rdflib", reason="rdflib is not installed")
    from rdflib.namespace import OWL, RDF, SKOS

    graph = rdflib.Graph().parse(folder / name)
    expected = {}
    for subject in graph.subjects(RDF.type, SKOS.Concept):
        labels = {" ".join(str(label).split()) for label in graph.objects(subject, SKOS.prefLabel)}
        if (subject, OWL.deprecated, None) not in graph and isinstance(subject, rdflib.URIRef):
            expected[str(subject)] = labels
    assert {it.uri: set(it.names) for it in read_concepts(folder / name)} == expected


def test_labels_are_addresses_or_names_in_any_language(folder):
    vocabulary = Vocabulary.read(folder / "v.ttl")
    assert vocabulary.subject("http://example.org/c1") == ("http://example.org/c1", "Cats")
    assert vocabulary.subject("kissa") == ("http://example.org/c1", "kissa")
    assert vocabulary.subject("Cats") == ("http://example.org/c1", "Cats")
    assert vocabulary.subject("old") is vocabulary.subject("nobody") is None


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.ttl", "<a> <b> <c> .\n<a> ex:b <c> .", "line 2: a known prefix, not ex:, is wanted"),
        ("a.ttl", "<a> <b> <c>\n<d> <e> <f> .", "line 2: '.' is wanted"),
        ("a.ttl", '<a> <b> "open .\n', "line 1: this is not understood"),
        ("a.ttl", "<a> <b> ", "line 1: an address is wanted; got ''"),
        ("a.ttl", "@prefix a <b> .", "a prefix such as skos: is wanted"),
        ("a.ttl", "<a> <b> (<c> ", "an address is wanted"),
        ("a.ttl", "<a> <b> <c> .", "no skos:Concept has a skos:prefLabel here"),
        ("a.rdf", "<a>\n<b></a>", "line 2: not XML"),
        ("a.ttl", b"<a> <b> '\xff' .", "the text is not UTF-8"),
    ],
)
def test_what_is_no_vocabulary_is_named(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=name) as caught:
        read_concepts(path)
    assert words in str(caught.value)
