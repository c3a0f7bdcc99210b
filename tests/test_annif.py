"""What Annif asks of the server, by its own client where it can be installed."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deltarank import LogisticRanker, save
from deltarank.datasets import Preparation, read
from deltarank.storage.prepared import Model

fastapi = pytest.importorskip("fastapi", reason="needs fastapi")
from fastapi.testclient import TestClient  # noqa: E402

from deltarank.serving.annif import Vocabulary  # noqa: E402
from deltarank.serving.app import create_app  # noqa: E402
from deltarank.serving.service import Limits, Service  # noqa: E402

ROWS = [("a fiery curry of chili", "spicy"), ("cake with sugar", "sweet"), ("chili cake", "odd")]
TSV = "<http://example.org/s1>\tspicy\n<http://example.org/s2>\tsweet\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("annif")
    lines = [f"{text},{label}" for text, label in ROWS * 10]
    (folder / "records.csv").write_text("\n".join(["title,tags", *lines]) + "\n")
    (folder / "subjects.tsv").write_text(TSV)
    data = read(folder / "records.csv", text=["title"])
    preparation = Preparation.fit(data, scale=False)
    ranker = LogisticRanker(C=10).fit(preparation.transform(data.X), [{t} for _, t in ROWS * 10])
    Model(ranker, preparation).save(folder / "subjects.delta")
    return folder


@pytest.fixture(scope="module")
def client(folder):
    service = Service.load(folder / "subjects.delta", Limits())
    vocabulary = Vocabulary.read(folder / "subjects.tsv")
    with TestClient(create_app(service, vocabulary=vocabulary)) as client:
        yield client


def test_a_form_is_answered_with_addresses_names_and_scores(client):
    answer = client.post("/annif/suggest", data={"text": "chili curry", "limit": "2"})
    first, second = answer.json()["results"]
    assert (first["uri"], first["label"]) == ("http://example.org/s1", "spicy")
    assert (second["uri"], second["label"]) == ("http://example.org/s2", "sweet")  # odd is none
    assert 1 > first["score"] > second["score"] > 0
    assert client.get("/annif").json()["is_trained"] is True


def test_mistakes_are_told(client, folder, tmp_path):
    for form, words in [
        ({"limit": "2"}, "the form must have a field text"),
        ({"text": "a", "limit": "none"}, "limit must be a positive integer; got 'none'"),
    ]:
        answer = client.post("/annif/suggest", data=form)
        assert (answer.status_code, answer.json()["detail"]) == (422, words)
    (tmp_path / "bad.tsv").write_text(TSV + "spicy\n")
    with pytest.raises(ValueError, match=r"bad\.tsv, line 3: <address>, a tab and a name"):
        Vocabulary.read(tmp_path / "bad.tsv")
    save(LogisticRanker().fit([[0.0], [1.0]], [{"a"}, {"b"}]), tmp_path / "numbers")
    with TestClient(create_app(Service.load(tmp_path / "numbers", Limits()))) as numbers:
        answer = numbers.post("/annif/suggest", data={"text": "a"})
        assert "must have one column of text" in answer.json()["detail"]


@pytest.mark.slow
def test_annif_itself_gets_the_subjects(folder, tmp_path):
    annif = os.environ.get("DELTARANK_ANNIF")
    if annif is None:
        subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
        install = [tmp_path / "venv/bin/pip", "install", "-q", "annif"]
        if subprocess.run(install, capture_output=True).returncode:
            pytest.skip("Annif cannot be installed here")
        annif = tmp_path / "venv/bin/annif"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "projects.cfg").write_text(
        "[delta]\nname=DeltaRank\nlanguage=en\nbackend=http\nvocab=subjects\n"
        f"endpoint=http://127.0.0.1:{port}/annif/suggest\n"
    )
    command = [Path(sys.executable).parent / "deltarank", "serve", folder / "subjects.delta"]
    command += ["--vocabulary", folder / "subjects.tsv", "--port", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        server.stderr.readline()
        time.sleep(1)
        load = [annif, "load-vocab", "subjects", folder / "subjects.tsv", "-L", "en"]
        subprocess.run(load, cwd=tmp_path, check=True)
        found = subprocess.run(
            [annif, "suggest", "delta"], input="chili curry", text=True, capture_output=True,
            cwd=tmp_path,
        )  # fmt: skip
    finally:
        server.terminate()
        server.communicate()
    assert found.returncode == 0, found.stderr
    uri, label, score = found.stdout.splitlines()[0].split("\t")
    assert (uri, label) == ("<http://example.org/s1>", "spicy")
    assert 0 < float(score) < 1
