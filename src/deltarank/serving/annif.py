"""What Annif, the tool of libraries for subject indexing, asks of a server: texts in, subjects out.

Its ``http`` backend sends a form with `text` and `limit` to an address that ends in ``/suggest``,
and asks for the project at the address without that.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from deltarank.core.losses import sigmoid
from deltarank.serving.items import ItemError
from deltarank.serving.service import Service
from deltarank.serving.skos import is_skos, read_concepts

LIMIT = 10


@dataclass(frozen=True)
class Vocabulary:
    """The address and the name of each subject, by either of them.

    Examples
    --------
    >>> vocabulary = Vocabulary({"cats": ("http://example.org/c1", "cats")})
    >>> vocabulary.subject("cats"), vocabulary.subject("dogs"), Vocabulary().subject("dogs")
    (('http://example.org/c1', 'cats'), None, ('dogs', 'dogs'))
    """

    subjects: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Vocabulary":
        """Read a vocabulary: SKOS, or Annif's simple form of <address>, a tab, a name per line.

        In SKOS a subject is known by its names in all languages; two subjects of one name are
        known by their addresses, and the first of them by that name.
        """
        subjects: dict[str, tuple[str, str]] = {}
        if is_skos(path):
            for concept in read_concepts(path):
                subjects[concept.uri] = concept.uri, concept.name
                for name in concept.names:
                    subjects.setdefault(name, (concept.uri, name))
            return cls(subjects)
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                uri, tab, rest = line.rstrip("\r\n").partition("\t")
                if not line.strip():
                    continue
                if not tab or not (uri.startswith("<") and uri.endswith(">")):
                    raise ValueError(
                        f"{path}, line {number}: <address>, a tab and a name are wanted; got "
                        f"{line.strip()!r:.60} (the name of a file in SKOS ends in "
                        f".ttl, .nt, .rdf or .xml)"
                    )
                subject = uri[1:-1], rest.split("\t")[0].strip()
                subjects[subject[0]] = subjects[subject[1]] = subject
        return cls(subjects)

    def subject(self, label: Any) -> tuple[str, str] | None:
        """Return the address and the name of a label: Annif fails on one that it does not know.

        Without any subjects a label stands for both.
        """
        return self.subjects.get(str(label)) if self.subjects else (str(label), str(label))

    def n_unknown(self, labels: Iterable[Any]) -> int:
        """Return how many labels are no subjects."""
        return sum(self.subject(label) is None for label in labels)


def suggest(
    service: Service, vocabulary: Vocabulary, n_unknown: int, body: bytes
) -> dict[str, Any]:
    """Return subjects for the text of a form, best first, as Annif has them."""
    try:
        form = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise ItemError("the body must be a form in UTF-8 with a field text") from None
    if "text" not in form:
        raise ItemError("the form must have a field text")
    limit = form.get("limit", [str(LIMIT)])[0]
    if not limit.isdecimal() or len(limit) > 9 or int(limit) < 1:
        raise ItemError(f"limit must be a positive integer; got {limit!r:.40}")
    item: dict[str, Any] = dict.fromkeys(column["name"] for column in _columns(service))
    item[_text_column(service)] = form["text"][0]
    [ranking] = service.rank([item], int(limit) + n_unknown, False)
    chances = ranking.get("probabilities")
    if chances is None:  # between 0 and 1, and in the order of the scores
        chances = sigmoid(ranking["scores"]).tolist()
    subjects = map(vocabulary.subject, ranking["labels"])
    pairs = zip(subjects, chances, strict=True)
    known = [(it, score) for it, score in pairs if it is not None][: int(limit)]
    return {"results": [{"uri": u, "label": n, "score": s} for (u, n), s in known]}


def project(service: Service) -> dict[str, Any]:
    """Describe the model as Annif describes a project."""
    about = service.about()
    return {
        "project_id": "deltarank",
        "name": f"DeltaRank {about['ranker']}, {len(about['labels'])} subjects",
        "backend": {"backend_id": "deltarank"},
        "is_trained": True,
    }


def _columns(service: Service) -> list[dict[str, Any]]:
    return service.about()["columns"] or []


def _text_column(service: Service) -> str:
    texts = [column["name"] for column in _columns(service) if column["kind"] == "text"]
    if len(texts) != 1:
        raise ItemError(
            f"the model must have one column of text to suggest by; it has {len(texts)}"
        )
    return str(texts[0])
