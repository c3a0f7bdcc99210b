"""Probabilities and sets, from a file to an answer over HTTP."""

import csv
import io
import json
from itertools import chain, combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from deltarank import (
    AdaBoostRanker,
    CalibratedRanker,
    LogisticRanker,
    LogisticRankerCV,
    PairwiseRanker,
    StagedSearchCV,
    datasets,
    load,
)
from deltarank.cli import main
from deltarank.cli.calibrating import settled
from deltarank.storage.prepared import Model

X, Y = datasets.SyntheticModel.random(n_labels=4, random_state=0).sample(400, random_state=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chances")
    for name, seed in (("train", 0), ("rows", 1)):
        rows = datasets.example_rows(300 if name == "train" else 30, seed=seed)
        text = "".join(",".join(f'"{cell}"' for cell in row.values()) + "\n" for row in rows)
        (folder / f"{name}.csv").write_text(",".join(rows[0]) + "\n" + text)
    run("fit", folder / "train.csv", "--calibrate", "-m", folder / "calibrated.delta")
    run("fit", folder / "train.csv", "--C", "1", "-m", folder / "plain.delta")
    return folder


def run(*arguments):
    import sys
    from contextlib import redirect_stderr, redirect_stdout

    out, told, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["deltarank", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(told):
            main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    return code, out.getvalue(), told.getvalue()


class TestPredictProba:
    @pytest.mark.parametrize(
        "ranker",
        [
            LogisticRanker(weight="uniform"),
            LogisticRanker(weight="uniform", positive_cost=3.0),
            StagedSearchCV(AdaBoostRanker(weight="uniform"), rounds=[30], cv=2),
        ],
        ids=["plain", "positive_cost", "staged"],
    )
    def test_it_is_there_and_true_on_average_where_rows_weigh_alike(self, ranker):
        kept = (Y.sum(axis=1) > 0) & (Y.sum(axis=1) < 4)  # given a pair to rank
        ranker.fit(X[kept], Y[kept])
        assert_allclose(ranker.predict_proba(X[kept]).mean(axis=0), Y[kept].mean(axis=0), atol=0.06)

    def test_where_it_would_not_be_true_the_error_says_why(self):
        for ranker, why in [
            (LogisticRanker(), "it has weight='rank'; use weight='uniform', or wrap"),
            (LogisticRanker(weight="uniform", balance=0.5), "a balance of 0.5 moves each row's"),
            (PairwiseRanker(weight="uniform"), "tell pairs of labels apart, and are no chances"),
        ]:
            ranker.fit(X[:60], Y[:60])
            assert not hasattr(ranker, "predict_proba")
            with pytest.raises(AttributeError) as raised:
                ranker.predict_proba(X)
            assert why in str(raised.value.__cause__)
        classes = LogisticRanker(weight="uniform").fit(X, Y.argmax(axis=1))
        assert not hasattr(classes, "predict_proba")


class TestCommands:
    def test_the_ranking_is_that_of_the_ranker_that_was_chosen(self, folder):
        calibrated = load(folder / "calibrated.delta")
        assert isinstance(calibrated, CalibratedRanker)
        assert isinstance(calibrated.ranker, LogisticRanker)
        run("fit", folder / "train.csv", "-m", folder / "tuned.delta")
        tuned = load(folder / "tuned.delta")
        assert calibrated.ranker.C == tuned.C_
        assert_allclose(calibrated.ranker_.coef_, tuned.coef_, atol=1e-3)

    def test_probabilities_and_sets_are_those_of_the_library(self, folder):
        options = ("--probabilities", "--sets", "f1", "--top", "11")
        code, out, _ = run("rank", folder / "calibrated.delta", folder / "rows.csv", *options)
        assert code == 0
        lines = [json.loads(line) for line in out.splitlines()]
        model = Model.load(folder / "calibrated.delta")
        rows = model.preparation.transform(model.preparation.read(folder / "rows.csv").X)
        chances = model.ranker.predict_proba(rows)
        place = {label: j for j, label in enumerate(model.classes.tolist())}
        for row, line in enumerate(lines):
            own = [chances[row, place[label]] for label in line["labels"]]
            assert_allclose(line["probabilities"], own, atol=1e-6)
            assert line["labels"] == model.ranker.rank(rows[[row]])[0].tolist()

    def test_a_set_has_the_largest_expected_f1(self, folder):
        """By enumeration of all sets and all outcomes of independent labels."""
        _, out, _ = run(
            "rank", folder / "calibrated.delta", folder / "rows.csv", "--sets", "f1", "--top", "11",
            "--probabilities",
        )  # fmt: skip
        line = json.loads(out.splitlines()[0])
        # Labels of a chance near 0 cannot be in the best set, nor change it by more than that.
        likely = [
            (n, p) for n, p in zip(line["labels"], line["probabilities"], strict=True) if p > 0.02
        ]
        names, chances = [n for n, _ in likely], np.array([p for _, p in likely])
        outcomes = np.array(list(np.ndindex(*[2] * len(names))))
        odds = np.prod(np.where(outcomes, chances, 1 - chances), axis=1)
        subsets = chain.from_iterable(
            combinations(range(len(names)), k) for k in range(len(names) + 1)
        )

        def expected(subset):
            marks = np.isin(np.arange(len(names)), subset)
            total = outcomes.sum(axis=1) + marks.sum()
            both = (outcomes & marks).sum(axis=1)
            return odds @ np.where(total == 0, 1.0, 2 * both / np.maximum(total, 1))

        values = {frozenset(names[j] for j in subset): expected(subset) for subset in subsets}
        assert values[frozenset(line["set"])] > max(values.values()) - 0.02

    def test_csv_has_columns_for_both(self, folder):
        options = ("--probabilities", "--sets", "likely", "--format", "csv", "--top", "11")
        _, out, _ = run("rank", folder / "calibrated.delta", folder / "rows.csv", *options)
        rows = list(csv.DictReader(io.StringIO(out)))
        assert list(rows[0]) == ["row", "place", "label", "score", "probability", "in_set"]
        assert all((float(r["probability"]) > 0.5) == (r["in_set"] == "1") for r in rows)

    def test_a_model_without_probabilities_says_how_to_get_them(self, folder):
        code, _, told = run("rank", folder / "plain.delta", folder / "rows.csv", "--probabilities")
        assert code == 1
        assert "fit it with --calibrate, or with --weight uniform" in told


def test_a_settled_ranker_has_what_was_chosen():
    chosen = LogisticRankerCV(Cs=[0.1, 1.0], weight="recall", cv=2, random_state=0).fit(X, Y)
    again = settled(chosen)
    assert (again.C, again.weight) == (chosen.C_, "recall")


class TestServer:
    @pytest.fixture
    def client(self, folder):
        pytest.importorskip("fastapi", reason="needs fastapi")
        from fastapi.testclient import TestClient

        from deltarank.serving.app import create_app
        from deltarank.serving.service import Limits, Service

        service = Service.load(folder / "calibrated.delta", Limits())
        with TestClient(create_app(service)) as client:
            yield client

    def test_answers_hold_probabilities_and_if_asked_sets(self, client, folder):
        columns = ("description", "minutes", "season")
        items = [{name: row[name] for name in columns} for row in datasets.example_rows(5, seed=1)]
        together = client.post("/rank", json={"items": items, "top": 3, "sets": "f1"}).json()
        for item, ranking in zip(items, together["rankings"], strict=True):
            alone = client.post("/rank", json={"item": item, "top": 3, "sets": "f1"}).json()
            assert alone["rankings"][0] == ranking
        assert client.get("/model").json()["probabilities"] is True
        model = Model.load(folder / "calibrated.delta")
        rows = model.preparation.transform(model.preparation.read(folder / "rows.csv").X)
        first = together["rankings"][0]
        place = model.classes.tolist().index(first["labels"][0])
        assert_allclose(first["probabilities"][0], model.ranker.predict_proba(rows)[0, place])

    def test_other_sets_are_refused(self, client):
        item = {"description": "a", "minutes": 1, "season": "winter"}
        answer = client.post("/rank", json={"item": item, "sets": "best"})
        assert (answer.status_code, answer.json()["detail"]) == (
            422, "sets must be one of f1, likely, or null",
        )  # fmt: skip
