"""A server under load while its model file is replaced: answers of one model, never a mixture."""

import http.client
import json
import os
import threading
import time

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="needs fastapi")
from deltarank import LogisticRanker, save
from test_serving import Server

pytestmark = pytest.mark.slow
N_CLIENTS = 4
N_STARTS = 6
ITEMS = np.random.default_rng(1).normal(size=(20, 30)).round(3)


@pytest.fixture(scope="module")
def rankers():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 30))
    return [
        LogisticRanker(C=C).fit(X, (X @ generator.normal(size=(30, 25)) > 1).astype(int))
        for C in (10.0, 0.01)
    ]


def answers_of(ranker):
    """Return what a server of this model must say, by way of the library."""
    scores = ranker.decision_function(ITEMS)
    order = ranker.rank(ITEMS, top=5)
    return [
        {"labels": labels.tolist(), "scores": scores[row][labels].tolist()}
        for row, labels in enumerate(order)
    ]


def is_of(answer, expected):
    status, body = answer
    if status != 200:
        return False
    found = body["rankings"]
    return [r["labels"] for r in found] == [r["labels"] for r in expected] and np.allclose(
        [r["scores"] for r in found], [r["scores"] for r in expected], rtol=1e-9
    )


class Clients:
    """Threads that ask whichever server is current, without end."""

    def __init__(self, server):
        self.server, self.answers = server, []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(N_CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _ask(self):
        while not self._stop.is_set():
            server = self.server
            connection = http.client.HTTPConnection(server.address, timeout=20)
            while self.server is server and not self._stop.is_set():
                try:
                    answer = server.rank(connection, {"items": ITEMS.tolist()})
                except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
                    answer = 0, repr(error)
                self.answers.append((server, answer))
            connection.close()

    def more(self, n=300):
        wanted = len(self.answers) + n
        ends = time.monotonic() + 60
        while len(self.answers) < wanted and time.monotonic() < ends:
            time.sleep(0.01)

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def test_the_file_is_replaced_and_servers_take_turns(tally, tmp_path, rankers):
    """The way of docs/deploy.md: replace the file, start a second server, switch."""
    counts = tally("server", "replaced, then switched")
    path, expected = tmp_path / "m.delta", [answers_of(ranker) for ranker in rankers]
    save(rankers[0], path)
    served = {}
    with Server(tmp_path, "m.delta") as first:
        served[first] = expected[0]
        clients = Clients(first)
        clients.more()
        save(rankers[1], path)  # an atomic rename
        clients.more()
        with Server(tmp_path, "m.delta") as second:
            served[second] = expected[1]
            clients.more()
            clients.server = second
            clients.more()
            for damage in (path.read_bytes()[:100], b""):
                path.write_bytes(damage)  # in place, by somebody who does not know better
                clients.more()
            path.unlink()
            clients.more()
            clients.stop()
    for server, answer in clients.answers:
        counts.judge(is_of(answer, served[server]), answer)
    assert all(server.err == "" for server in served)


def test_a_server_that_starts_while_the_file_is_replaced(tally, tmp_path, rankers):
    counts = tally("server", "started amid replacements")
    path, expected = tmp_path / "m.delta", [answers_of(ranker) for ranker in rankers]
    save(rankers[0], path)
    stop = threading.Event()

    def replace():
        number = 0
        while not stop.is_set():
            number += 1
            save(rankers[number % 2], path)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(N_STARTS):
            with Server(tmp_path, "m.delta") as server:
                connection = http.client.HTTPConnection(server.address, timeout=20)
                found = [server.rank(connection, {"items": ITEMS.tolist()}) for _ in range(20)]
                connection.close()
            model = [all(is_of(answer, one) for answer in found) for one in expected]
            counts.judge(sum(model) == 1, "answers of both models, or of neither")
    finally:
        stop.set()
        thread.join()
    assert os.listdir(tmp_path) == ["m.delta"]
