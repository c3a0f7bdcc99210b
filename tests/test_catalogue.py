"""The catalogue: entries, files found, downloaded and verified, and what they hold."""

import hashlib
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy import sparse

import plain_readers
from deltarank import datasets
from deltarank.datasets import CATALOGUE, DataFileError, fetch, load, loading
from deltarank.datasets.catalogue import DataSet, File, Relevant

# Table 1 of the paper; of emotions it prints a mean of 1.96, the training rows have 1.81.
TABLE1 = {
    "image": (1200, 800, 135, 5, 1, 1.24, 3),
    "emotions": (391, 202, 72, 6, 1, 1.81, 3),
    "scene": (1211, 1196, 294, 6, 1, 1.06, 3),
    "yeast": (1500, 917, 103, 14, 1, 4.23, 11),
    "mediamill": (30993, 12914, 120, 101, 0, 4.36, 18),
}
ALL_HERE = [*TABLE1, "delicious", "eurlex-4k"]


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.mark.data
@pytest.mark.parametrize("name", TABLE1)
def test_the_statistics_are_those_of_table_1(data_folder, name):
    assert tuple(datasets.statistics(name).values())[1:] == TABLE1[name]


def read_plainly(folder, entry, part):
    path = folder / entry.parts[part].name
    if entry.format == "arff":
        names = plain_readers.label_names(folder / entry.labels.name)
        return plain_readers.read_arff(path, names)
    sizes = {"n_features": entry.n_features, "n_labels": entry.n_labels}
    is_xmc = entry.format == "xmc"
    packed = path.with_name(f"{path.name}.xz")
    return plain_readers.read_svm(packed, **sizes, first_feature=1 - is_xmc, header=int(is_xmc))


@pytest.mark.data
@pytest.mark.parametrize("name", ALL_HERE)
def test_real_sets_are_what_a_plain_reading_gives(data_folder, name):
    entry = CATALOGUE[name]
    split = load(name)
    parts = [(split.X_train, split.Y_train), (split.X_test, split.Y_test)]
    assert [X.shape for X, _ in parts] == [
        (entry.n_train, entry.n_features),
        (entry.n_test, entry.n_features),
    ]
    if entry.split == "random":
        X, Y = read_plainly(data_folder, entry, 0)
        order = np.random.default_rng(0).permutation(len(X))
        rows = order[: entry.n_train], order[entry.n_train :]
        expected = [(X[chosen], Y[chosen]) for chosen in rows]
    else:
        expected = [read_plainly(data_folder, entry, part) for part in (0, 1)]
    for (X, Y), (plain_X, plain_Y) in zip(parts, expected, strict=True):
        assert np.array_equal(dense(X), dense(plain_X))
        assert (plain_Y != Y).nnz == 0
        assert not np.diff(Y.indptr).max() > entry.relevant[0].largest


def test_entries_hang_together():
    for name, entry in CATALOGUE.items():
        assert name == entry.name
        assert len(entry.parts) in (1, 2)
        assert all(file.name.startswith(f"{name}/") for file in entry.files)
        assert len(entry.relevant) in (0, len(entry.parts))
        for file in entry.files:
            assert (file.sha256 is None) == (file.url is None)
            assert file.sha256 is None or len(file.sha256) == 64
            assert file.url is None or file.url.endswith(file.name)
    checksums = [f.sha256 for entry in CATALOGUE.values() for f in entry.files if f.sha256]
    assert len(set(checksums)) == len(checksums)


ARFF = "@relation r\n@attribute a numeric\n@attribute c {x,y}\n@attribute l {0,1}\n@data\n"
CONTENT = {
    "tiny-train.arff": ARFF + "1,x,1\n3,y,0\n?,x,1\n",
    "tiny-test.arff": ARFF + "?,y,1\n",
    "tiny.xml": '<labels><label name="l"/></labels>',
}


@pytest.fixture
def served(tmp_path):
    """Serve the files of a little set over HTTP; give the folder and the address."""
    folder = tmp_path / "served"
    folder.mkdir()
    for name, text in CONTENT.items():
        (folder / name).write_text(text)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def tiny(served, tmp_path, monkeypatch):
    """Enter the little set in the catalogue, with an empty cache."""
    _, address = served
    files = [
        File(f"tiny/{name}", hashlib.sha256(text.encode()).hexdigest(), address + name)
        for name, text in CONTENT.items()
    ]
    entry = DataSet("tiny", 3, 1, 2, 1, tuple(files[:2]), files[2])
    monkeypatch.delenv("DELTARANK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(CATALOGUE, "tiny", entry)
    return entry


class TestDownload:
    def test_what_is_absent_is_downloaded_once(self, tiny, served, tmp_path):
        folder, _ = served
        split = load("tiny")
        assert split.X_train.tolist() == [[1, 1, 0], [3, 0, 1], [2, 1, 0]]
        assert split.X_test.tolist() == [[2, 0, 1]]
        assert split.feature_names == ("a", "c=x", "c=y")
        assert split.label_names == ("l",)
        for path in folder.iterdir():
            path.unlink()
        assert np.array_equal(load("tiny").X_train, split.X_train)
        kept = sorted(path.name for path in (tmp_path / "cache/deltarank/tiny").iterdir())
        assert kept == sorted(CONTENT)

    def test_another_file_at_the_address_is_refused_and_not_kept(self, tiny, served, tmp_path):
        folder, _ = served
        (folder / "tiny-test.arff").write_text("something else")
        with pytest.raises(
            FileNotFoundError, match=r"'tiny' is not here, and downloading .* failed"
        ):
            load("tiny")
        assert not (tmp_path / "cache/deltarank/tiny/tiny-test.arff").exists()

    def test_without_a_network_the_error_says_where_to_put_which_file(self, tiny, monkeypatch):
        gone = [replace(file, url="http://127.0.0.1:9/x.arff") for file in tiny.parts]
        monkeypatch.setitem(CATALOGUE, "tiny", replace(tiny, parts=tuple(gone)))
        with pytest.raises(
            FileNotFoundError,
            match=r"get it from http.* and put it at .*cache/deltarank/tiny/tiny-train\.arff; "
            "DELTARANK_DATA may name another folder",
        ):
            load("tiny")

    def test_without_pooch_the_error_says_so(self, tiny, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "pooch", None)
        with pytest.raises(FileNotFoundError, match=r"pip install 'deltarank\[download\]'"):
            load("tiny")


class TestFolder:
    def test_the_named_folder_comes_first_and_is_verified(self, tiny, tmp_path, monkeypatch):
        folder = tmp_path / "mine" / "tiny"
        folder.mkdir(parents=True)
        for name, text in CONTENT.items():
            (folder / name).write_text(text)
        monkeypatch.setenv("DELTARANK_DATA", str(tmp_path / "mine"))
        assert load("tiny").X_train.shape == (3, 3)
        assert not (tmp_path / "cache").exists()
        (folder / "tiny-train.arff").write_text(CONTENT["tiny-train.arff"] + "1,x,1\n")
        with pytest.raises(DataFileError, match="not the file of tiny that is wanted: its SHA-256"):
            load("tiny")

    def test_sets_without_an_address_are_verified_by_what_they_hold(self, tmp_path, monkeypatch):
        entry = DataSet(
            "odd", 2, 1, 3, 2, (File("odd/train.svm"), File("odd/test.svm")),
            relevant=(Relevant(1, 3, 2), Relevant(1, 1, 1)), format="libsvm", dense=True,
        )  # fmt: skip
        monkeypatch.setitem(CATALOGUE, "odd", entry)
        monkeypatch.setenv("DELTARANK_DATA", str(tmp_path))
        with pytest.raises(
            FileNotFoundError, match=r"no address .*/odd/train\.svm .* \(or \.gz, \.bz2, \.xz\)"
        ):
            load("odd")
        datasets.write_libsvm(tmp_path / "odd/train.svm.xz", np.eye(2, 3), [[1, 1], [0, 1]])
        datasets.write_libsvm(tmp_path / "odd/test.svm", np.ones((1, 3)), [[1, 0]])
        assert load("odd").X_train.tolist() == np.eye(2, 3).tolist()
        datasets.write_libsvm(tmp_path / "odd/test.svm", np.ones((1, 3)), [[1, 1]])
        with pytest.raises(
            DataFileError, match=r"not the data set 'odd': 1 rows, .* 1 relevant labels wanted; got"
        ):
            load("odd")

    def test_sets_of_one_piece_are_split_by_seed(self, tmp_path, monkeypatch):
        entry = DataSet("whole", 6, 4, 1, 1, (File("whole/all.svm"),), format="libsvm", dense=True)
        monkeypatch.setitem(CATALOGUE, "whole", entry)
        monkeypatch.setenv("DELTARANK_DATA", str(tmp_path))
        X = np.arange(1.0, 11)[:, None]
        datasets.write_libsvm(tmp_path / "whole/all.svm", X, np.ones((10, 1), int))
        splits = [load("whole", random_state=seed) for seed in (0, 0, 1)]
        assert np.array_equal(splits[0].X_train, splits[1].X_train)
        assert not np.array_equal(splits[0].X_train, splits[2].X_train)
        for split in splits:
            rows = np.sort(np.concatenate([split.X_train, split.X_test]).ravel())
            assert np.array_equal(rows, X.ravel())


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="unknown data set 'emotion'; choose one of bibtex, birds"):
        load("emotion")


def test_folders_follow_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("DELTARANK_DATA", str(tmp_path / "a"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert fetch.folders() == [tmp_path / "a", tmp_path / "b/deltarank"]
    monkeypatch.delenv("DELTARANK_DATA")
    assert fetch.folders() == [tmp_path / "b/deltarank"]


def test_statistics_of_the_catalogue_are_those_counted(tiny):
    assert loading.statistics("tiny")["ave."] == round(2 / 3, 2)
