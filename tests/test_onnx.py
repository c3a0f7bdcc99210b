"""A graph in onnxruntime gives the scores and the order that the ranker gives."""

import builtins
import json
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from deltarank import (
    AdaBoostMH,
    AdaBoostMR,
    AdaBoostRanker,
    BoostedTreeRanker,
    KernelLogisticRanker,
    LogisticRanker,
    LogisticRankerCV,
    LogLinearRanker,
    PairwiseRanker,
    StagedSearchCV,
    WeightedBinaryRelevance,
    datasets,
    export_onnx,
    load,
)
from deltarank.cli import main
from deltarank.storage import load_with_extra

onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")

RANKERS = {
    "logistic": LogisticRanker(),
    "cross-validated": LogisticRankerCV(Cs=[0.1, 1.0], cv=3, random_state=0),
    "pairwise": PairwiseRanker(),
    "lllr": LogLinearRanker(n_iterations=20),
    "adaboost": AdaBoostRanker(n_stumps=30),
    "adaboost, real votes": AdaBoostRanker(n_stumps=10, votes="real"),
    "adaboost, one stump": AdaBoostRanker(n_stumps=1),
    "mr": AdaBoostMR(n_stumps=40),
    "mh": AdaBoostMH(n_stumps=40),
    "trees": BoostedTreeRanker(n_trees=40, random_state=0),
    "staged": StagedSearchCV(AdaBoostMH(), rounds=[5, 20], cv=2, random_state=0),
    "kernel": KernelLogisticRanker(n_landmarks=30, gamma=0.05, C=1.0, random_state=0),
}
BOOSTED = [name for name in RANKERS if "ada" in name or name in ("mr", "mh", "trees", "staged")]


def run(path, X):
    session = onnxruntime.InferenceSession(path)
    kind = np.float64 if "double" in session.get_inputs()[0].type else np.float32
    return session.run(["label_indices", "scores"], {"X": np.asarray(X, kind)})


def assert_same_ranking(ranker, path, X, top=None, close=1e-5):
    """Scores are as close as said, and so is the order wherever scores differ by more than that."""
    wanted = np.asarray(ranker.decision_function(X))
    if wanted.ndim == 1:
        wanted = np.column_stack([-wanted, wanted])
    indices, scores = run(path, X)
    top = wanted.shape[1] if top is None else top
    assert indices.shape == scores.shape == (len(X), top)
    own = np.take_along_axis(wanted, indices, axis=1)
    np.testing.assert_allclose(scores, own, rtol=close, atol=close)
    best = -np.sort(-wanted, axis=1)[:, :top]
    np.testing.assert_allclose(own, best, rtol=close, atol=close)
    assert all(len(set(row)) == top for row in indices.tolist())


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 8)).round(2)
    Y = (X @ generator.normal(size=(8, 5)) + generator.normal(size=(300, 5)) > 1).astype(int)
    Y[:, 1] = 0
    Y[:, 3] = 1
    return X, Y


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("top", [None, 2])
@pytest.mark.parametrize("double", [False, True])
def test_every_ranker_ranks_the_same(rows, tmp_path, name, top, double):
    X, Y = rows
    ranker = RANKERS[name].fit(X, Y)
    export_onnx(ranker, tmp_path / "r.onnx", top, double=double)
    close = 1e-11 if double else 1e-5
    assert_same_ranking(ranker, tmp_path / "r.onnx", X, top, close)
    assert_same_ranking(ranker, tmp_path / "r.onnx", X[:1], top, close)


@pytest.mark.parametrize("name", BOOSTED)
def test_missing_values_take_their_own_branch(rows, tmp_path, name):
    X, Y = rows[0].copy(), rows[1]
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    ranker = RANKERS[name].fit(X, Y)
    export_onnx(ranker, tmp_path / "r.onnx", double=True)
    X[0] = np.nan
    X[1, :2] = np.inf, -np.inf
    X = X[np.isfinite(X).all(axis=1) | np.isnan(X).any(axis=1)]
    X[np.isinf(X)] = 1e300
    assert_same_ranking(ranker, tmp_path / "r.onnx", X)


@pytest.mark.parametrize("double", [False, True])
def test_sets_of_categories_are_asked_for_one_by_one(rows, tmp_path, double):
    generator = np.random.default_rng(3)
    X = np.column_stack([generator.integers(0, 12, 300), rows[0][:, :2]])
    X[generator.random(300) < 0.1, 0] = np.nan
    effects = generator.normal(size=(13, 5))
    Y = (effects[np.nan_to_num(X[:, 0], nan=12).astype(int)] + X[:, 1:2] > 0).astype(int)
    ranker = BoostedTreeRanker(n_trees=20, categorical_features=[0], random_state=0).fit(X, Y)
    assert np.isnan(ranker.thresholds_).sum() > 20
    assert (~np.isnan(ranker.thresholds_)).sum() > 20
    export_onnx(ranker, tmp_path / "r.onnx", double=double)
    X[:6, 0] = [np.nan, -1, 2.5, 40, 300, 1e9]
    assert_same_ranking(ranker, tmp_path / "r.onnx", X, close=1e-11 if double else 1e-5)


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_vector_of_classes_is_ranked_too(rows, tmp_path, name, n_classes):
    X, _ = rows
    y = np.array(["no", "yes", "maybe"])[np.digitize(X[:, 0], [0, 1][: n_classes - 1])]
    ranker = RANKERS[name].fit(X, y)
    export_onnx(ranker, tmp_path / "r.onnx")
    assert_same_ranking(ranker, tmp_path / "r.onnx", X)


@pytest.mark.parametrize("name", ["emotions", "yeast", "scene"])
def test_real_data_is_ranked_the_same(data_folder, tmp_path, name):
    split = datasets.load(name)
    X, Y = (np.asarray(split.X_train), split.Y_train)
    test = np.asarray(split.X_test)
    for ranker in (
        LogisticRanker(),
        LogLinearRanker(n_iterations=10),
        AdaBoostRanker(n_stumps=20),
        AdaBoostMR(n_stumps=30),
        KernelLogisticRanker(n_landmarks=100, gamma=1e-2, C=1.0, random_state=0),
    ):
        model = make_pipeline(StandardScaler(), ranker).fit(X, Y)
        export_onnx(model, tmp_path / "r.onnx", 3, double=True)
        assert_same_ranking(model, tmp_path / "r.onnx", test, 3)


def test_coefficients_of_float32_and_sparse_landmarks_do(rows, tmp_path):
    X, Y = rows
    ranker = LogisticRanker().fit(X.astype(np.float32), Y)
    export_onnx(ranker, tmp_path / "r.onnx")
    assert_same_ranking(ranker, tmp_path / "r.onnx", X.astype(np.float32))
    kernel = RANKERS["kernel"].fit(sparse.csr_array(X), Y)
    export_onnx(kernel, tmp_path / "k.onnx")
    assert_same_ranking(kernel, tmp_path / "k.onnx", X)


@pytest.mark.parametrize("options", [{}, {"with_mean": False}, {"with_std": False}])
def test_scalers_of_a_pipeline_are_in_the_graph(rows, tmp_path, options):
    X, Y = rows
    X = 1e3 * X + 7
    model = make_pipeline(StandardScaler(**options), "passthrough", LogisticRanker()).fit(X, Y)
    export_onnx(model, tmp_path / "r.onnx", double=True)
    assert_same_ranking(model, tmp_path / "r.onnx", X)


def test_equal_scores_keep_the_order_of_the_labels(tmp_path):
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    Y = np.array([[0, 1, 1, 0, 0], [1, 0, 0, 1, 0]] * 2)
    ranker = LogisticRanker().fit(X, Y)
    export_onnx(ranker, tmp_path / "r.onnx")
    indices, _ = run(tmp_path / "r.onnx", X)
    assert indices.tolist() == ranker.rank(X).tolist()
    assert indices[0].tolist()[:2] == [1, 2]
    assert indices[1].tolist()[:2] == [0, 3]


def test_names_of_labels_and_features_are_in_the_metadata(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"warmth": [30.0, 2.0], "rain": [0.1, 0.9]})
    ranker = LogisticRanker().fit(X, [{"beach"}, {"müseum"}])
    export_onnx(ranker, tmp_path / "r.onnx")
    found = onnxruntime.InferenceSession(tmp_path / "r.onnx").get_modelmeta().custom_metadata_map
    assert json.loads(found["labels"]) == ["beach", "müseum"]
    assert json.loads(found["features"]) == ["warmth", "rain"]
    assert json.loads(found["ranker"]) == "LogisticRanker"


class TestCommand:
    @pytest.fixture
    def command(self, monkeypatch, capsys):
        def command(*arguments):
            monkeypatch.setattr(sys, "argv", ["deltarank", *map(str, arguments)])
            code = 0
            try:
                main()
            except SystemExit as exit_:
                code = exit_.code or 0
            return code, capsys.readouterr().err

        return command

    @pytest.fixture
    def table(self, tmp_path):
        generator = np.random.default_rng(0)
        X = generator.normal(3, 50, size=(80, 3)).round(1)
        lines = [
            f"{a},{b},{'' if i % 9 == 0 else c},{'big' if a > b else 'small'}"
            for i, (a, b, c) in enumerate(X)
        ]
        (tmp_path / "rows.csv").write_text("\n".join(["a,b,c,tags", *lines]) + "\n")
        X[::9, 2] = np.nan
        return tmp_path / "rows.csv", X

    @pytest.mark.parametrize("ranker", ["logistic", "adaboost", "kernel"])
    def test_a_model_of_numbers_takes_its_preparation_along(self, command, table, tmp_path, ranker):
        path, X = table
        assert command("fit", path, "-m", tmp_path / "m", "--ranker", ranker)[0] == 0
        code, said = command("export", tmp_path / "m", "--onnx", tmp_path / "r.onnx", "--top", "1")
        assert (code, said) == (0, f"wrote {tmp_path / 'r.onnx'}: 3 numbers in, 1 labels out\n")
        ranker, extra = load_with_extra(tmp_path / "m")
        preparation = datasets.Preparation.from_json(extra["preparation"])
        prepared = preparation.transform(preparation.read(path).X)
        indices, scores = run(tmp_path / "r.onnx", X)
        assert ranker.classes_[indices].tolist() == ranker.rank(prepared, top=1).tolist()
        best = ranker.decision_function(prepared).max(axis=1, keepdims=True)
        np.testing.assert_allclose(scores, best, rtol=1e-5, atol=1e-5)

    def test_mistakes_are_told_in_a_line(self, command, table, tmp_path):
        path, _ = table
        recipes = tmp_path / "recipes.csv"
        rows = datasets.example_rows(80)
        text = "".join(",".join(f'"{cell}"' for cell in row.values()) + "\n" for row in rows)
        recipes.write_text(",".join(rows[0]) + "\n" + text)
        command("fit", path, "-m", tmp_path / "m", "--C", "1")
        command("fit", recipes, "-m", tmp_path / "text", "--C", "1")
        target = tmp_path / "r.onnx"
        for model, options, words in (
            ("text", (), "column 'description' holds text, and an ONNX graph takes numbers only"),
            (
                "m",
                ("--top", "3"),
                "top must be an integer from 1 to the number of labels, 2; got 3",
            ),
            ("absent", (), "No such file or directory"),
        ):
            code, said = command("export", tmp_path / model, "--onnx", target, *options)
            assert code == 1
            assert words in said
            assert said.count("\n") == 1
            assert not target.exists()


class TestRefusals:
    def test_what_cannot_be_exported_is_said(self, rows, tmp_path):
        X, Y = rows
        text = make_pipeline(TfidfVectorizer(), LogisticRanker())
        text.fit(["a dog", "a cat", "one dog"], [{"d"}, {"c"}, {"d"}])
        other = make_pipeline(QuantileTransformer(n_quantiles=9), LogisticRanker()).fit(X, Y)
        reduction = WeightedBinaryRelevance(LogisticRegression()).fit(X, Y[:, :1])
        fitted = LogisticRanker().fit(X, Y)
        for ranker, top, words in (
            (text, None, "TfidfVectorizer cannot be exported to ONNX: text has no place"),
            (other, None, "'quantiletransformer' of the pipeline, QuantileTransformer, cannot be"),
            (reduction, None, "WeightedBinaryRelevance cannot be exported to ONNX"),
            (LogisticRegression().fit(X, Y[:, 0]), None, "LogisticRegression cannot be exported"),
            (fitted, 6, "top must be an integer from 1 to the number of labels, 5; got 6"),
            (fitted, 0, "top must be an integer from 1"),
        ):
            with pytest.raises(ValueError, match=words):
                export_onnx(ranker, tmp_path / "r.onnx", top)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            export_onnx(LogisticRanker(), tmp_path / "r.onnx")
        with pytest.raises(NotFittedError, match="not fitted yet"):
            export_onnx(make_pipeline(StandardScaler(), LogisticRanker()), tmp_path / "r.onnx")
        assert list(tmp_path.iterdir()) == []

    def test_the_extra_is_named_where_onnx_is_not_installed(self, rows, tmp_path, monkeypatch):
        given = builtins.__import__

        def without_onnx(name, *rest):
            if name == "onnx":
                raise ImportError(name)
            return given(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without_onnx)
        with pytest.raises(ImportError, match=r"pip install 'deltarank\[onnx\]'"):
            export_onnx(LogisticRanker().fit(*rows), tmp_path / "r.onnx")

    def test_more_than_a_file_can_hold_is_refused(self, rows, tmp_path, monkeypatch):
        monkeypatch.setattr("deltarank.storage.onnx_graph.LARGEST_FILE", 100)
        with pytest.raises(ValueError, match="an ONNX file holds at most 2 GB"):
            export_onnx(LogisticRanker().fit(*rows), tmp_path / "r.onnx")

    def test_an_old_file_stays_when_writing_fails(self, rows, tmp_path, monkeypatch):
        path = tmp_path / "r.onnx"
        path.write_bytes(b"old")

        def fail(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="No space left"):
            export_onnx(LogisticRanker().fit(*rows), path)
        assert [p.name for p in tmp_path.iterdir()] == ["r.onnx"]
        assert path.read_bytes() == b"old"


def test_a_loaded_model_can_be_exported(rows, tmp_path):
    from deltarank import save

    X, Y = rows
    save(RANKERS["mr"].fit(X, Y), tmp_path / "m")
    ranker = load(tmp_path / "m")
    export_onnx(ranker, tmp_path / "r.onnx")
    assert_same_ranking(ranker, tmp_path / "r.onnx", X)


def test_the_example_ranks_by_the_graph_alone(run_example):
    warm, cold = run_example("plot_rank_with_onnx")["rankings"]
    assert warm == ["beach", "ice cream"]
    assert cold[0] == "museum"
