"""Columns of vectors, such as embeddings: read, scaled as a block, kept in models, served."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from deltarank.cli import main
from deltarank.datasets import Encoder, Preparation, read
from deltarank.datasets.readers.errors import DataFileError
from deltarank.datasets.readers.formats import read_blocks
from deltarank.datasets.readers.many_files import read_many
from deltarank.datasets.vectors import VectorColumn
from deltarank.serving.items import ItemError, Reader
from deltarank.serving.single_row import SingleRow

RNG = np.random.default_rng(0)
N, D = 60, 5
VECTORS = RNG.normal(3.0, 2.0, (N, D))
TEXTS = [f"word{i % 7} and word{i % 5} on the table" for i in range(N)]
TAGS = [sorted({f"t{i % 3}", f"t{int(VECTORS[i, 0] > 3) + 3}"}) for i in range(N)]


def scaled_as_documented(vectors):
    centred = vectors - vectors.mean(axis=0)
    return centred / np.sqrt((centred**2).sum(axis=1).mean())


def write_jsonl(path, vectors=VECTORS):
    rows = zip(TEXTS, [None if v is None else list(v) for v in vectors], TAGS, strict=True)
    lines = [json.dumps({"text": t, "embedding": v, "tags": tags}) for t, v, tags in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_parquet(path, kind):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    vectors = pa.array([row.tolist() for row in VECTORS], type=kind(pa))
    parquet.write_table(pa.table({"text": TEXTS, "embedding": vectors, "tags": TAGS}), path)
    return path


def write_csv(path):
    table = pd.DataFrame({"text": TEXTS, "embedding": [json.dumps(v.tolist()) for v in VECTORS]})
    table.assign(tags=[";".join(tags) for tags in TAGS]).to_csv(path, index=False)
    return path


KINDS = {
    "parquet, lists": lambda path: write_parquet(path, lambda pa: pa.list_(pa.float64())),
    "parquet, fixed": lambda path: write_parquet(path, lambda pa: pa.list_(pa.float32(), D)),
    "jsonl": write_jsonl,
    "csv": write_csv,
}


@pytest.mark.parametrize("write", KINDS.values(), ids=KINDS)
def test_vectors_are_centred_and_scaled_as_one_block_beside_text(write, tmp_path):
    path = write(tmp_path / "items")
    data = read(path, labels="tags")
    assert [column.kind for column in data.encoder.columns] == ["text", "vector"]
    assert data.feature_names[-D:] == tuple(f"embedding[{j}]" for j in range(D))
    assert sparse.issparse(data.X)
    wanted = scaled_as_documented(VECTORS)
    assert_allclose(data.X[:, -D:].toarray(), wanted, atol=1e-5)
    assert_allclose((wanted**2).sum(axis=1).mean(), 1)
    # Blocks of a file, as they are ranked, and many files have the same features.
    preparation = Preparation.fit(data, scale=True)
    blocks = [preparation.transform(block.X) for block in preparation.read_blocks(path)]
    assert_allclose(sparse.vstack(blocks).toarray(), data.X.toarray())
    together = read_many([path, path], labels="tags", n_bytes=900)
    assert_allclose(together.X[:N, -D:].toarray(), wanted, atol=1e-5)


def test_vectors_alone_are_dense_and_keep_their_precision():
    for kind in (np.float32, np.float64):
        encoder, X = Encoder.fit_transform({"embedding": VECTORS.astype(kind)})
        assert X.dtype == kind
        assert_allclose(X, scaled_as_documented(VECTORS), rtol=1e-4)
        assert not encoder.is_sparse


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_hold_vectors(frame):
    rows = [row.tolist() for row in VECTORS]
    encoder = Encoder.fit(pd.DataFrame({"embedding": rows}))
    wanted = scaled_as_documented(VECTORS)
    assert_allclose(encoder.transform(frame({"embedding": rows})), wanted, rtol=1e-9)


def test_a_missing_vector_is_the_mean_and_a_constant_one_adds_nothing():
    column = VectorColumn.fit("v", [[1.0, 5.0], None, [3.0, 5.0], ""])
    assert_array_equal(column.features([None, [2.0, 5.0]]), np.zeros((2, 2)))
    same = VectorColumn.fit("v", [[1.0, 5.0], [1.0, 5.0]])
    assert_array_equal(same.features([[1.0, 5.0]]), np.zeros((1, 2)))


def test_an_encoder_of_vectors_goes_through_json():
    encoder = Encoder.fit({"embedding": VECTORS, "text": TEXTS})
    again = Encoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    assert Encoder.from_json(encoder.to_json(packed=True)) == encoder


@pytest.mark.parametrize("damage", [
    {"scale": 0.0}, {"scale": float("nan")}, {"scale": "1"}, {"mean": [float("inf")] * D},
    {"mean": [[1.0]]}, {"mean": ["a"]}, {"more": 1},
])  # fmt: skip
def test_a_damaged_column_is_refused(damage):
    (state,) = Encoder.fit({"embedding": VECTORS}).to_json()
    with pytest.raises(ValueError, match="column 'embedding' of an encoder is damaged"):
        Encoder.from_json([{**state, **damage}])


@pytest.mark.parametrize(("odd", "problem"), [
    ([1.0, 2.0], "a vector of 5 numbers is wanted; got 2 numbers"),
    ([float("nan")] * D, "the numbers of a vector must be finite"),
])  # fmt: skip
def test_an_odd_vector_is_told_with_its_line(odd, problem, tmp_path):
    path = write_jsonl(tmp_path / "items.jsonl", [*VECTORS[:7], odd, *VECTORS[8:]])
    with pytest.raises(DataFileError, match=rf"line 8.*'embedding'.*{problem}"):
        read(path, labels="tags")


def test_new_rows_must_have_vectors_of_the_same_width(tmp_path):
    encoder = Encoder.fit({"embedding": VECTORS})
    with pytest.raises(ValueError, match="a vector of 5 numbers is wanted; got 4 numbers"):
        encoder.transform({"embedding": VECTORS[:, :4]})
    with pytest.raises(ValueError, match="row 1: a vector of 5 numbers is wanted; got 'red hat'"):
        encoder.transform({"embedding": [[1.0] * D, "red hat"]})


def test_one_item_is_served_as_a_table_is_read():
    encoder = Encoder.fit({"embedding": VECTORS, "text": TEXTS})
    preparation = Preparation(len(encoder.feature_names()), encoder=encoder)
    item = {"embedding": VECTORS[3].tolist(), "text": TEXTS[3]}
    wanted = encoder.transform({name: [cell] for name, cell in item.items()}).toarray()
    assert_allclose(SingleRow(preparation)(item).toarray(), wanted)
    reader = Reader(preparation, may_miss=False)
    assert_allclose(reader([item, {**item, "embedding": None}])[[0]].toarray(), wanted)
    with pytest.raises(ItemError, match="'embedding': a list of numbers or null is wanted; got te"):
        reader([{**item, "embedding": "far"}])


def test_commands_fit_rank_and_evaluate_text_with_vectors(tmp_path, monkeypatch, capsys):
    path, model = write_jsonl(tmp_path / "items.jsonl"), tmp_path / "m.delta"

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["deltarank", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr()

    told = run("fit", path, "--model", model, "--C", "1000").err
    assert "column 'embedding': vector, 5 features" in told
    ranked = [json.loads(line) for line in run("rank", model, path, "--top", "5").out.splitlines()]
    # Whether the first number is large decides between t3 and t4: a line on one number tells.
    oracle = LogisticRegression(C=1000).fit(VECTORS, VECTORS[:, 0] > 3)
    assert oracle.score(VECTORS, VECTORS[:, 0] > 3) == 1
    for row, tags in zip(ranked, TAGS, strict=True):
        order = row["labels"]
        assert (order.index("t4") < order.index("t3")) == ("t4" in tags)
    assert "rank_loss" in run("evaluate", model, path).out


class TestVectorsBeside:
    """An .npy file beside a table that has no column of vectors."""

    @pytest.fixture
    def table(self, tmp_path):
        path = tmp_path / "rows.jsonl"
        rows = [{"text": text, "tags": tags} for text, tags in zip(TEXTS, TAGS, strict=True)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def save(self, table, vectors):
        path = table.with_name("vectors.npy")
        np.save(path, vectors)
        return path

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_they_are_what_a_column_of_vectors_is(self, table, dtype, tmp_path):
        beside = read(table, vectors=self.save(table, VECTORS.astype(dtype)))
        within = read(write_jsonl(tmp_path / "within.jsonl", VECTORS.astype(dtype).tolist()))
        assert beside.feature_names[-1] == f"vectors[{D - 1}]"
        assert_allclose(beside.X[:, -D:].toarray(), within.X[:, -D:].toarray(), atol=1e-5)
        assert (beside.Y != within.Y).nnz == 0

    def test_blocks_of_rows_have_their_own(self, table):
        path = self.save(table, VECTORS)
        data = read(table, vectors=path)
        blocks = read_blocks(table, data.encoder, format="jsonl", n_bytes=500, vectors=path)
        parts = [block.X for block in blocks]
        assert len(parts) > 3
        assert_allclose(sparse.vstack(parts).toarray(), data.X.toarray())

    @pytest.mark.parametrize("n_rows", [N - 1, N + 1])
    def test_too_few_and_too_many_are_refused(self, table, n_rows):
        encoder = read(table, vectors=self.save(table, VECTORS)).encoder
        path = self.save(table, np.ones((n_rows, D)))
        wanted = rf"vectors.npy: one vector per row of .*rows.jsonl is wanted, {N}; got {n_rows}"
        with pytest.raises(DataFileError, match=wanted):
            read(table, vectors=path)
        with pytest.raises(DataFileError, match=r"one vector per row of .*; got"):
            list(read_blocks(table, encoder, format="jsonl", n_bytes=500, vectors=path))

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (np.ones(N), "one row per row of the table is wanted; got float64 of shape"),
            (np.full((N, D), "a"), "one row per row of the table is wanted; got <U1 of shape"),
            (np.full((N, D), None), "an .npy file of numbers is wanted"),
            (b"1 2 3", "an .npy file of numbers is wanted"),
            (b"", "an .npy file of numbers is wanted"),
        ],
        ids=range(5),
    )
    def test_what_is_no_array_of_vectors_is_refused(self, table, content, problem):
        path = table.with_name("vectors.npy")
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            np.save(path, content)
        with pytest.raises(DataFileError, match=problem):
            read(table, vectors=path)

    def test_many_files_have_one_array_for_all_their_rows(self, table, tmp_path):
        lines = table.read_text().splitlines(keepends=True)
        folder = tmp_path / "parts"
        folder.mkdir()
        for name, part in (("1.jsonl", lines[:20]), ("2.jsonl", lines[20:])):
            (folder / name).write_text("".join(part))
        path, paths = self.save(table, VECTORS), sorted(folder.iterdir())
        many = read_many(paths, vectors=path)
        assert_allclose(many.X.toarray(), read(table, vectors=path).X.toarray())
        with pytest.raises(DataFileError, match=f"is wanted, {N}; got {N + 1}"):
            read_many(paths, vectors=self.save(table, np.ones((N + 1, D))))

    def test_commands_take_them(self, table, monkeypatch, capsys):
        path, model = self.save(table, VECTORS), table.with_name("m.delta")

        def run(*arguments, status=0):
            monkeypatch.setattr("sys.argv", ["deltarank", *map(str, arguments)])
            with pytest.raises(SystemExit) as ended:
                main()
            assert (ended.value.code or 0) == status
            return capsys.readouterr()

        told = run("fit", table, "--vectors", path, "--model", model, "--C", "1").err
        assert "column 'vectors': vector, 5 features" in told
        beside = ("--vectors", path)
        ranked = [json.loads(line) for line in run("rank", model, table, *beside).out.splitlines()]
        assert [row["row"] for row in ranked] == list(range(N))
        assert "rank_loss" in run("evaluate", model, table, *beside).out
        assert "vectors[0]" in run("explain", model, table, *beside, "--top", "30").out
        refused = run("rank", model, table, status=1).err
        assert "has no column 'vectors', a feature in training; --vectors names" in refused
        pattern = table.with_name("*.jsonl")
        assert "goes with one table" in run("rank", model, pattern, *beside, status=1).err
        refused = run("fit", pattern, *beside, "--dask", "local", "--model", model, status=1).err
        assert "goes with one table" in refused

    def test_a_strange_number_is_told_with_its_row(self, table):
        vectors = VECTORS.copy()
        vectors[7, 1] = np.inf
        with pytest.raises(DataFileError, match=r"line 8.*vectors.*must be finite"):
            read(table, vectors=self.save(table, vectors))

    def test_a_table_with_such_a_column_and_other_formats_refuse_them(self, table, tmp_path):
        path = self.save(table, VECTORS[:2])
        named = tmp_path / "named.csv"
        named.write_text("vectors,tags\n1,a\n2,b\n")
        with pytest.raises(ValueError, match="has a column 'vectors' of its own"):
            read(named, vectors=path)
        (tmp_path / "a.svm").write_text("1 1:2\n")
        with pytest.raises(TypeError, match="no option 'vectors'"):
            read(tmp_path / "a.svm", vectors=path)
