"""Whom a server answers, what every answer carries, and what is counted and logged of it."""

import base64
import json
import math
import os
import re
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from deltarank import LogisticRanker, save
from deltarank.cli import main
from deltarank.datasets import Preparation
from deltarank.storage.prepared import Model

fastapi = pytest.importorskip("fastapi", reason="needs fastapi")
from fastapi.testclient import TestClient  # noqa: E402

from deltarank.serving.access import LOOPBACK, Access  # noqa: E402
from deltarank.serving.app import create_app  # noqa: E402
from deltarank.serving.request_log import RequestLog  # noqa: E402
from deltarank.serving.service import Limits, Service  # noqa: E402
from test_serving import Server  # noqa: E402

TOKEN = "kept-between-us"
PATHS = ("/", "/docs", "/openapi.json", "/model", "/metrics", "/health", "/nowhere")


def make_service(**limits):
    ranker = LogisticRanker().fit(np.eye(2), [{"beach"}, {"museum"}])
    return Service(Model(ranker, Preparation(2)), Limits(**limits))


def make_client(access=None, log=None, **limits):
    app = create_app(make_service(**limits), access, log)
    return TestClient(app, raise_server_exceptions=False)


def basic(password):
    return "Basic " + base64.b64encode(f"somebody:{password}".encode()).decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    save(make_service().model.ranker, folder / "m.delta")
    return folder


class TestHosts:
    @pytest.mark.parametrize(
        ("hosts", "host", "known"),
        [
            (LOOPBACK, "localhost", True),
            (LOOPBACK, "LOCALHOST:8000", True),
            (LOOPBACK, "localhost.", True),
            (LOOPBACK, "127.0.0.1:80", True),
            (LOOPBACK, "[::1]:8000", True),
            (LOOPBACK, "[0:0:0:0:0:0:0:1]", True),
            (LOOPBACK, "elsewhere.example", False),
            (LOOPBACK, "localhost.elsewhere.example", False),
            (LOOPBACK, "elsewhere.example:localhost", False),
            (LOOPBACK, "192.168.0.4", False),
            (LOOPBACK, "", False),
            ((*LOOPBACK, "0.0.0.0"), "192.168.0.4:8000", True),
            ((*LOOPBACK, "::"), "[fe80::7]:8000", True),
            ((*LOOPBACK, "0.0.0.0"), "elsewhere.example", False),
            ((*LOOPBACK, "0.0.0.0"), "1.2.3.4.elsewhere.example", False),
            ((*LOOPBACK, "Rank.example"), "rank.example:443", True),
            (("*",), "elsewhere.example", True),
        ],
    )
    def test_a_page_whose_name_is_made_to_point_here_is_not_answered(self, hosts, host, known):
        client = make_client(Access(hosts))
        answer = client.get("/model", headers={"host": host})
        assert answer.status_code == (200 if known else 421)
        if not known:
            detail = answer.json()["detail"]
            assert "names no host" in detail or f"{host!r}; allow it by --allow-host" in detail
        assert client.get("/health", headers={"host": host}).status_code == 200

    def test_a_host_is_refused_before_its_body_is_read(self):
        client = make_client(Access(LOOPBACK), bytes=10)
        answer = client.post("/rank", content=b"x" * 100, headers={"host": "elsewhere.example"})
        assert answer.status_code == 421
        assert answer.headers["connection"] == "close"


class TestToken:
    @pytest.mark.parametrize("path", sorted({*PATHS, "/rank"} - {"/health"}))
    def test_nothing_but_health_is_told_without_the_token(self, path):
        client = make_client(Access(token=TOKEN))
        for method in ("GET", "POST", "HEAD", "OPTIONS"):
            answer = client.request(method, path)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Basic ")
        assert client.get("/health").status_code == 200

    @pytest.mark.parametrize(
        ("authorization", "granted"),
        [
            (f"Bearer {TOKEN}", True),
            (f"bearer  {TOKEN} ", True),
            (basic(TOKEN), True),
            (f"Bearer {TOKEN}x", False),
            (f"Bearer {TOKEN[:-1]}", False),
            ("Bearer ", False),
            ("Bearer", False),
            (TOKEN, False),
            (f"Digest {TOKEN}", False),
            (basic("other"), False),
            (basic(""), False),
            ("Basic %%%", False),
            ("Basic " + base64.b64encode(TOKEN.encode()).decode(), False),
            ("Basic " + base64.b64encode(b":\xff").decode(), False),
        ],
    )
    def test_the_token_is_wanted_whole(self, authorization, granted):
        client = make_client(Access(token=TOKEN))
        answer = client.get("/model", headers={"authorization": authorization})
        assert answer.status_code == (200 if granted else 401)

    def test_digests_are_compared_in_constant_time(self, monkeypatch):
        compared = []
        monkeypatch.setattr("hmac.compare_digest", lambda *pair: compared.append(pair) or True)
        for given in ("x", TOKEN, "x" * 1000):
            assert Access(token=TOKEN).is_granted(f"Bearer {given}")
        assert {len(text) for pair in compared for text in pair} == {32}

    @pytest.mark.parametrize("token", ["", " ", "two words", "tokén", "a\n"])
    def test_a_token_that_no_header_could_hold_is_refused(self, token):
        with pytest.raises(ValueError, match="printable ASCII characters without spaces"):
            Access(token=token)

    def test_the_token_is_not_shown(self):
        assert TOKEN not in repr(Access(token=TOKEN))


def assert_policy(headers):
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


class TestEveryAnswer:
    def test_pages_answers_and_refusals_have_the_policy(self, monkeypatch):
        access = Access(LOOPBACK, TOKEN)
        client = make_client(access, bytes=100)
        good = {"host": "localhost", "authorization": f"Bearer {TOKEN}"}
        answers = [client.get(path, headers=good) for path in PATHS]
        answers += [
            client.post("/rank", json={"item": [1, 0]}, headers=good),
            client.post("/rank", json={"item": [1]}, headers=good),
            client.post("/rank", content=b"x" * 200, headers=good),
            client.put("/rank", headers=good),
            client.get("/model", headers={"host": "elsewhere"}),
            client.get("/model", headers={"host": "localhost"}),
            client.head("/health"),
        ]
        monkeypatch.setattr(Service, "rank", lambda *_: 1 / 0)
        answers.append(client.post("/rank", json={"item": [1, 0]}, headers=good))
        found = {answer.status_code for answer in answers}
        assert found == {200, 401, 404, 405, 413, 421, 422, 500}
        for answer in answers:
            assert_policy(answer.headers)

    def test_health_answers_head(self):
        answer = make_client().head("/health")
        assert (answer.status_code, answer.content) == (200, b"")

    def test_too_many_at_once_are_told_so(self, monkeypatch):
        begun, go_on = threading.Event(), threading.Event()

        def rank(*_):
            begun.set()
            go_on.wait(9)
            return []

        items = [[1, 0], [0, 1]]
        with make_client(requests=1) as client:
            monkeypatch.setattr(Service, "rank", rank)
            first = threading.Thread(target=lambda: client.post("/rank", json={"items": items}))
            first.start()
            assert begun.wait(20)
            refused = client.get("/health")
            go_on.set()
            first.join()
            assert client.get("/health").status_code == 200
        assert refused.status_code == 503
        assert refused.json()["detail"] == "1 requests are being answered; try again later"
        assert_policy(refused.headers)


SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="[^"\\\n]*",?)*)\})? (\S+)')


def parse_metrics(text):
    """Read Prometheus' text format, version 0.0.4, as its documentation defines it."""
    assert text.endswith("\n")
    kinds, samples = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            labels = tuple(re.findall(r'([a-z]+)="([^"]*)"', labels or ""))
            family = re.sub("_(bucket|sum|count)$", "", name) if name not in kinds else name
            assert family in kinds
            assert (name, labels) not in samples
            samples[name, labels] = float(value)
    return kinds, samples


class TestMetrics:
    def test_requests_items_and_times_are_counted(self):
        client = make_client()
        client.post("/rank", json={"items": [[1, 0], [0, 1], [1, 1]]})
        client.post("/rank", json={"item": [1]})
        client.get("/health")
        answer = client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        kinds, samples = parse_metrics(answer.text)
        counts = "deltarank_http_requests_total"
        for method, path, status in (
            ("POST", "/rank", "200"),
            ("POST", "/rank", "422"),
            ("GET", "/health", "200"),
        ):
            assert samples[counts, (("method", method), ("path", path), ("status", status))] == 1
        assert samples["deltarank_items_ranked_total", ()] == 3
        assert samples["deltarank_http_requests_in_progress", ()] == 1  # this one
        took = "deltarank_http_request_duration_seconds"
        assert kinds[took] == "histogram"
        buckets = [
            (float(dict(labels)["le"]), value)
            for (name, labels), value in samples.items()
            if name == f"{took}_bucket" and ("path", "/rank") in labels
        ]
        assert buckets == sorted(buckets)
        assert buckets[-1] == (math.inf, 2)
        assert samples[f"{took}_count", (("path", "/rank"),)] == 2
        assert 0 < samples[f"{took}_sum", (("path", "/rank"),)] < 20

    def test_clients_cannot_make_it_grow(self):
        client = make_client()
        for i in range(50):
            client.request(f"METHOD{i}", f'/{i}"}}%0a')
        _, samples = parse_metrics(client.get("/metrics").text)
        counted = {k: v for k, v in samples.items() if k[0] == "deltarank_http_requests_total"}
        labels = (("method", "other"), ("path", "other"), ("status", "404"))
        assert counted == {("deltarank_http_requests_total", labels): 50}


class TestRequestLog:
    def test_a_line_of_json_per_request_holds_neither_token_nor_query_nor_body(self, tmp_path):
        path = tmp_path / "requests.jsonl"
        path.write_text("kept\n")
        log = RequestLog.open(path, pytest.fail)
        client = make_client(Access(token=TOKEN), log)
        headers = {"authorization": f"Bearer {TOKEN}"}
        body = client.post("/rank?secret", json={"item": [1, 0]}, headers=headers).content
        client.get("/%1b[2J%0a" + "x" * 9000)
        kept, *lines = path.read_text().splitlines()
        assert kept == "kept"
        first, second = map(json.loads, lines)
        assert list(first) == ["time", "client", "method", "path", "status", "bytes", "seconds"]
        assert (first["method"], first["path"], first["status"]) == ("POST", "/rank", 200)
        assert first["bytes"] == len(body)
        assert (second["status"], len(second["path"])) == (401, 200)
        assert not re.search(rf"{TOKEN}|secret|[^\n -~]", path.read_text())

    def test_a_disk_that_is_full_ends_the_log_and_not_the_server(self):
        said = []
        client = make_client(log=RequestLog.open(Path("/dev/full"), said.append))
        assert [client.get("/health").status_code for _ in range(3)] == [200] * 3
        assert said == ["requests are no longer logged: No space left on device"]

    def test_a_pipe_that_nobody_reads_is_an_error_and_no_wait(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="No such device"):
            RequestLog.open(tmp_path / "pipe", pytest.fail)


class TestCommand:
    @pytest.fixture
    def serve(self, folder, monkeypatch):
        """Run the command up to where it would wait for requests; return a client of its server."""
        monkeypatch.chdir(folder)
        apps = []

        def keep(server, sockets):
            apps.append(server.config.app)
            sockets[0].close()

        monkeypatch.setattr("uvicorn.Server.run", keep)

        def serve(*arguments):
            command = ["deltarank", "serve", "m.delta", "--port", "0", *arguments]
            monkeypatch.setattr(sys, "argv", command)
            with pytest.raises(SystemExit) as exit_:
                main()
            assert not exit_.value.code
            return TestClient(apps.pop())

        return serve

    def test_hosts_are_the_local_ones_and_those_allowed(self, serve):
        client = serve("--allow-host", "rank.example")
        for host, status in (
            ("localhost", 200),
            ("127.0.0.1:8000", 200),
            ("rank.example", 200),
            ("elsewhere.example", 421),
        ):
            assert client.get("/model", headers={"host": host}).status_code == status

    @pytest.mark.parametrize("way", ["option", "file", "environment"])
    def test_the_token_comes_from_an_option_a_file_or_the_environment(
        self, serve, folder, monkeypatch, way
    ):
        (folder / "token").write_text(f"{TOKEN}\n")
        if way == "environment":
            monkeypatch.setenv("DELTARANK_TOKEN", TOKEN)
        given = {"option": ["--token", TOKEN], "file": ["--token-file", "token"]}.get(way, [])
        client = serve(*given, "--request-log", "requests.jsonl")
        for headers, status in (({}, 401), ({"authorization": f"Bearer {TOKEN}"}, 200)):
            answer = client.get("/model", headers={"host": "localhost", **headers})
            assert answer.status_code == status
        logged = (folder / "requests.jsonl").read_text().splitlines()
        assert [json.loads(line)["status"] for line in logged[-2:]] == [401, 200]

    @pytest.mark.parametrize(
        ("arguments", "warned"),
        [
            ((), False),
            (("--host", "0.0.0.0"), True),
            (("--host", "0.0.0.0", "--token", TOKEN), False),
        ],
    )
    def test_an_open_address_without_a_token_is_warned_about(
        self, serve, capsys, arguments, warned
    ):
        serve(*arguments)
        serving, *rest = capsys.readouterr().err.splitlines()
        assert serving.startswith("serving m.delta at http://")
        assert (
            rest
            == ["anybody who reaches this address is answered: --token asks for a token"][
                : int(warned)
            ]
        )

    @pytest.mark.parametrize(
        ("arguments", "variable", "words"),
        [
            ([], "", "the token must be one or more printable"),
            (["--token", ""], None, "the token must be one or more printable"),
            (["--token-file", "empty"], None, "the token must be one or more printable"),
            (["--token-file", "absent"], None, "absent: No such file or directory"),
            (["--token", "a", "--token-file", "empty"], None, "exclude each other"),
            (["--request-log", "absent/log"], None, "absent/log: No such file or directory"),
        ],
    )
    def test_a_token_that_is_not_there_is_told_and_nothing_served(
        self, folder, monkeypatch, capsys, arguments, variable, words
    ):
        monkeypatch.chdir(folder)
        (folder / "empty").write_text("\n")
        if variable is not None:
            monkeypatch.setenv("DELTARANK_TOKEN", variable)
        monkeypatch.setattr(sys, "argv", ["deltarank", "serve", "m.delta", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        assert exit_.value.code in (1, 2)
        assert words in capsys.readouterr().err


class TestSocket:
    @pytest.fixture
    def server(self, folder):
        with Server(folder, "m.delta", "--request-log", "-") as server:
            yield server

    def connect(self, server):
        host, port = server.address.split(":")
        return socket.create_connection((host, int(port)), timeout=20)

    def test_what_is_not_http_is_refused_with_the_policy(self, server):
        with self.connect(server) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        status, *lines = answer.partition("\r\n\r\n")[0].split("\r\n")
        assert status == "HTTP/1.1 400 Bad Request"
        assert_policy(dict(line.split(": ", 1) for line in lines))

    def test_a_request_that_is_being_answered_outlives_the_signal_to_stop(self, server):
        body = b'{"item": [1, 0]}'
        head = f"POST /rank HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
        head += "content-type: application/json\r\nexpect: 100-continue\r\n\r\n"
        with self.connect(server) as connection:
            connection.sendall(head.encode())
            # The server asks for the body, so it is at work on the request.
            assert connection.recv(4096).startswith(b"HTTP/1.1 100")
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            connection.sendall(body)
            answer = connection.recv(4096)
        assert b" 200 " in answer.splitlines()[0]
        out, err = server.process.communicate(timeout=20)
        assert [json.loads(line)["path"] for line in out.splitlines()] == ["/rank"]
        assert (server.process.returncode, err) == (-signal.SIGTERM, "")
