"""Masks, broken indices, features and scores beyond arithmetic: every ranker refuses them."""

import json
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from deltarank import (
    LogisticRanker,
    PairwiseRanker,
    WeightedBinaryRelevance,
    datasets,
    instance_weights,
    rank_loss,
)
from deltarank.base.staged import StagedRanker
from deltarank.core.arrays import write_arrays
from deltarank.core.scores import RowError
from deltarank.core.splits import LabelStratifiedKFold
from deltarank.wrappers.staged import StagedSearchCV
from test_whole_fits import ONE_OF_A_KIND

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X @ RNG.normal(size=(3, 4)) + RNG.logistic(size=(40, 4)) > 0) * 1
EVERY = pytest.mark.parametrize("ranker", ONE_OF_A_KIND.values(), ids=lambda it: type(it).__name__)


def masked(values):
    mask = np.zeros(np.shape(values), bool)
    mask.flat[7] = True
    return np.ma.masked_array(values, mask)


def broken(matrix, index, kind=sparse.csr_array):
    """A matrix that SciPy takes and that points outside itself."""
    good = kind(matrix)
    indices = good.indices.copy()
    indices[5] = index
    return kind((good.data, indices, good.indptr), shape=good.shape)


@EVERY
def test_masks_are_refused_by_name(ranker):
    for given, name in [
        ((masked(X), Y), "X"),
        ((X, masked(Y)), "Y"),
        ((X, masked(Y[:, 0])), "Y"),
        ((X, Y, masked(np.ones(40))), "sample_weight"),
    ]:
        with pytest.raises(ValueError, match=rf"{name} must have no masked cells.*got 1 of"):
            clone(ranker).fit(*given)
    fitted = clone(ranker).fit(np.ma.masked_array(X), Y)  # a mask that hides nothing is none
    for method in (fitted.rank, fitted.decision_function, fitted.predict):
        with pytest.raises(ValueError, match="X must have no masked cells"):
            method(masked(X))


def test_masks_are_refused_by_metrics_and_weights():
    S = RNG.normal(size=(40, 4))
    for call, name in [
        (lambda: rank_loss(masked(Y), S), "Y"),
        (lambda: rank_loss(Y, masked(S)), "scores"),
        (lambda: rank_loss(Y, S, sample_weight=masked(np.ones(40))), "sample_weight"),
        (lambda: instance_weights(masked(Y)), "Y"),
    ]:
        with pytest.raises(ValueError, match=f"{name} must have no masked cells"):
            call()


@EVERY
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
def test_indices_out_of_range_never_reach_compiled_code(ranker, kind):
    for index in (10**7, -1):
        with pytest.raises(ValueError, match=r"X must be a sparse matrix whose indices lie within"):
            clone(ranker).fit(broken(X, index, kind), Y)
        with pytest.raises(ValueError, match=r"Y must be a sparse matrix whose indices lie within"):
            clone(ranker).fit(X, broken(Y, index, kind))
    fitted = clone(ranker).fit(sparse.csr_array(X), Y)
    with pytest.raises(ValueError, match="X must be a sparse matrix whose indices"):
        fitted.rank(broken(X, 10**7, kind))


def test_indices_out_of_range_are_refused_wherever_label_sets_come_in(tmp_path):
    bad, S = broken(Y, 99), RNG.normal(size=(40, 4))
    coordinates = sparse.coo_array(Y)
    coordinates.coords[1][3] = 99
    lists = sparse.lil_array(Y)
    lists.rows[2] = [0, 99]
    lists.data[2] = [1, 1]
    for matrix in (bad, coordinates, lists):
        for call in (
            lambda m=matrix: rank_loss(m, S),
            lambda m=matrix: instance_weights(m),
            lambda m=matrix: list(LabelStratifiedKFold(2).split(S, m)),
            lambda m=matrix: datasets.write_xmc(tmp_path / "a.txt", X, m),
        ):
            with pytest.raises(
                ValueError, match="must be a sparse matrix whose indices lie within"
            ):
                call()
    with pytest.raises(ValueError, match="X must be a sparse matrix"):
        datasets.write_xmc(tmp_path / "a.txt", broken(X, 99), Y)


@pytest.mark.parametrize("forged", ["index", "shapes", "parts"])
def test_a_forged_cache_is_read_anew(tmp_path, forged):
    path, folder = tmp_path / "a.svm", tmp_path / "cache"
    path.write_text("0,1 1:0.5 3:2\n1 2:1\n")
    plain = datasets.read(path, cache=folder)
    [kept] = folder.iterdir()
    from deltarank.core.arrays import read_arrays

    arrays, strings = read_arrays(kept, mapped=False)
    if forged == "index":
        arrays["X.indices"][0] = 10**6
    elif forged == "shapes":
        strings["shapes"] = "[[2, 3]]"
    else:
        del arrays["Y.data"]
    write_arrays(kept, arrays, strings)  # with a checksum that is right
    again = datasets.read(path, cache=folder)
    assert (again.X != plain.X).nnz == 0
    assert (again.Y != plain.Y).nnz == 0


@EVERY
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_features_beyond_arithmetic_are_refused_or_learned_from(ranker, form):
    """The order of trees does not depend on units; all others must not claim to have learned."""
    if isinstance(ranker, WeightedBinaryRelevance):
        pytest.skip("its estimator decides")
    large = X * 1e200
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if isinstance(ranker, StagedRanker | StagedSearchCV):
            fitted, plain = clone(ranker).fit(form(large), Y), clone(ranker).fit(form(X), Y)
            assert np.array_equal(fitted.rank(form(large)), plain.rank(form(X)))
            return
        with pytest.raises(ValueError, match=r"X must hold features of at most .* in row 0, col"):
            clone(ranker).fit(form(large), Y)


@EVERY
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("size", [1e-100, 1e-155, 1e-160, 1e-165, 5e-320])
def test_features_that_are_next_to_nothing_give_scores(ranker, form, size):
    """Whose squares are zero, or so near to it that one over them is infinite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        small = np.column_stack([X[:, :2], X[:, 2] * size])
        for rows in (X * size, small):
            fitted = clone(ranker).fit(form(rows), Y)
            assert np.isfinite(fitted.decision_function(form(rows))).all()


def test_no_score_passes_the_labels_that_are_always_last_and_first():
    sets = [{"always", "a"} if x > 0 else {"always", "b"} for x in X[:, 0]]
    Z = np.array([[label in row for label in ("a", "always", "b", "never")] for row in sets])
    for ranker in (LogisticRanker(), PairwiseRanker()):
        fitted = ranker.fit(X, Z.astype(int))
        assert fitted.rank([[1e25, 0, 0]])[0].tolist() == [1, 0, 2, 3]
        with pytest.raises(RowError, match="row 1 cannot be ranked"):
            fitted.rank([[0, 0, 0], [1e300, 0, 0]])


class TestScoresThatAreNotFinite:
    ranker = LogisticRanker().fit(X, Y)
    far = np.vstack([X[:5], [[1e308, -1e308, 1e308]], X[5:]])

    @pytest.mark.parametrize("method", ["rank", "decision_function", "predict", "marginal_weights"])
    def test_the_row_is_named(self, method):
        with pytest.raises(RowError, match="row 5 cannot be ranked"):
            getattr(self.ranker, method)(self.far)
        with pytest.raises(RowError, match="row 0 cannot be ranked"):
            getattr(self.ranker, method)(self.far[5:6])

    def test_rows_of_later_blocks_keep_their_numbers(self, monkeypatch):
        monkeypatch.setattr("deltarank.base.ranker.CELLS_PER_CHUNK", 8)
        with pytest.raises(RowError, match="row 5 cannot be ranked"):
            self.ranker.rank(self.far)


def test_no_command_writes_a_score_that_is_no_number(tmp_path, monkeypatch, capsys):
    from deltarank.cli import main

    monkeypatch.chdir(tmp_path)
    rows = [{"a": float(a), "b": float(b), "tags": ["x"] if a > 0 else ["y"]} for a, b, _ in X]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "train.jsonl").write_text(text)
    (tmp_path / "new.jsonl").write_text(text + '{"a": 1e308, "b": -1e308}\n')

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["deltarank", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, capsys.readouterr()

    for options in (["--C", "1"], ["--ranker", "kernel", "--C", "1"]):
        assert run("fit", "train.jsonl", "-m", "m", *options)[0] == 0
        code, printed = run("rank", "m", "new.jsonl")
        assert code == 1
        assert "deltarank: row 40 " in printed.err
        assert all(
            np.isfinite(json.loads(line)["scores"]).all() for line in printed.out.split("\n")[:-1]
        )
