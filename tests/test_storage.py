"""Model files: what goes in comes out, and nothing else gets in."""

import json
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import deltarank
from deltarank import LogisticRanker, WeightedBinaryRelevance, load, save
from deltarank.core.arrays import read_arrays, write_arrays
from deltarank.datasets import Encoder, Preparation
from deltarank.serving.items import Reader
from deltarank.storage import ModelFileError, load_with_extra
from deltarank.storage.prepared import Model
from deltarank.storage.registry import STORED

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 4))
MARKS = (X @ GENERATOR.normal(size=(4, 3)) + GENERATOR.normal(size=(60, 3)) > 0).astype(int)
NAMES = ["red", "très long", "b"]
FORMS = {
    "dense": MARKS,
    "sparse": sparse.csr_array(MARKS),
    "sets": [{NAMES[j] for j in np.flatnonzero(row)} for row in MARKS],
    "classes": np.array(NAMES)[MARKS.argmax(axis=1)],
    "binary": MARKS[:, 0],
}


# Searches and rounds enough for a file.
SETTINGS = {
    "KernelLogisticRanker": {"n_landmarks": [10, 20], "cv": 2, "random_state": 0},
    "LogLinearRanker": {"n_iterations": 20},
    "LabelTreeRanker": {"arity": 2, "leaf_size": 1, "C": 1.0, "random_state": 0},
    "BoostedTreeRanker": {"n_trees": 5},
    **{name: {"n_stumps": 5} for name in ("AdaBoostRanker", "AdaBoostMR", "AdaBoostMH")},
}


def fitted(name, form="dense", features=X):
    ranker = getattr(deltarank, name)(**SETTINGS.get(name, {}))
    return ranker.fit(features, FORMS[form])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ranker.model"


def same(a, b):
    return (a != b).nnz == 0 if sparse.issparse(a) else np.array_equal(a, b)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STORED)
def test_a_loaded_ranker_is_the_one_that_was_saved(path, name, form):
    ranker = fitted(name, form)
    save(ranker, path)
    again = load(path)
    assert type(again) is type(ranker)
    assert again.get_params() == ranker.get_params()
    assert again.decision_function(X).tobytes() == ranker.decision_function(X).tobytes()
    assert np.array_equal(again.rank(X, top=2), ranker.rank(X, top=2))
    assert again.rank(X).dtype == ranker.rank(X).dtype
    assert same(again.predict(X), ranker.predict(X))
    assert set(vars(again)) == set(vars(ranker)), "an attribute was lost, or came from nowhere"


@pytest.mark.parametrize("name", STORED)
def test_names_and_numbers_keep_their_kind(path, name):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.astype(np.float32), columns=["a", "b", "c", "d"])
    ranker = fitted(name, features=frame).set_params(weight=("ndcg", 2))
    save(ranker, path)
    again = load(path)
    assert again.weight == ("ndcg", 2)
    for array in vars(ranker).keys() & STORED[name].arrays.keys():
        assert getattr(again, array).dtype == getattr(ranker, array).dtype
    assert again.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert np.array_equal(again.decision_function(frame), ranker.decision_function(frame))
    assert again.classes_.dtype == ranker.classes_.dtype


def test_what_only_some_fits_have_is_kept_where_it_is(path):
    ranker = deltarank.LogLinearRanker(algorithm="lbfgs", C=1.0).fit(X, MARKS)
    save(ranker, path)
    assert set(vars(load(path))) == set(vars(ranker))


def test_sparse_landmarks_stay_sparse(path):
    thin = sparse.csr_array(np.where(X > 0, X, 0))
    ranker = deltarank.KernelLogisticRanker(gamma=0.5, C=1.0).fit(thin, MARKS)
    save(ranker, path)
    again = load(path)
    assert sparse.issparse(again.landmarks_)
    assert np.array_equal(again.decision_function(thin), ranker.decision_function(thin))


def test_arrays_stay_on_disk(path):
    save(fitted("LogisticRanker"), path)
    coef = load(path).coef_
    assert not coef.flags.owndata
    assert not coef.flags.writeable


@pytest.mark.parametrize("form", FORMS)
def test_a_model_of_the_commands_ranks_as_its_ranker_does(path, form, monkeypatch):
    monkeypatch.setattr("deltarank.base.ranker.CELLS_PER_CHUNK", 21)
    save(fitted("LogisticRanker", form), path)
    model, ranker = Model.load(path), load(path)
    rankings = list(model.rankings(X, top=99))
    assert [row for row, _, _ in rankings] == list(range(len(X)))
    assert [labels for _, labels, _ in rankings] == ranker.rank(X).tolist()
    scores = model.all_scores(X)
    assert np.array_equal([values for _, _, values in rankings], -np.sort(-scores, axis=1))
    known = ranker.decision_function(X)
    expected = np.column_stack([-known, known]) if form == "binary" else known
    assert_allclose(scores, expected, rtol=1e-12)
    assert_allclose(model.scores(X), expected, rtol=1e-12)


def test_what_is_kept_beside_the_ranker_comes_back(path):
    encoder = Encoder.fit({"a": [1, 2], "t": ["red hat", "hat"]}, {"t": "text"})
    save(fitted("LogisticRanker"), path, extra={"encoder": encoder.to_json()})
    _, extra = load_with_extra(path)
    assert Encoder.from_json(extra["encoder"]) == encoder


def test_words_of_a_model_are_arrays_of_its_file(path):
    texts = ["red hat", "öljy hat"] * 30
    encoder, X = Encoder.fit_transform({"t": texts}, {"t": "text"})
    ranker = LogisticRanker().fit(X, [{"a"}, {"b"}] * 30)
    model = Model(ranker, Preparation(X.shape[1], encoder=encoder))
    model.save(path)
    theirs = load_file(path)
    assert "hatredöljy".encode() in b"".join(array.tobytes() for array in theirs.values())
    with safe_open(path, framework="np") as file:
        assert '"hat"' not in file.metadata()["state"]
    again = Model.load(path)
    assert again.preparation == model.preparation
    rows = again.preparation.encoder.transform({"t": texts})
    assert np.array_equal(again.scores(rows), model.scores(X))


def test_a_file_that_lacks_an_array_kept_beside_the_ranker_is_refused(path):
    save(fitted("LogisticRanker"), path, extra={"words": np.arange(3)})
    _, extra = load_with_extra(path)
    assert extra["words"].tolist() == [0, 1, 2]
    arrays, strings = read_arrays(path, mapped=False)
    del arrays["extra.0"]
    write_arrays(path, arrays, strings)
    with pytest.raises(ModelFileError, match="its state is not that of a ranker"):
        load(path)


class TestLayout:
    def test_the_safetensors_library_reads_the_same_arrays(self, path):
        ranker = fitted("LogisticRanker")
        save(ranker, path)
        theirs = load_file(path)
        stored = STORED["LogisticRanker"]
        assert set(theirs) == set(stored.arrays) - set(stored.optional)
        for name, array in theirs.items():
            assert np.array_equal(array, getattr(ranker, name))
        with safe_open(path, framework="np") as file:
            assert file.metadata()["deltarank_format"] == "1"

    def test_every_kind_of_number_and_shape_survives(self, path):
        kinds = ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
        arrays = {k: np.arange(6).reshape(2, 3).astype(k) for k in kinds}
        arrays |= {"empty": np.empty((0, 3)), "scalar": np.array(2.5), "turned": X.T}
        write_arrays(path, arrays, {"a": "é"})
        found, strings = read_arrays(path)
        theirs = load_file(path)
        for name, array in arrays.items():
            for other in (found[name], theirs[name]):
                assert np.array_equal(other, array)
                assert (other.dtype, other.shape) == (array.dtype, array.shape)
        assert strings == {"a": "é"}

    def test_a_foreign_file_of_that_layout_is_refused(self, path):
        save_file({"a": X}, path, metadata={"made": "elsewhere"})
        with pytest.raises(ModelFileError, match="the checksum is wrong"):
            load(path)


def test_damages_are_refused_or_change_nothing(path):
    ranker = fitted("LogisticRanker", "sets")
    save(ranker, path)
    content, expected = path.read_bytes(), ranker.decision_function(X).tobytes()
    generator = np.random.default_rng(1)
    refused = 0
    for i in range(2_000):  # tests/abuse tries many more, on every ranker
        damaged = bytearray(content)
        place = int(generator.integers(len(content)))
        if i % 4:
            damaged[place] ^= int(generator.integers(1, 256))
        else:
            del damaged[place:]
        path.write_bytes(damaged)
        try:
            again = load(path)
        except ModelFileError:
            refused += 1
        else:
            assert again.decision_function(X).tobytes() == expected
            assert again.classes_.tolist() == ranker.classes_.tolist()
    assert refused > 1_980


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"12345678",
        b"\xff" * 64,
        (2**62).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b"{}",
        (100_000).to_bytes(8, "little") + b"[" * 100_000,
        (40).to_bytes(8, "little") + b'{"__metadata__":{"checksum":1}}'.ljust(40),
    ],
)
def test_what_is_no_model_file_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=str(path)):
        load(path)


def huge(n):
    header = {"__metadata__": {}, "a": {"dtype": "F64", "shape": [n], "data_offsets": [0, 8 * n]}}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


def test_a_promise_of_much_allocates_nothing(path):
    for n in (2**40, 2**47, 2**60, -1):
        path.write_bytes(huge(n))
        with pytest.raises(ModelFileError, match="the header is damaged: array 'a'"):
            load(path)


def test_a_file_too_large_for_the_memory_left_is_a_memory_error_that_names_it(path, monkeypatch):
    def full(*_, **__):
        raise OSError(12, "Cannot allocate memory")

    save(fitted("LogisticRanker"), path)
    monkeypatch.setattr("mmap.mmap", full)
    with pytest.raises(MemoryError, match=r"ranker.model does not fit into the memory"):
        load(path)


def forged(path, change, name="LogisticRanker"):
    """Save a ranker, then change what the file holds, with a checksum that is right."""
    save(fitted(name), path)
    arrays, strings = read_arrays(path)
    arrays = {name: array.copy() for name, array in arrays.items()}
    state = json.loads(strings["state"])
    change(arrays, strings, state)
    strings["state"] = json.dumps(state)
    write_arrays(path, arrays, strings)


def put(target, key, value):
    target[key] = value


FORGERIES = [
    (lambda a, s, t: put(s, "deltarank_format", "2"), "reads model format 1; the file has format"),
    (lambda a, s, t: s.pop("deltarank_format"), "the file has format None"),
    (lambda a, s, t: put(t, "ranker", "os.system"), "unknown ranker 'os.system'; known are Logis"),
    (lambda a, s, t: put(t, "ranker", ["x"]), "not that of a ranker"),
    (lambda a, s, t: t.pop("values"), "not that of a ranker"),
    (lambda a, s, t: a.pop("intercept_"), "does not hold what a LogisticRanker consists of"),
    (lambda a, s, t: put(a, "more", X), "does not hold what a LogisticRanker consists of"),
    (lambda a, s, t: put(t["values"], "more", 1), "does not hold what a LogisticRanker"),
    (lambda a, s, t: put(a, "coef_", a["coef_"][:2]), r"coef_ must have shape \(3, 4\); got \(2"),
    (lambda a, s, t: put(a, "coef_", a["coef_"][0]), r"coef_ must have shape \(3, 4\); got \(4,"),
    (lambda a, s, t: put(a, "coef_", a["coef_"] * np.nan), "coef_ must be finite"),
    (lambda a, s, t: put(a, "coef_", a["coef_"].astype(np.int8)), "coef_ must be floats; got int8"),
    (lambda a, s, t: put(a, "n_iter_", a["n_iter_"] + 0.5), "n_iter_ must be integers; got float"),
    (lambda a, s, t: put(t["values"], "n_features_in_", 5), r"must have shape \(3, 5\)"),
    (lambda a, s, t: put(t["values"], "n_features_in_", -1), "must be a positive integer; got -1"),
    (lambda a, s, t: put(t["values"], "_form", "eval"), "the form of labels is unknown: 'eval'"),
    (lambda a, s, t: put(t["values"], "feature_names_in_", ["a"]), "must be 4 strings"),
    (lambda a, s, t: put(t["values"]["classes_"], "kind", "V8"), "not that of a ranker"),
    (lambda a, s, t: put(t["values"]["classes_"], "names", []), "classes_ must be the names"),
    (lambda a, s, t: put(t["parameters"], "evil", 1), "not that of a ranker"),
]


STUMP_FORGERIES = [
    (lambda a: put(a, "features_", a["features_"] + 4), "must be numbers of features, below 4"),
    (lambda a: put(a, "features_", a["features_"] - 4), "must be numbers of features, below 4"),
    (lambda a: put(a, "votes_", a["votes_"][:, :2]), r"votes_ must have shape \(5, 3, 3\)"),
]


@pytest.mark.parametrize(("change", "problem"), STUMP_FORGERIES)
def test_kernels_never_see_a_feature_that_is_not_there(path, change, problem):
    forged(path, lambda arrays, strings, state: change(arrays), "AdaBoostRanker")
    with pytest.raises(ModelFileError, match=problem):
        load(path)


@pytest.mark.parametrize(("change", "problem"), FORGERIES)
def test_a_right_checksum_is_not_enough(path, change, problem):
    forged(path, change)
    with pytest.raises(ModelFileError, match=problem):
        load(path)


NASTY = [None, True, -1, 0, 10**30, 1e308, float("nan"), float("-inf"), "x", "", [], [[1], 2], {}]


def leaves(value, place=()):
    """Yield where each value of a state stands, those of longer lists at their ends only."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*place, key))
    elif isinstance(value, list):
        for i in sorted({0, len(value) - 1} & set(range(len(value)))):
            yield from leaves(value[i], (*place, i))
    yield place


def exchanged(state, place, value):
    if not place:
        return value
    changed = json.loads(json.dumps(state))
    target = changed
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return changed


def ranks_or_refuses(path):
    """Load and rank: what is loaded must rank rows as any ranker does, or say that it cannot."""
    try:
        ranker = load(path)
    except ModelFileError:
        return False
    try:
        assert ranker.rank(X[:2]).shape == (2, len(ranker.classes_))
    except ValueError as error:  # other features than the file says, or a device not there
        assert "features" in str(error) or "device" in str(error)  # noqa: PT017
    return True


@pytest.mark.parametrize("form", ["sets", "binary"])
@pytest.mark.parametrize("name", STORED)
def test_whatever_a_state_holds_is_refused_or_ranks(path, name, form):
    save(fitted(name, form), path)
    arrays, strings = read_arrays(path, mapped=False)
    state = json.loads(strings["state"])
    n_refused = 0
    for number, place in enumerate(leaves(state)):
        for value in NASTY[number % 3 :: 3]:
            strings["state"] = json.dumps(exchanged(state, place, value))
            write_arrays(path, arrays, strings)
            n_refused += not ranks_or_refuses(path)
    assert n_refused > 20


@pytest.mark.parametrize("name", STORED)
def test_whatever_arrays_a_file_holds_is_refused_or_ranks(path, name):
    save(fitted(name), path)
    arrays, strings = read_arrays(path, mapped=False)
    for key, array in arrays.items():
        for forged in (
            array[:0],
            array[:-1],
            array[None],
            array.reshape(-1),
            np.full_like(array, 120),
            -array if array.dtype != bool else ~array,
            np.full(array.shape, np.inf),
        ):
            write_arrays(path, {**arrays, key: forged}, strings)
            ranks_or_refuses(path)


@pytest.mark.parametrize("name", ["AdaBoostRanker", "LogisticRanker"])
def test_a_small_file_takes_little_memory_whatever_it_promises(path, name):
    forged(path, lambda a, s, t: put(t["values"], "n_features_in_", 10**8), name)
    tracemalloc.start()
    try:
        model = Model.load(path, mmap=False)
        Reader(model.preparation, may_miss=False)
    except ModelFileError:
        pass
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < 50e6


def test_a_pipe_is_no_model_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="a pipe or a device"):
        load(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="a pipe or a device"):
        load("/dev/zero")


def test_a_ranker_that_is_not_mapped_outlives_its_file(path):
    ranker = fitted("LogisticRanker")
    save(ranker, path)
    kept = load(path, mmap=False)
    path.write_bytes(b"")  # in place: a mapped array would end the process
    assert np.array_equal(kept.rank(X), ranker.rank(X))


def test_labels_of_two_levels_come_back(path):
    columns = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    ranker = LogisticRanker().fit(X, pd.DataFrame(MARKS, columns=columns))
    save(ranker, path)
    assert load(path).classes_.tolist() == columns.tolist()
    assert load(path).rank(X[:3]).tolist() == ranker.rank(X[:3]).tolist()


class TestRefusals:
    def test_code_of_others_cannot_be_saved(self, path):
        ranker = WeightedBinaryRelevance(LogisticRegression()).fit(X, MARKS)
        with pytest.raises(ValueError, match="LogisticRegression cannot be saved: a model file"):
            save(ranker, path)
        assert not path.exists()

    def test_functions_cannot_be_saved(self, path):
        ranker = LogisticRanker(weight=lambda Y: np.ones(len(Y))).fit(X, MARKS)
        with pytest.raises(ValueError, match="weight cannot go into a model file, which holds num"):
            save(ranker, path)

    def test_other_classes_and_unfitted_rankers_cannot_be_saved(self, path):
        from sklearn.exceptions import NotFittedError

        with pytest.raises(
            ValueError, match="LogisticRegression cannot be saved; rankers that can"
        ):
            save(LogisticRegression(), path)
        with pytest.raises(NotFittedError):
            save(LogisticRanker(), path)
        impostor = type("LogisticRanker", (LogisticRanker,), {})().fit(X, MARKS)
        with pytest.raises(ValueError, match="it is another class than deltarank"):
            save(impostor, path)


# A process that saves without end is killed again and again; what is left must be whole.
KILL_SAVERS = """
import os, signal, sys, time
import numpy as np
from deltarank import load, save

path = sys.argv[1]
for delay in np.random.default_rng(0).uniform(0.005, 0.15, 20):
    child = os.fork()
    if child == 0:
        ranker = load(path)
        ranker.coef_ = np.array(ranker.coef_)
        while True:
            ranker.coef_ += 1
            save(ranker, path)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    print(len(os.listdir(os.path.dirname(path))) - 1, *np.unique(load(path).coef_))
"""


def test_killing_a_save_leaves_a_whole_file(path):
    ranker = LogisticRanker().fit(X[:, :2], MARKS)
    ranker.coef_ = np.zeros((3, 400_000), np.float32)
    ranker.n_features_in_ = 400_000
    save(ranker, path)
    result = subprocess.run(
        [sys.executable, "-c", KILL_SAVERS, str(path)], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    kept = [list(map(float, values)) for _, *values in lines]
    assert len(kept) == 20
    assert all(len(values) == 1 for values in kept), "half old, half new"
    assert kept == sorted(kept)
    assert kept[-1][0] > 1, "hardly a save was finished"
    litter = [int(count) for count, *_ in lines]
    assert max(litter) == 1, "no save was killed half-way, or what it left was not tidied up"
