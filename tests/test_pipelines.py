"""Pipelines of transformers and a ranker where a ranker may stand."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from deltarank import (
    CalibratedRanker,
    ConformalRanker,
    LogisticRanker,
    MetricRanker,
    explain,
    load,
    save,
    top_features,
)
from deltarank.core.labels import label_sets

N = 240
GENERATOR = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "size": np.where(GENERATOR.random(N) < 0.1, np.nan, GENERATOR.normal(size=N)),
        "kind": GENERATOR.choice(["cat", "dog"], N),
        "text": GENERATOR.choice(["red hat", "blue sea", "green hat"], N),
    }
)
LABELS = [
    {"a", "b"} if kind == "cat" else {"b"} if "hat" in text else {"c"}
    for kind, text in zip(FRAME.kind, FRAME.text, strict=True)
]


def pipeline(**options):
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["size"]),
        (OneHotEncoder(), ["kind"]),
        (TfidfVectorizer(), "text"),
    )
    return make_pipeline(columns, LogisticRanker(**options))


def test_reasons_of_a_pipeline_add_up_and_have_the_names_of_its_columns():
    fitted = pipeline().fit(FRAME, LABELS)
    scores = fitted.decision_function(FRAME)
    for row in (0, 1, 2):
        found = explain(fitted, FRAME.iloc[[row]], "a", "c")
        assert_allclose(found.difference, scores[row, 0] - scores[row, 2], rtol=1e-12)
    assert found.features[-1] == "tfidfvectorizer__sea"
    best, _ = top_features(fitted, "a", 1)[0]
    assert best == "onehotencoder__kind_cat"
    assert top_features(fitted, "a", 1, feature_names=range(8))[0][0] == 1


def test_a_text_is_a_row():
    fitted = make_pipeline(TfidfVectorizer(), LogisticRanker()).fit(FRAME.text, LABELS)
    found = explain(fitted, "blue sea", "c", "b")
    scores = dict(zip("abc", fitted.decision_function(["blue sea"])[0], strict=True))
    assert_allclose(found.difference, scores["c"] - scores["b"], rtol=1e-12)
    assert {feature for feature, _ in found.largest()} == {"blue", "sea"}


def test_numbers_may_come_as_one_row_of_them():
    X = FRAME[["size"]].fillna(0).assign(other=np.arange(N)).to_numpy()
    fitted = make_pipeline(StandardScaler(), LogisticRanker()).fit(X, LABELS)
    wanted = explain(fitted, X[:1], "a", "b").contributions
    for row in (X[0], X[0].tolist()):
        assert_array_equal(explain(fitted, row, "a", "b").contributions, wanted)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_calibrated_pipeline_holds_out_rows_before_its_transformers(weighted):
    """By hand: pipelines fitted to the other folds, and scikit-learn's isotonic regression."""
    from sklearn.isotonic import IsotonicRegression

    counts = GENERATOR.integers(1, 4, N).astype(float) if weighted else None
    folds = [(np.arange(N) % 2 != k, np.arange(N) % 2 == k) for k in range(2)]
    splits = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in folds]
    fitted = CalibratedRanker(pipeline(), cv=splits).fit(FRAME, LABELS, counts)
    held = np.empty((N, 3))
    for train, test in folds:
        weights = {} if counts is None else {"logisticranker__sample_weight": counts[train]}
        labels = [it for it, used in zip(LABELS, train, strict=True) if used]
        held[test] = pipeline().fit(FRAME[train], labels, **weights).decision_function(FRAME[test])
    Y = label_sets(LABELS, classes=["a", "b", "c"]).to_csr().toarray()
    whole = {} if counts is None else {"logisticranker__sample_weight": counts}
    scores = pipeline().fit(FRAME, LABELS, **whole).decision_function(FRAME)
    for label in range(3):
        curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        curve.fit(held[:, label], Y[:, label], sample_weight=counts)
        chances = fitted.predict_proba(FRAME)[:, label]
        assert_allclose(chances, curve.predict(scores[:, label]), atol=1e-12)


def test_rankers_that_decide_take_pipelines_and_come_back_from_files(tmp_path):
    for wrapper in [
        CalibratedRanker(pipeline(), cv=2, random_state=0),
        ConformalRanker(pipeline(), level=0.2, random_state=0),
        MetricRanker(pipeline(weight="uniform"), metric="precision", k=1),
    ]:
        wrapper.fit(FRAME, LABELS)
        assert wrapper.predict(FRAME[:5]) == wrapper.predict(FRAME)[:5]
        assert wrapper.rank(FRAME, top=2).shape == (N, 2)
        save(wrapper, tmp_path / "model")
        again = load(tmp_path / "model")
        assert_array_equal(again.decision_function(FRAME), wrapper.decision_function(FRAME))
        assert again.feature_names_in_.tolist() == ["size", "kind", "text"]


def test_a_calibrated_pipeline_is_explained():
    fitted = CalibratedRanker(pipeline(), cv=2, random_state=0).fit(FRAME, LABELS)
    scores = fitted.decision_function(FRAME[:1])[0]
    found = explain(fitted, FRAME[:1], "a", "c")
    assert_allclose(found.difference, scores[0] - scores[2], rtol=1e-12)
    assert "tfidfvectorizer__sea" in found.features


def test_what_a_pipeline_cannot_be_here_is_told():
    with pytest.raises(ValueError, match="ranker must be a ranker of deltarank; got LogisticReg"):
        CalibratedRanker(make_pipeline(StandardScaler(), LogisticRegression())).fit(FRAME, LABELS)
    own = pipeline(weight=lambda Y: np.ones(len(Y)))
    with pytest.raises(ValueError, match="must have a weight by name here, not a function"):
        CalibratedRanker(own).fit(FRAME, LABELS)
    by_chance = CalibratedRanker(pipeline(), cv=2, rank_by_probability=True).fit(FRAME, LABELS)
    with pytest.raises(ValueError, match="only linear and boosted rankers and label trees"):
        explain(by_chance, FRAME[:1], "a", "b")
