"""Pipelines and rankers round rankers in model files: whole, of known parts, without code."""

import json
from contextlib import suppress
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, SelectPercentile, VarianceThreshold, chi2
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
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

from deltarank import (
    AdaBoostRanker,
    CalibratedRanker,
    ConformalRanker,
    LogisticRanker,
    MetricRanker,
    StagedSearchCV,
    WeightedBinaryRelevance,
    load,
    save,
)
from deltarank.core.arrays import read_arrays, write_arrays
from deltarank.datasets import TextVectorizer
from deltarank.storage import ModelFileError
from deltarank.storage.known import KNOWN
from deltarank.storage.prepared import Model

GENERATOR = np.random.default_rng(0)
N = 60
NUMBERS = GENERATOR.normal(size=(N, 4))
GAPS = np.where(GENERATOR.random((N, 4)) < 0.2, np.nan, NUMBERS)
CATEGORIES = pd.DataFrame(
    {"kind": GENERATOR.choice(["x", "y", "zéta"], N), "grade": GENERATOR.integers(3, size=N)}
)
TEXTS = GENERATOR.choice(["Red hat", "blue sea", "green été hat", "sea of red"], N).tolist()
FRAME = CATEGORIES.assign(size=GAPS[:, 0], weight=NUMBERS[:, 1], text=TEXTS)
LABELS = [{"a"} if row[0] > 0 else {"b", "c"} for row in NUMBERS]

COLUMNS = ColumnTransformer(
    [
        ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["size"]),
        ("chosen", "passthrough", make_column_selector("weight")),
        ("slice", OneHotEncoder(handle_unknown="ignore"), ["kind"]),  # a name with a meaning
        ("words", TfidfVectorizer(ngram_range=(1, 2)), "text"),
        ("none", "drop", ["grade"]),
    ]
)
STEPS = {
    "StandardScaler": (StandardScaler(), NUMBERS),
    "StandardScaler of nothing": (StandardScaler(with_mean=False, with_std=False), NUMBERS),
    "MinMaxScaler": (MinMaxScaler((-1, 2), clip=True), NUMBERS),
    "MaxAbsScaler": (MaxAbsScaler(), sparse.csr_array(NUMBERS)),
    "RobustScaler": (RobustScaler(quantile_range=(10.0, 90.0)), NUMBERS),
    "Normalizer": (Normalizer("l1"), NUMBERS),
    "SimpleImputer": (SimpleImputer(add_indicator=True), GAPS),
    "SimpleImputer of a constant": (SimpleImputer(strategy="constant", fill_value=7), GAPS),
    "OneHotEncoder": (OneHotEncoder(drop="first"), CATEGORIES),
    "OneHotEncoder of the rest": (OneHotEncoder(max_categories=2), CATEGORIES),
    "OrdinalEncoder": (OrdinalEncoder(dtype=np.float32), CATEGORIES),
    "CountVectorizer": (CountVectorizer(stop_words=["hat"]), TEXTS),
    "TfidfVectorizer": (TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)), TEXTS),
    "TfidfTransformer": (TfidfTransformer(sublinear_tf=True), np.abs(NUMBERS)),
    "HashingVectorizer": (HashingVectorizer(n_features=32), TEXTS),
    "TextVectorizer": (TextVectorizer(strip_accents="unicode"), TEXTS),
    "TextVectorizer, hashed": (TextVectorizer(n_features=32), TEXTS),
    "PCA": (PCA(2, whiten=True), NUMBERS),
    "TruncatedSVD": (TruncatedSVD(2, random_state=0), sparse.csr_array(NUMBERS)),
    "VarianceThreshold": (VarianceThreshold(0.9), NUMBERS),
    "SelectKBest": (SelectKBest(chi2, k=2), np.abs(NUMBERS)),
    "SelectPercentile": (SelectPercentile(percentile=50), NUMBERS),
    "FeatureUnion": (FeatureUnion([("all", StandardScaler()), ("some", PCA(2))]), NUMBERS),
    "ColumnTransformer": (COLUMNS, FRAME),
    "ColumnTransformer by number": (
        ColumnTransformer([("n", StandardScaler(), [0, 2])], remainder="passthrough"),
        NUMBERS,
    ),
    "Pipeline": (make_pipeline(StandardScaler(), "passthrough", PCA(2)), NUMBERS),
}
WRAPPERS = [
    CalibratedRanker(LogisticRanker(), cv=2, random_state=0),
    CalibratedRanker(LogisticRanker(), cv=2, method="platt", random_state=0),
    CalibratedRanker(LogisticRanker(), cv=2, min_positives=2, random_state=0),
    StagedSearchCV(AdaBoostRanker(), rounds=[2, 4], cv=2, random_state=0),
    WeightedBinaryRelevance(LogisticRanker()),
    WeightedBinaryRelevance(make_pipeline(StandardScaler(), LogisticRanker())),
    ConformalRanker(LogisticRanker(), level=0.3, random_state=0),
    MetricRanker(LogisticRanker(weight="uniform"), k=1, cv=2, random_state=0),
    CalibratedRanker(StagedSearchCV(AdaBoostRanker(), rounds=[2], cv=2), cv=2),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.delta"


@pytest.fixture(scope="module")
def whole():
    return make_pipeline(COLUMNS, LogisticRanker()).fit(FRAME, LABELS)


def with_step(name):
    step, X = STEPS[name]
    y = NUMBERS[:, 0] > 0 if name.startswith("Select") else LABELS
    return make_pipeline(clone(step), LogisticRanker()).fit(X, y), X


@pytest.mark.parametrize("name", STEPS)
def test_a_loaded_pipeline_scores_as_the_one_that_was_saved(path, name):
    pipeline, X = with_step(name)
    save(pipeline, path)
    again = load(path)
    assert type(again) is Pipeline
    assert again.decision_function(X).tobytes() == pipeline.decision_function(X).tobytes()
    assert np.array_equal(again.predict(X), pipeline.predict(X))
    assert str(again) == str(pipeline) or "make_column_selector" in str(pipeline)


def test_every_class_of_the_list_is_tried(path):
    saved = set()
    for name in STEPS:
        save(with_step(name)[0], path)
        saved |= set(read_arrays(path)[1]["state"].split('"'))
    wrappers = {type(wrapper).__name__ for wrapper in WRAPPERS}
    assert KNOWN.keys() - saved - wrappers == {"PipelineRanker"}  # in tests/test_pipelines.py


@pytest.mark.parametrize("form", ["sets", "classes"])
@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda it: type(it).__name__)
def test_a_ranker_round_another_comes_back_whole(path, wrapper, form):
    y = LABELS if form == "sets" else np.array(["x", "y", "z"])[np.arange(N) % 3]
    wrapper.fit(NUMBERS, y)
    save(wrapper, path)
    again = load(path)
    assert set(vars(again)) == set(vars(wrapper))
    assert np.array_equal(again.decision_function(NUMBERS), wrapper.decision_function(NUMBERS))
    assert np.array_equal(again.predict(NUMBERS), wrapper.predict(NUMBERS))
    if hasattr(wrapper, "predict_proba"):
        assert np.array_equal(again.predict_proba(NUMBERS), wrapper.predict_proba(NUMBERS))


def test_names_of_columns_and_settings_of_output_come_back(path, whole):
    save(whole, path)
    again = load(path)
    assert again.feature_names_in_.tolist() == list(FRAME.columns)
    names = again[:-1].get_feature_names_out().tolist()
    assert names == whole[:-1].get_feature_names_out().tolist()
    scaled = make_pipeline(StandardScaler().set_output(transform="pandas"), LogisticRanker())
    save(scaled.fit(FRAME[["weight"]], LABELS), path)
    assert list(load(path)[:-1].transform(FRAME[["weight"]]).columns) == ["weight"]


def test_words_are_arrays_of_the_file(path, whole):
    save(whole, path)
    arrays, strings = read_arrays(path)
    assert "blue sea" not in strings["state"]
    assert any(b"blueblue sea" in array.tobytes() for array in arrays.values())


def test_code_is_refused_by_name(path):
    for step, message in [
        (FunctionTransformer(np.abs), "FunctionTransformer cannot be saved: its func is code"),
        (TfidfVectorizer(tokenizer=str.split, token_pattern=None), "tokenizer cannot go into a"),
        (SelectKBest(lambda X, y: np.ones(4), k=2), "score_func cannot go into a model file"),
        (type("StandardScaler", (StandardScaler,), {})(), "it is another class than sklearn"),
    ]:
        pipeline, X = make_pipeline(step, LogisticRanker()), NUMBERS
        X = TEXTS if isinstance(step, TfidfVectorizer) else NUMBERS
        y = NUMBERS[:, 0] > 0
        with pytest.raises(ValueError, match=message):
            save(pipeline.fit(X, y), path)
        assert not path.exists()
    with pytest.raises(ValueError, match="StandardScaler cannot be saved; rankers that can are"):
        save(make_pipeline(StandardScaler()).fit(NUMBERS), path)


def test_attributes_that_nobody_knows_are_not_lost_in_silence(path):
    pipeline, _ = with_step("StandardScaler")
    pipeline[0].brought_by_another_release_ = 1
    with pytest.raises(ValueError, match="does not know its attribute brought_by"):
        save(pipeline, path)


def forge(path, change):
    arrays, strings = read_arrays(path, mapped=False)
    state = json.loads(strings["state"])
    change(state, arrays)
    write_arrays(path, arrays, {**strings, "state": json.dumps(state)})


def scaler_of(state):
    return state["parameters"]["steps"][0]["tuple"][1]["estimator"]


FORGERIES = {
    "unknown estimator 'Popen'": lambda s, a: scaler_of(s).update(estimator="Popen"),
    "does not hold what a StandardScaler": lambda s, a: scaler_of(s)["attributes"].update(fit=1),
    "with_mean": lambda s, a: scaler_of(s)["parameters"].update(with_mean="perhaps"),
    "mean_ must have shape": lambda s, a: a.update(
        {key: array[:2] for key, array in a.items() if key.startswith("mean_")}
    ),
    "mean_ must be finite": lambda s, a: a.update(
        {key: array * np.nan for key, array in a.items() if key.startswith("mean_")}
    ),
    "arrays that belong to no part": lambda s, a: a.update(stray=np.ones(2)),
    "not that of a ranker": lambda s, a: scaler_of(s)["attributes"]["mean_"].update(stored="x"),
}


@pytest.mark.parametrize("message", FORGERIES)
def test_parts_that_do_not_fit_are_refused(path, message):
    save(with_step("StandardScaler")[0], path)
    forge(path, FORGERIES[message])
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_steps_that_do_not_fit_each_other_are_refused(path):
    save(with_step("PCA")[0], path)

    def wider(state, arrays):
        step = scaler_of(state)["attributes"]
        turned = step["components_"]["turned"]["stored"]
        arrays[turned] = np.repeat(arrays[turned], 2, axis=1)
        for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
            arrays[step[name]["stored"]] = np.ones(4)

    forge(path, wider)
    with pytest.raises(ModelFileError, match="PCA gives 4 features, and LogisticRanker takes 2"):
        load(path)


def leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from leaves(item, (*path, key))


@pytest.mark.parametrize("which", ["pipeline", "calibrated"])
def test_a_file_with_any_part_replaced_is_refused_or_ranks(path, whole, which):
    if which == "pipeline":
        original, X = whole, FRAME
    else:
        original, X = WRAPPERS[0].fit(NUMBERS, LABELS), NUMBERS
    save(original, path)
    arrays, strings = read_arrays(path, mapped=False)
    state = json.loads(strings["state"])
    generator, refused = np.random.default_rng(1), 0
    everywhere = [place for place in leaves(state) if place[0] not in ("extra", "scikit_learn")]
    for place in generator.permutation(len(everywhere))[:300]:
        forged = json.loads(strings["state"])
        *way, last = everywhere[place]
        at = forged
        for key in way:
            at = at[key]
        at[last] = [None, -1, 10**9, "x", [], {}, [1], {"tuple": []}][generator.integers(8)]
        write_arrays(path, arrays, {**strings, "state": json.dumps(forged)})
        try:
            again = load(path)
        except ModelFileError:
            refused += 1
            continue
        # Releases of scikit-learn differ in what they warn of.
        with suppress(ValueError, TypeError, LookupError, AttributeError), catch_warnings():
            simplefilter("ignore")
            again.decision_function(X)
    assert refused > 50


def test_another_release_of_scikit_learn_is_told(path):
    save(with_step("StandardScaler")[0], path)
    forge(path, lambda state, arrays: state.update(scikit_learn="0.1"))
    with pytest.warns(UserWarning, match="from version 0.1"):
        load(path)


def test_commands_say_that_a_pipeline_is_for_python(path):
    save(with_step("MinMaxScaler")[0], path)
    with pytest.raises(ValueError, match=r"use it in Python, by deltarank\.load"):
        Model.load(path)
