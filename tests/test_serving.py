"""A served model ranks as the library does, whatever it is sent or becomes of its file."""

import builtins
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
import pytest
from scipy import sparse

from deltarank import (
    AdaBoostRanker,
    KernelLogisticRanker,
    LogisticRanker,
    PairwiseRanker,
    datasets,
    explain,
    save,
)
from deltarank.cli import main
from deltarank.datasets import Preparation, read
from deltarank.storage.prepared import Model

fastapi = pytest.importorskip("fastapi", reason="needs fastapi")
from fastapi.testclient import TestClient  # noqa: E402

from deltarank.serving.app import create_app  # noqa: E402
from deltarank.serving.examples import read_examples  # noqa: E402
from deltarank.serving.service import Limits, Service  # noqa: E402

COMMAND = str(Path(sys.executable).parent / "deltarank")
COLUMNS = ("description", "minutes", "season")


def as_item(row):
    return {name: row[name] for name in COLUMNS}


def write_recipes(path, rows):
    text = "".join(",".join(f'"{cell}"' for cell in row.values()) + "\n" for row in rows)
    path.write_text(",".join(rows[0]) + "\n" + text)


def fit_recipes(folder, seed, **options):
    write_recipes(folder / "train.csv", datasets.example_rows(200, seed=seed))
    train = read(folder / "train.csv")
    preparation = Preparation.fit(train, scale=True)
    sets = [{train.label_names[label] for label in row.indices} for row in train.Y]
    return Model(LogisticRanker(**options).fit(preparation.transform(train.X), sets), preparation)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models of recipes, and recipes to rank."""
    folder = tmp_path_factory.mktemp("served")
    fit_recipes(folder, 0, C=10.0).save(folder / "recipes.delta")
    fit_recipes(folder, 5, C=0.01).save(folder / "other.delta")
    write_recipes(folder / "rows.csv", datasets.example_rows(50, seed=1))
    return folder


@pytest.fixture(scope="module")
def client(folder):
    limits = Limits(rows=60, bytes=30_000, seconds=20.0)
    with TestClient(create_app(Service.load(folder / "recipes.delta", limits))) as client:
        yield client


def serve(ranker, preparation=None, **limits):
    n_features = ranker.n_features_in_
    model = Model(ranker, preparation or Preparation(n_features))
    return TestClient(create_app(Service(model, Limits(**limits))))


@pytest.fixture(scope="module")
def numbers():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 4))
    return X, (X @ generator.normal(size=(4, 6)) > 0.5).astype(int)


class TestRankings:
    def test_one_item_and_many_are_ranked_as_by_the_library(self, client, folder):
        model = Model.load(folder / "recipes.delta")
        X = model.preparation.transform(model.preparation.read(folder / "rows.csv").X)
        items = [as_item(row) for row in datasets.example_rows(50, seed=1)]
        many = client.post("/rank", json={"items": items, "top": 3})
        assert many.status_code == 200
        found = many.json()["rankings"]
        assert [ranking["labels"] for ranking in found] == model.ranker.rank(X, top=3).tolist()
        best = -np.sort(-model.ranker.decision_function(X), axis=1)[:, :3]
        np.testing.assert_allclose([ranking["scores"] for ranking in found], best, rtol=1e-9)
        one = client.post("/rank", json={"item": items[7], "top": 99}).json()["rankings"]
        assert one[0]["labels"] == model.ranker.rank(X[[7]])[0].tolist()

    def test_reasons_are_those_of_the_library_and_add_up(self, client, folder):
        model = Model.load(folder / "recipes.delta")
        item = as_item(datasets.example_rows(1, seed=1)[0])
        X = model.preparation.transform(model.preparation.read(folder / "rows.csv").X)[[0]]
        ranking = client.post("/rank", json={"item": item, "explain": True}).json()["rankings"][0]
        why = ranking["why"]
        assert [why["above"], why["below"]] == ranking["labels"][:2]
        names = model.preparation.feature_names()
        wanted = explain(model.ranker, X, *ranking["labels"][:2], feature_names=names)
        *_, difference = (reason["adds"] for reason in why["reasons"])
        assert difference == pytest.approx(ranking["scores"][0] - ranking["scores"][1])
        assert sum(reason["adds"] for reason in why["reasons"][:-1]) == pytest.approx(difference)
        assert why["reasons"][0]["feature"] == wanted.largest(1)[0][0]
        pair = client.post("/rank", json={"item": item, "explain": ["sweet", "soup"]}).json()
        assert pair["rankings"][0]["why"]["above"] == "sweet"

    @pytest.mark.parametrize(
        "ranker",
        [
            LogisticRanker(),
            PairwiseRanker(),
            AdaBoostRanker(n_stumps=10),
            KernelLogisticRanker(n_landmarks=20, gamma=0.1, C=1.0, random_state=0),
        ],
        ids=lambda ranker: type(ranker).__name__,
    )
    def test_numbers_come_as_lists_or_by_their_number(self, numbers, ranker):
        X, Y = numbers
        ranker.fit(X, Y)
        client = serve(ranker)
        as_list = client.post("/rank", json={"items": X[:5].tolist(), "top": 6}).json()
        assert [r["labels"] for r in as_list["rankings"]] == ranker.rank(X[:5]).tolist()
        by_number = [{"3": x} for x in X[:5, 3]]
        only_last = X[:5] * [0, 0, 0, 1]
        found = client.post("/rank", json={"items": by_number, "top": 6}).json()
        assert [r["labels"] for r in found["rankings"]] == ranker.rank(only_last).tolist()

    def test_many_features_stay_sparse(self, monkeypatch):
        monkeypatch.setattr("deltarank.serving.items.DENSE_CELLS", 100)
        generator = np.random.default_rng(0)
        X = sparse.random_array((60, 2000), density=0.01, format="csr", rng=generator)
        ranker = LogisticRanker().fit(X, np.eye(3, dtype=int)[np.arange(60) % 3])
        items = [{str(j): 1.5 for j in X[[i]].indices.tolist()} for i in range(20)]
        found = serve(ranker).post("/rank", json={"items": items, "top": 3}).json()
        X.data[:] = 1.5
        assert [r["labels"] for r in found["rankings"]] == ranker.rank(X[:20]).tolist()

    def test_names_of_a_data_frame_are_wanted_all(self, numbers):
        X, Y = numbers
        preparation = Preparation(4, names=("a", "b", "c", "d"))
        client = serve(LogisticRanker().fit(X, Y), preparation)
        item = dict(zip("dcba", X[0, ::-1], strict=True))
        found = client.post("/rank", json={"item": {**item, "unknown": "x"}}).json()["rankings"]
        assert found == client.post("/rank", json={"item": X[0].tolist()}).json()["rankings"]
        del item["b"]
        refused = client.post("/rank", json={"item": item})
        assert (refused.status_code, refused.json()["detail"]) == (
            422,
            "items[0] has no feature 'b'",
        )

    def test_missing_numbers_are_for_those_who_take_them(self, numbers):
        X, Y = numbers
        refused = serve(LogisticRanker().fit(X, Y)).post("/rank", json={"item": [1, None, 2, 3]})
        assert refused.status_code == 422
        assert refused.json()["detail"] == (
            "items[0], feature '1': a finite number is wanted; got null"
        )
        ranker = AdaBoostRanker(n_stumps=20).fit(np.where(X > 2, np.nan, X), Y)
        found = serve(ranker).post("/rank", json={"item": [1, None, 2, 3], "explain": True}).json()
        wanted = ranker.rank([[1, np.nan, 2, 3]], top=5)[0].tolist()
        assert found["rankings"][0]["labels"] == wanted


GOOD = {"description": "a hot soup", "minutes": 10, "season": None}
BAD = [
    ({}, "give either item or items"),
    ({"item": GOOD, "items": [GOOD]}, "give either item or items"),
    ({"items": []}, "a request must have from 1 to 60 items; got 0"),
    ({"items": [GOOD] * 61}, "a request must have from 1 to 60 items; got 61"),
    ({"items": GOOD}, "items: input should be a valid list"),
    ({"item": [1, 2, 3]}, "items[0] must be an object with the columns 'description', 'minutes'"),
    ({"item": "a hot soup"}, "must be an object with the columns"),
    ({"items": [GOOD, {"minutes": 1}]}, "items[1] has no column 'description'; null stands for"),
    ({"items": [GOOD, {**GOOD, "minutes": "soon"}]}, "items[1], column 'minutes': a number is"),
    ({"item": {**GOOD, "minutes": [1]}}, "column 'minutes': text, a number or null is wanted"),
    ({"item": {**GOOD, "minutes": 10**400}}, "column 'minutes': a number is wanted"),
    ({"item": GOOD, "top": 0}, "top: input should be greater than or equal to 1"),
    ({"item": GOOD, "top": "3"}, "top: input should be a valid integer"),
    ({"item": GOOD, "up": 3}, "up: extra inputs are not permitted"),
    ({"item": GOOD, "explain": 1}, "explain must be true, false or a list of two labels"),
    ({"item": GOOD, "explain": ["soup", "x"]}, "the label 'x', which the model does not have"),
    ({"items": [GOOD] * 21, "explain": True}, "explain is for at most 20 items; got 21"),
]


class TestRefusals:
    @pytest.mark.parametrize(("body", "words"), BAD, ids=lambda value: str(value)[:40])
    def test_what_is_wrong_is_said_in_a_line(self, client, body, words):
        answer = client.post("/rank", json=body)
        assert answer.status_code == 422
        assert words in answer.json()["detail"]
        assert "\n" not in answer.json()["detail"]

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"{", "the body is not JSON at character 1"),
            (b"", "the body: field required"),
            (b"\xff\xfe", ""),
            (b"[" * 9000, ""),
            (b'{"item": {"description": "x", "minutes": NaN, "season": null}}', None),
            (b'{"item": {"description": "x", "minutes": Infinity, "season": null}}', "infinity"),
        ],
    )
    def test_what_is_not_json_is_refused(self, client, content, words):
        answer = client.post("/rank", content=content, headers={"content-type": "application/json"})
        if words is None:  # NaN is a missing number, if somebody writes it
            assert answer.status_code == 200
        else:
            assert answer.status_code in (400, 422)
            assert words in answer.json()["detail"]

    def test_other_addresses_and_files_are_not_there(self, client):
        for path in ("/x", "/../recipes.delta", "/%2e%2e/recipes.delta", "/static/page.html"):
            assert client.get(path).status_code == 404
        assert client.get("/rank").status_code == 405
        assert client.post("/rank", json={"item": "recipes.csv"}).status_code == 422

    def test_too_many_bytes_are_refused_before_they_are_parsed(self, client, monkeypatch):
        def never(*_, **__):
            raise AssertionError("parsed")

        monkeypatch.setattr("json.loads", never)
        text = b'{"item": "' + b"x" * 30_000 + b'"}'
        said = client.post("/rank", content=text, headers={"content-type": "application/json"})
        assert said.status_code == 413
        unsaid = client.post(
            "/rank",
            content=(text[i : i + 1000] for i in range(0, len(text), 1000)),
            headers={"content-type": "application/json"},
        )
        monkeypatch.undo()
        assert unsaid.status_code == 413
        assert "at most 30000 bytes" in unsaid.json()["detail"]

    def test_a_kernel_says_that_it_cannot_explain(self, numbers):
        ranker = KernelLogisticRanker(n_landmarks=20, gamma=0.1, C=1.0, random_state=0)
        answer = serve(ranker.fit(*numbers)).post("/rank", json={"item": [0] * 4, "explain": True})
        assert answer.status_code == 422
        assert "explain is for linear and boosted rankers" in answer.json()["detail"]

    def test_ranking_that_takes_too_long_is_given_up(self, numbers, monkeypatch):
        client = serve(LogisticRanker().fit(*numbers), seconds=0.05)
        monkeypatch.setattr(Service, "rank", lambda *_: time.sleep(0.5))
        answer = client.post("/rank", json={"items": [[0] * 4] * 2})
        assert answer.status_code == 503
        assert "ranking took longer than 0.05 s" in answer.json()["detail"]

    def test_an_answer_has_so_many_labels_and_no_more(self, numbers):
        X, Y = numbers
        with serve(LogisticRanker().fit(X, Y), labels=10) as client:
            n_labels = Y.shape[1]
            body = {"items": [X[0].tolist()] * 10, "top": 10**9}
            refused = client.post("/rank", json=body)
            assert refused.status_code == 422
            assert f"at most 10 labels; 10 items with {n_labels} each" in refused.json()["detail"]
            assert client.post("/rank", json={**body, "top": 1}).status_code == 200

    @pytest.mark.parametrize("explain", [False, True])
    def test_finite_numbers_beyond_arithmetic_are_the_fault_of_their_item(self, numbers, explain):
        X, Y = numbers
        far = [1e308 * (-1) ** j for j in range(X.shape[1])]
        for ranker in (
            LogisticRanker(),
            KernelLogisticRanker(gamma=0.1, C=1.0, n_landmarks=10, random_state=0),
        ):
            if explain and isinstance(ranker, KernelLogisticRanker):
                continue
            with serve(ranker.fit(X, Y)) as client:
                body = {"items": [X[0].tolist(), far], "explain": explain}
                answer = client.post("/rank", json=body)
                assert answer.status_code == 422
                assert "items[1] cannot be ranked" in answer.json()["detail"]

    def test_a_large_answer_is_written_beside_the_event_loop(self, numbers, monkeypatch):
        X, Y = numbers
        threads = []
        plain = Service.rank_to_json

        def noted(*arguments):
            threads.append(threading.current_thread().name)
            return plain(*arguments)

        monkeypatch.setattr(Service, "rank_to_json", noted)
        with serve(LogisticRanker().fit(X, Y)) as client:
            assert client.post("/rank", json={"items": X[:2].tolist()}).status_code == 200
        assert threads[0].startswith("rank")


class TestDescription:
    def test_health_model_and_openapi(self, client):
        assert client.get("/health").json() == {"status": "ok"}
        about = client.get("/model").json()
        assert about["ranker"] == "LogisticRanker"
        assert [column["kind"] for column in about["columns"]] == ["text", "number", "category"]
        assert len(about["labels"]) == 11
        schema = client.get("/openapi.json").json()
        ways = {"/rank", "/health", "/model", "/metrics", "/annif", "/annif/suggest"}
        assert set(schema["paths"]) == ways
        assert "top" in schema["components"]["schemas"]["Rank"]["properties"]
        docs = client.get("/docs").text
        for path, operations in schema["paths"].items():
            for method in operations:
                assert f"<code>{method.upper()} {path}</code>" in docs
        for field in schema["components"]["schemas"]["Rank"]["properties"]:
            assert f"<code>{field}</code>" in docs

    @pytest.mark.parametrize("path", ["/", "/docs"])
    def test_pages_need_nothing_from_elsewhere(self, client, path):
        page = client.get(path)
        for reference in ("http:", "https:", "src=", "@import", "url("):
            assert reference not in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]

    def test_examples_are_rows_that_can_be_sent(self, client, folder, tmp_path, numbers):
        model = Model.load(folder / "recipes.delta")
        examples = read_examples(folder / "rows.csv", model.preparation)
        assert len(examples) == 20
        assert client.post("/rank", json={"items": list(examples)}).status_code == 200
        X, Y = numbers
        datasets.write_libsvm(tmp_path / "rows.svm", X.round(2), Y)
        examples = read_examples(tmp_path / "rows.svm", Preparation(4))
        ranker = LogisticRanker().fit(X, Y)
        found = serve(ranker).post("/rank", json={"items": list(examples), "top": 6}).json()
        assert [r["labels"] for r in found["rankings"]] == ranker.rank(X[:20].round(2)).tolist()


LIMITED_FILES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160))
os.execv(sys.argv[1], sys.argv[1:])
"""


def n_sockets(process):
    """Return how many sockets a process holds, of which one listens."""
    links = [os.readlink(link) for link in Path(f"/proc/{process}/fd").iterdir()]
    return sum(link.startswith("socket:") for link in links) - N_OWN_SOCKETS


# The one that listens, and a pair with which asyncio wakes itself.
N_OWN_SOCKETS = 3


class Server:
    """The command in a process of its own, at a free port."""

    def __init__(self, folder, *arguments, command=(COMMAND,), **environment):
        self.process = subprocess.Popen(
            [*command, "serve", *arguments, "--port", "0"],
            cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | environment,
        )  # fmt: skip
        self.said = self.process.stderr.readline()
        self.url = self.said.split()[-1]
        self.address = urlparse(self.url).netloc

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.out, self.err = self.process.communicate(timeout=30)

    def rank(self, connection, body):
        connection.request("POST", "/rank", json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.fixture(scope="module")
def server(folder):
    arguments = ("--examples", "rows.csv", "--max-bytes", "20000", "--timeout", "1.5")
    with Server(folder, "recipes.delta", *arguments) as server:
        yield server


class TestSocket:
    def test_a_model_that_is_replaced_or_damaged_is_still_the_one_that_was_loaded(
        self, folder, tmp_path
    ):
        model, other = ((folder / f"{n}.delta").read_bytes() for n in ("recipes", "other"))
        path = tmp_path / "m.delta"
        path.write_bytes(model)
        items = [as_item(row) for row in datasets.example_rows(8, seed=1)]
        answers, stop = [], threading.Event()
        with Server(tmp_path, "m.delta") as server:

            def ask():
                connection = http.client.HTTPConnection(server.address, timeout=20)
                while not stop.is_set():
                    answers.append(server.rank(connection, {"items": items}))
                connection.close()

            clients = [threading.Thread(target=ask) for _ in range(4)]
            for thread in clients:
                thread.start()
            (tmp_path / "new").write_bytes(other)
            for change in (
                lambda: os.replace(tmp_path / "new", path),
                lambda: path.write_bytes(other),  # in place
                lambda: path.write_bytes(b""),
                lambda: path.unlink(),
            ):
                before = len(answers)
                wait_until(lambda before=before: len(answers) > before + 20)
                change()
            before = len(answers)
            wait_until(lambda: len(answers) > before + 20)
            stop.set()
            for thread in clients:
                thread.join()
        assert len(answers) > 100
        assert all(answer == answers[0] for answer in answers)
        assert answers[0][0] == 200
        assert (server.out, server.err) == ("", "")

    def test_a_request_that_comes_too_slowly_is_given_up(self, server):
        host, port = server.address.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(
                b"POST /rank HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                b'content-length: 100\r\n\r\n{"item"'
            )
            answer = b"".join(iter(lambda: connection.recv(4096), b""))
        assert b"408" in answer.splitlines()[0]
        assert b"did not come within 1.5 s" in answer

    def test_a_request_that_says_it_is_too_large_is_answered_unread(self, server):
        host, port = server.address.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(
                b"POST /rank HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                b"content-length: 10000000000\r\n\r\n"
            )
            assert b"413" in connection.recv(4096).splitlines()[0]

    @pytest.mark.slow
    def test_idle_connections_neither_stay_nor_keep_others_out(self, folder):
        """More than there is room for, none of which ever sends a request."""
        limited = [sys.executable, "-c", LIMITED_FILES, COMMAND]
        with Server(folder, "recipes.delta", "--timeout", "2", command=limited) as server:
            host, port = server.address.split(":")
            idle = [socket.create_connection((host, int(port)), timeout=20) for _ in range(200)]
            idle[-1].sendall(
                b"POST /rank HTTP/1.1\r\nhost: localhost\r\n"
            )  # a head that never ends
            connection = http.client.HTTPConnection(server.address, timeout=20)
            assert server.rank(connection, {"item": GOOD})[0] == 200
            connection.close()
            wait_until(lambda: n_sockets(server.process.pid) == 0)
            connection = http.client.HTTPConnection(server.address, timeout=20)
            assert server.rank(connection, {"item": GOOD})[0] == 200
            connection.close()
            for socket_ in idle:
                socket_.close()
        assert server.err == ""

    def test_a_client_that_leaves_in_the_middle_harms_nobody(self, server):
        host, port = server.address.split(":")
        for _ in range(5):
            with socket.create_connection((host, int(port)), timeout=20) as connection:
                connection.sendall(
                    b"POST /rank HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50\r\n\r\n{"
                )
        connection = http.client.HTTPConnection(server.address, timeout=20)
        assert server.rank(connection, {"item": GOOD})[0] == 200
        connection.close()

    def test_mistakes_are_told_before_anything_is_served(self, folder, server, monkeypatch, capsys):
        monkeypatch.chdir(folder)
        Path("short.csv").write_text("minutes\n3\n")
        port = server.address.split(":")[1]
        for arguments, words in (
            (["absent.delta"], "absent.delta: No such file or directory"),
            (["recipes.delta", "--port", port], f"--port {port}: Address already in use"),
            (
                ["recipes.delta", "--host", "no.such.host.invalid"],
                "cannot listen at --host no.such",
            ),
            (["recipes.delta", "--examples", "short.csv"], "short.csv has no column 'description'"),
        ):
            monkeypatch.setattr(sys, "argv", ["deltarank", "serve", *arguments])
            with pytest.raises(SystemExit) as exit_:
                main()
            assert exit_.value.code == 1
            assert words in capsys.readouterr().err

    def test_the_extra_is_named_where_it_is_not_installed(self, folder, monkeypatch, capsys):
        given = builtins.__import__

        def without(name, *rest):
            if name == "uvicorn":
                raise ImportError(name)
            return given(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without)
        monkeypatch.setattr(sys, "argv", ["deltarank", "serve", str(folder / "recipes.delta")])
        with pytest.raises(SystemExit):
            main()
        assert "pip install 'deltarank[serve]'" in capsys.readouterr().err


def wait_until(condition):
    for _ in range(400):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


class TestPage:
    @pytest.mark.parametrize("size", [(1400, 900), (390, 800)], ids=["wide", "phone"])
    def test_an_example_is_ranked_with_bars_and_reasons(self, browser, server, folder, size):
        browser.set_window_size(*size)
        browser.get(server.url)
        wait_until(lambda: len(browser.find_elements("css selector", "#bars .bar")) == 11)
        assert browser.get_log("browser") == []
        model = Model.load(folder / "recipes.delta")
        X = model.preparation.transform(model.preparation.read(folder / "rows.csv").X)
        shown = [b.text for b in browser.find_elements("css selector", "#bars b")]
        assert shown == model.ranker.rank(X[:1])[0].tolist()
        widths = [i.size["width"] for i in browser.find_elements("css selector", ".track i")]
        assert widths == sorted(widths, reverse=True)
        assert widths[0] > 20
        assert (
            browser.find_element("id", "because").text == f"Why {shown[0]} stands above {shown[1]}"
        )
        assert len(browser.find_elements("css selector", ".reason")) > 4
        browser.find_elements("css selector", "#bars button")[4].click()
        wait_until(lambda: browser.find_element("id", "because").text.endswith(f"above {shown[4]}"))
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= browser.execute_script("return window.innerWidth")

    def test_text_that_is_typed_is_ranked_and_mistakes_are_shown(self, browser, server):
        browser.get(server.url)
        wait_until(lambda: browser.find_elements("css selector", "#bars .bar"))
        text = browser.find_element("css selector", "textarea")
        text.clear()
        text.send_keys("a fiery curry of chili <b>& chili</b>")
        browser.find_element("id", "go").click()
        first = "return document.querySelector('#bars b').textContent"
        wait_until(lambda: browser.execute_script(first) == "spicy")
        long = "word " * 5000
        browser.execute_script("document.querySelector('textarea').value = arguments[0]", long)
        browser.find_element("id", "go").click()
        wait_until(lambda: "at most 20000 bytes" in browser.find_element("id", "problem").text)

    @pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
    def test_the_page_follows_light_and_dark(self, browser, server, scheme, is_dark):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        browser.get(server.url)
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        brightness = sum(int(part) for part in colour[4:-1].split(",")[:3]) / 3
        assert (brightness < 100) == is_dark

    def test_names_that_look_like_html_are_shown_as_they_are(self, browser, tmp_path):
        X, Y = np.eye(2), [{"<img src=x onerror=alert(1)>"}, {"</script><b>b</b>"}]
        save(LogisticRanker().fit(X, Y), tmp_path / "m")
        with Server(tmp_path, "m") as server:
            browser.get(server.url)
            browser.find_element("id", "numbers").send_keys("0, 1")
            browser.find_element("id", "go").click()
            wait_until(lambda: browser.find_elements("css selector", "#bars b"))
            shown = [b.text for b in browser.find_elements("css selector", "#bars b")]
        assert shown == ["</script><b>b</b>", "<img src=x onerror=alert(1)>"]

    def test_vectors_are_typed_as_lists_and_their_mean_stands_for_none(self, browser, tmp_path):
        rows = [{"v": [i % 2, i % 3], "tags": ["odd" if i % 2 else "even"]} for i in range(30)]
        (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        train = read(tmp_path / "t.jsonl", labels="tags")
        ranker = LogisticRanker().fit(train.X, [set(row["tags"]) for row in rows])
        Model(ranker, Preparation.fit(train, scale=True)).save(tmp_path / "m")

        def first():
            return browser.execute_script("return document.querySelector('#bars b').textContent")

        with Server(tmp_path, "m") as server:
            browser.get(server.url)
            wait_until(lambda: browser.find_elements("css selector", "textarea"))
            for typed, wanted in (("[1, 0]", "odd"), ("0 1", "even")):
                field = browser.find_element("css selector", "textarea")
                field.clear()
                field.send_keys(typed)
                browser.find_element("id", "go").click()
                wait_until(lambda: browser.find_elements("css selector", "#bars b"))
                wait_until(lambda wanted=wanted: first() == wanted)
            field.clear()
            browser.find_element("id", "go").click()
            wait_until(lambda: browser.find_element("id", "problem").text == "")
            field.send_keys("[1]")
            browser.find_element("id", "go").click()
            wanted = "a vector of 2 numbers is wanted; got 1 numbers"
            wait_until(lambda: wanted in browser.find_element("id", "problem").text)

    def test_bars_of_many_labels_are_powers_of_ten(self, browser, tmp_path):
        generator = np.random.default_rng(0)
        X = generator.normal(size=(200, 3))
        hidden = X @ generator.normal(size=(3, 25)) - np.linspace(0, 8, 25)
        Y = (hidden + generator.logistic(size=hidden.shape) > 0).astype(int)
        ranker = LogisticRanker(weight="uniform").fit(X, Y)
        save(ranker, tmp_path / "m")
        with Server(tmp_path, "m") as server:
            browser.get(server.url)
            browser.find_element("id", "numbers").send_keys("0.5, 0, 0")
            browser.find_element("id", "go").click()
            wait_until(lambda: browser.find_elements("css selector", "#bars b"))
            tracks = browser.find_elements("css selector", ".track")
            bars = browser.find_elements("css selector", ".track i")
            widths = [bar.size["width"] / track.size["width"]
                      for bar, track in zip(bars, tracks, strict=True)]  # fmt: skip
            assert browser.find_element("id", "scale").is_displayed()
        chances = np.sort(ranker.predict_proba([[0.5, 0, 0]])[0])[::-1][:15]
        assert 1e-4 < chances[-1] < 0.1
        np.testing.assert_allclose(widths, 1 + np.log10(chances) / 4, atol=0.01)


def test_the_example_asks_a_server_of_its_own(run_example):
    ranking = run_example("plot_serve_and_ask")["ranking"]
    assert ranking["labels"][0] == "spicy"
    assert ranking["why"]["above"] == "spicy"
