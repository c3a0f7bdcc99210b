"""Models in MLflow: what comes back ranks as before, by columns or by numbers."""

import csv

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import label_ranking_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deltarank import LogisticRanker, load, save
from deltarank.datasets import Preparation, read
from deltarank.datasets.example import example_rows
from deltarank.storage.prepared import Model

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
pd = pytest.importorskip("pandas")
# Hints of MLflow about schemas, and what its own dependencies warn of.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def ours(monkeypatch, tmp_path):
    """Our flavour, with runs in a folder of the test."""
    from deltarank import mlflow as flavour

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")
    return flavour


@pytest.fixture(scope="module")
def recipes(tmp_path_factory):
    """A model file of the commands' kind, and the table it was fitted to."""
    folder = tmp_path_factory.mktemp("recipes")
    rows = example_rows(120, 0)
    with (folder / "recipes.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    data = read(folder / "recipes.csv")
    preparation = Preparation.fit(data, scale=True)
    ranker = LogisticRanker().fit(preparation.transform(data.X), data.Y)
    ranker.classes_ = np.array(data.label_names)
    Model(ranker, preparation).save(folder / "recipes.delta")
    return folder / "recipes.delta", pd.DataFrame(rows)


def test_a_model_file_takes_the_columns_of_its_table(ours, recipes, tmp_path):
    file, frame = recipes
    example = frame.drop(columns="tags").head(3)
    ours.save_model(file, tmp_path / "m", input_example=example)
    served = mlflow.pyfunc.load_model(str(tmp_path / "m"))
    assert served.metadata.signature.inputs.input_names() == ["description", "minutes", "season"]
    found = served.predict(frame.drop(columns="tags"), params={"top": 2})
    model = Model.load(file)
    X = model.preparation.transform(model.preparation.encoder.transform(frame))
    assert [list(row) for row in found["labels"]] == model.ranker.rank(X, top=2).tolist()
    assert_allclose(np.stack(found["scores"]), -np.sort(-model.scores(X), axis=1)[:, :2])
    assert len(served.predict(example)["labels"][0]) == 5
    with pytest.raises(Exception, match="minutes"):
        served.predict(example.drop(columns="minutes"))


def test_a_ranker_is_logged_and_comes_back_whole(ours, tmp_path):
    X, Y = np.array([[30.0], [2.0], [15.0]]), [{"beach"}, {"museum"}, {"beach", "museum"}]
    ranker = LogisticRanker().fit(X, Y)
    with mlflow.start_run():
        logged = ours.log_model(ranker, "weather")
    assert_array_equal(ours.load_model(logged.model_uri).coef_, ranker.coef_)
    found = mlflow.pyfunc.load_model(logged.model_uri).predict(X)
    assert [list(row) for row in found["labels"]] == ranker.rank(X).tolist()


def test_a_pipeline_takes_what_its_first_step_takes(ours, tmp_path):
    frame = pd.DataFrame({"warm": [30.0, 2.0, 15.0], "rain": [0.1, 0.9, 0.5]})
    pipeline = make_pipeline(StandardScaler(), LogisticRanker())
    pipeline.fit(frame, [{"beach"}, {"museum"}, {"beach", "museum"}])
    ours.save_model(pipeline, tmp_path / "m", input_example=frame)
    found = mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(frame)
    scores = pipeline.decision_function(frame)
    assert_allclose(np.stack(found["scores"]), -np.sort(-scores, axis=1))
    assert found["labels"][0][0] == "beach"


def test_rank_metrics_are_those_of_the_scores(ours, recipes, tmp_path):
    file, frame = recipes
    ours.save_model(file, tmp_path / "m")
    classes = load(file).classes_
    ranked = mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(
        frame.drop(columns="tags"), params={"top": len(classes)}
    )
    sets = [text.split(", ") if text else [] for text in frame["tags"]]
    measured = mlflow.models.evaluate(
        data=frame.assign(ranked=ranked["labels"], true=sets),
        predictions="ranked",
        targets="true",
        extra_metrics=ours.rank_metrics(classes, ["rank_loss", "precision_at_1"]),
    ).metrics
    model = Model.load(file)
    X = model.preparation.transform(model.preparation.encoder.transform(frame))
    Y = np.array([[label in row for label in classes] for row in sets])
    scores = model.scores(X)
    assert_allclose(measured["rank_loss/value"], label_ranking_loss(Y, scores), atol=1e-12)
    first = Y[np.arange(len(Y)), scores.argmax(axis=1)].mean()
    assert_allclose(measured["precision_at_1/value"], first)


def test_mistakes_are_named(ours, recipes, tmp_path):
    with pytest.raises(ValueError, match="unknown metric 'losses'"):
        ours.rank_metrics(["a"], ["losses"])
    ours.save_model(recipes[0], tmp_path / "m")
    frame = recipes[1].drop(columns="tags")
    with pytest.raises(ValueError, match="top must be a positive integer; got 0"):
        mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(frame, params={"top": 0})
    path = tmp_path / "ranker.delta"
    save(LogisticRanker().fit([[0.0], [1.0]], [[1, 0], [0, 1]]), path)
    assert ours.save_model(path, tmp_path / "n") is None
