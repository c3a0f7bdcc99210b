"""Transformers and calibration in ONNX graphs, beside what scikit-learn and the library compute."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from deltarank import AdaBoostRanker, CalibratedRanker, LogisticRanker, export_onnx

onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")

GENERATOR = np.random.default_rng(2)
N = 200
X = GENERATOR.normal(size=(N, 5)).astype(np.float32).astype(np.float64)
X[3] = 0
GAPS = np.where(GENERATOR.random((N, 5)) < 0.2, np.nan, X)
GRADES = np.column_stack([GENERATOR.integers(4, size=N), GENERATOR.integers(2, size=N)]) * 1.0
Y = (X[:, :3] + GENERATOR.normal(size=(N, 3)) > 0).astype(int)
FRAME = pd.DataFrame(
    {
        "size": GAPS[:, 0],
        "kind": GENERATOR.choice(["cat", "dog", "été", "rare"], N, p=[0.4, 0.3, 0.25, 0.05]),
        "grade": GRADES[:, 0],
        "colour": GENERATOR.choice(["red", "blue"], N),
    }
)
STEPS = {
    "StandardScaler": (StandardScaler(), X),
    "MinMaxScaler": (MinMaxScaler((-1, 2)), X),
    "MinMaxScaler, clipped": (MinMaxScaler(clip=True), X),
    "MaxAbsScaler": (MaxAbsScaler(), X),
    "RobustScaler": (RobustScaler(), X),
    "Normalizer l1": (Normalizer("l1"), X),
    "Normalizer l2": (Normalizer(), X),
    "Normalizer max": (Normalizer("max"), X),
    "SimpleImputer": (SimpleImputer(), GAPS),
    "SimpleImputer that tells": (SimpleImputer(strategy="median", add_indicator=True), GAPS),
    "OneHotEncoder of numbers": (OneHotEncoder(drop="first"), GRADES),
    "OrdinalEncoder of numbers": (OrdinalEncoder(min_frequency=60), GRADES),
    "PCA": (PCA(3, whiten=True), X),
    "TruncatedSVD": (TruncatedSVD(2, random_state=0), X),
    "VarianceThreshold": (VarianceThreshold(0.95), X),
    "FeatureUnion": (FeatureUnion([("a", StandardScaler()), ("b", PCA(2))]), X),
    "ColumnTransformer": (
        ColumnTransformer([("n", StandardScaler(), [0, 2])], remainder="passthrough"),
        X,
    ),
    "Pipeline": (make_pipeline(SimpleImputer(), StandardScaler(), PCA(2)), GAPS),
}


def answers(path, inputs):
    session = onnxruntime.InferenceSession(path)
    return dict(
        zip([o.name for o in session.get_outputs()], session.run(None, inputs), strict=True)
    )


def sorted_scores(found):
    """Return the scores of labels in the order of the labels."""
    return np.take_along_axis(found["scores"], np.argsort(found["label_indices"]), axis=1)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("double", [False, True])
def test_a_transformer_does_in_the_graph_what_it_does_in_scikit_learn(tmp_path, name, double):
    step, rows = STEPS[name]
    model = make_pipeline(step, LogisticRanker()).fit(rows, Y)
    export_onnx(model, tmp_path / "r.onnx", double=double)
    kind, close = (np.float64, 1e-10) if double else (np.float32, 2e-4)
    found = answers(tmp_path / "r.onnx", {"X": rows.astype(kind)})
    assert found["scores"].dtype == kind
    assert_allclose(sorted_scores(found), model.decision_function(rows), rtol=close, atol=close)


def test_selected_features_are_those_of_scikit_learn(tmp_path):
    y = Y[:, 0]
    model = make_pipeline(SelectKBest(k=2), LogisticRanker()).fit(X, y)
    export_onnx(model, tmp_path / "r.onnx", double=True)
    found = answers(tmp_path / "r.onnx", {"X": X})
    assert_allclose(sorted_scores(found)[:, 1], model.decision_function(X), rtol=1e-10)


@pytest.mark.parametrize("options", [{}, {"drop": "first"}, {"min_frequency": 20}])
def test_a_table_of_numbers_and_names_goes_in_column_by_column(tmp_path, options):
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["size"]),
        (OneHotEncoder(handle_unknown="ignore", **options), ["kind", "colour"]),
        ("passthrough", ["grade"]),
    )
    model = make_pipeline(columns, LogisticRanker()).fit(FRAME, Y)
    export_onnx(model, tmp_path / "r.onnx")
    rows = FRAME.copy()
    rows.loc[:5, "kind"] = "cat"
    inputs = {
        name: rows[[name]].to_numpy(object if rows[name].dtype.kind not in "fi" else np.float32)
        for name in rows
    }
    found = answers(tmp_path / "r.onnx", inputs)
    wanted = model.decision_function(rows)
    assert_allclose(sorted_scores(found), wanted, rtol=1e-4, atol=1e-4)
    meta = onnxruntime.InferenceSession(tmp_path / "r.onnx").get_modelmeta().custom_metadata_map
    assert json.loads(meta["features"]) == ["size", "kind", "grade", "colour"]


def test_a_category_that_was_never_seen_is_none_of_them(tmp_path):
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["kind"]))
    model = make_pipeline(columns, LogisticRanker()).fit(FRAME, Y)
    export_onnx(model, tmp_path / "r.onnx")
    rows = pd.DataFrame({"size": 0.0, "kind": ["unicorn"], "grade": 0.0, "colour": "red"})
    inputs = {"kind": rows[["kind"]].to_numpy(object)}
    inputs |= {name: rows[[name]].to_numpy(np.float32) for name in ("size", "grade")}
    inputs["colour"] = np.zeros((1, 1), np.float32)  # nothing asks what it is
    found = answers(tmp_path / "r.onnx", inputs)
    assert_allclose(sorted_scores(found), model.decision_function(rows), rtol=1e-5)


@pytest.mark.parametrize("unknown", [-1, np.nan])
def test_unknown_categories_have_the_number_that_the_encoder_says(tmp_path, unknown):
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=unknown)
    columns = make_column_transformer((encoder, ["kind", "grade"]), ("passthrough", ["size"]))
    model = make_pipeline(columns, AdaBoostRanker(n_stumps=5)).fit(FRAME, Y)
    export_onnx(model, tmp_path / "r.onnx")
    rows = FRAME.head(9).copy()
    rows.loc[:3, "kind"], rows.loc[2:5, "grade"] = "unicorn", 77.0
    inputs = {"kind": rows[["kind"]].to_numpy(object), "colour": np.zeros((9, 1), np.float32)}
    inputs |= {name: rows[[name]].to_numpy(np.float32) for name in ("size", "grade")}
    wanted = model.decision_function(rows)
    assert_allclose(sorted_scores(answers(tmp_path / "r.onnx", inputs)), wanted, atol=1e-5)


def test_a_number_that_no_category_is_gives_nan_where_the_encoder_would_refuse(tmp_path):
    model = make_pipeline(OrdinalEncoder(), LogisticRanker()).fit(GRADES, Y)
    export_onnx(model, tmp_path / "r.onnx")
    found = answers(tmp_path / "r.onnx", {"X": np.array([[7.0, 0.0]], np.float32)})
    assert np.isnan(found["scores"]).all()


@pytest.mark.parametrize("method", ["isotonic", "platt"])
@pytest.mark.parametrize("double", [False, True])
def test_probabilities_come_with_the_ranking(tmp_path, method, double):
    marks = np.column_stack([Y, np.zeros(N, int), np.ones(N, int)])
    ranker = CalibratedRanker(
        make_pipeline(StandardScaler(), AdaBoostRanker(n_stumps=9)),
        method=method,
        cv=2,
        random_state=0,
    ).fit(X, marks)
    export_onnx(ranker, tmp_path / "r.onnx", 4, double=double)
    kind, close = (np.float64, 1e-10) if double else (np.float32, 1e-3)
    found = answers(tmp_path / "r.onnx", {"X": X.astype(kind)})
    wanted = np.take_along_axis(ranker.predict_proba(X), found["label_indices"], axis=1)
    assert found["label_indices"].tolist() == ranker.rank(X, top=4).tolist()
    assert_allclose(found["probabilities"], wanted, atol=close)
    assert wanted.max() == 1


def test_thresholds_of_stumps_send_numbers_of_float32_where_they_went(tmp_path):
    """Neighbouring float32 numbers, and a threshold between them that float32 does not hold."""
    low = np.float32(0.1)
    high = np.nextafter(low, np.float32(1))
    rows = np.array([[low], [high]] * 10, dtype=np.float64)
    ranker = AdaBoostRanker(n_stumps=1).fit(rows, np.array([[1, 0], [0, 1]] * 10))
    for threshold in (float(low), (float(low) + float(high)) / 2):
        ranker.thresholds_ = np.full_like(ranker.thresholds_, threshold)
        export_onnx(ranker, tmp_path / "r.onnx", 1)
        found = answers(tmp_path / "r.onnx", {"X": rows.astype(np.float32)})["label_indices"]
        assert found.ravel().tolist() == ranker.rank(rows, top=1).ravel().tolist() == [0, 1] * 10


def test_what_a_graph_cannot_do_is_told_by_name(tmp_path):
    for step, rows, message in [
        (FunctionTransformer(np.abs), X, "FunctionTransformer with a function cannot be"),
        (SimpleImputer(missing_values=0.0), X, "must fill NaN by numbers"),
        (OneHotEncoder(handle_unknown="infrequent_if_exist"), GRADES, "handle_unknown='error' or"),
        (OneHotEncoder(), GAPS[:, :1].round(), "missing values as a category"),
        (ColumnTransformer([("n", MaxAbsScaler(), [0])], transformer_weights={"n": 2.0}), X,
         "ColumnTransformer with weights"),
        (FeatureUnion([("n", MaxAbsScaler())], transformer_weights={"n": 2.0}), X,
         "FeatureUnion with weights"),
    ]:  # fmt: skip
        model = make_pipeline(step, LogisticRanker()).fit(rows, Y)
        with pytest.raises(ValueError, match=message):
            export_onnx(model, tmp_path / "r.onnx")
    by_chance = CalibratedRanker(LogisticRanker(), cv=2, rank_by_probability=True).fit(X, Y)
    with pytest.raises(ValueError, match="rank_by_probability=True cannot be exported"):
        export_onnx(by_chance, tmp_path / "r.onnx")
    assert list(tmp_path.iterdir()) == []
