"""Tables with names: CSV, TSV, JSON lines, Parquet, Arrow, and the encoder of their columns."""

import contextlib
import csv
import gzip
import io
import json
import re
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, ipc, parquet
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from deltarank.datasets import DataFileError, Encoder, read
from deltarank.datasets.readers.cells import as_numbers
from deltarank.datasets.readers.formats import read_blocks
from deltarank.datasets.readers.label_lists import from_lists
from deltarank.datasets.text import column

FRAME = pd.DataFrame(
    {
        "size": [1.5, -2e-7, 3.0, 1e10],
        "count": [1, 2, 3, 4],
        "colour": ["red", "blue", "red", "green, dark"],
        "body": ["the cat sat on a mat", "dogs and cats and dogs", "a cat", 'said "no\nway" twice'],
        "tags": [["x", "y"], [], ["y"], ["z"]],
        "good": [1, 0, 0, 1],
        "cheap": [True, False, True, True],
    }
)
LISTS = [["x", "y"], [], ["y"], ["z"]]


def write_csv(path, **options):
    FRAME.assign(tags=["|".join(tags) for tags in LISTS]).to_csv(path, index=False, **options)


WRITERS = {
    "csv": write_csv,
    "tsv": lambda path: write_csv(path, sep="\t"),
    "semicolons.csv": lambda path: write_csv(path, sep=";"),
    "csv.gz": write_csv,
    "jsonl": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "parquet": lambda path: FRAME.to_parquet(path),
    "dictionary.parquet": lambda path: FRAME.astype({"colour": "category"}).to_parquet(path),
    "feather": lambda path: feather.write_feather(pa.Table.from_pandas(FRAME), str(path)),
    "arrows": lambda path: write_stream(path),
}


def write_stream(path):
    table = pa.Table.from_pandas(FRAME)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)


@pytest.fixture
def file(tmp_path):
    def make(content, name="data"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_gives_the_same_rows(tmp_path, kind):
    path = tmp_path / f"data.{kind}"
    WRITERS[kind](path)
    options = {"separator": "|", "ignore": ["body", "good", "cheap"]}
    lists = read(path, labels="tags", **options)
    colours = [FRAME["colour"] == colour for colour in ("blue", "green, dark", "red")]
    expected = np.column_stack([FRAME["size"], FRAME["count"], *colours])
    assert np.array_equal(lists.X, expected.astype(float))
    assert lists.label_names == ("x", "y", "z")
    assert lists.Y.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1]]
    marks = read(path, labels=["cheap", "good"], ignore=["tags"])
    assert marks.Y.toarray().tolist() == [[1, 1], [0, 0], [1, 0], [1, 1]]
    assert [column.kind for column in marks.encoder.columns] == [
        "number", "number", "category", "text",
    ]  # fmt: skip


@pytest.mark.parametrize("n_rows", [30, 80])
def test_text_is_weighed_as_scikit_learn_does(n_rows):
    generator = np.random.default_rng(0)
    words = [f"Word{i}" for i in range(40)]
    texts = [" ".join(generator.choice(words, 6)) for _ in range(n_rows)] + ["rare", "", "é 42"]
    least = 1 if n_rows + 3 < 50 else 2
    theirs = TfidfVectorizer(sublinear_tf=True, min_df=least)
    expected = theirs.fit_transform(texts)
    encoder = Encoder.fit({"t": texts}, {"t": "text"})
    assert encoder.feature_names() == [f"t:{word}" for word in theirs.get_feature_names_out()]
    np.testing.assert_allclose(encoder.transform({"t": texts}).toarray(), expected.toarray())
    new = ["word1 unheard word1 word2", None, "?"]
    np.testing.assert_allclose(
        encoder.transform({"t": new}).toarray(),
        theirs.transform(["word1 unheard word1 word2", "", ""]).toarray(),
    )


TABLE = {"n": [1.0, None, 3.0], "c": ["a", "b", None], "t": ["one two two", "two", ""]}
KINDS = {"t": "text"}


def packed(letters, starts, weights=(1.0, 2.0)):
    """Return the state of an encoder with one column of text, as model files hold it."""
    arrays = {
        "letters": np.frombuffer(letters, np.uint8),
        "starts": np.array(starts, np.int64),
        "weights": np.array(weights),
    }
    return [{"kind": "text", "name": "a", **arrays}]


class TestEncoder:
    def test_its_packed_state_is_one_blob_and_does_the_same(self):
        encoder = Encoder.fit({"a": ["öljy two two", "two", ""]}, {"a": "text"})
        (state,) = encoder.to_json(packed=True)
        assert bytes(state["letters"]) == "twoöljy".encode()
        assert state["starts"].tolist() == [0, 3, 8]
        assert Encoder.from_json([state]) == encoder

    def test_of_too_many_words_those_of_the_most_rows_are_kept(self, monkeypatch):
        texts = ["aa bb cc dd", "bb cc dd", "cc dd", "dd ee ee ee ee"]
        monkeypatch.setattr(column, "MOST_WORDS", 3)
        encoder, X = Encoder.fit_transform({"t": texts}, {"t": "text"})
        assert encoder.feature_names() == ["t:bb", "t:cc", "t:dd"]
        theirs = TfidfVectorizer(sublinear_tf=True, vocabulary=["bb", "cc", "dd"])
        np.testing.assert_allclose(X.toarray(), theirs.fit_transform(texts).toarray())

    def test_text_without_words_has_no_features(self):
        encoder, X = Encoder.fit_transform({"t": ["a", "?", None]}, {"t": "text"})
        assert X.shape == encoder.transform({"t": ["word"] * 3}).shape == (3, 0)
        assert Encoder.from_json(json.loads(json.dumps(encoder.to_json()))) == encoder
        assert Encoder.from_json(encoder.to_json(packed=True)) == encoder

    def test_its_state_is_json_and_does_the_same(self):
        encoder = Encoder.fit(TABLE, KINDS)
        again = Encoder.from_json(json.loads(json.dumps(encoder.to_json())))
        assert again == encoder
        new = {"n": [None, -1], "c": ["a", "never seen"], "t": ["two zebras", "three"]}
        expected = [[2, 1, 0, 0, 1], [-1, 0, 0, 0, 0]]
        assert again.transform(new).toarray().tolist() == expected
        assert (again.transform(new) != encoder.transform(new)).nnz == 0

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
    def test_any_frame_will_do(self, make):
        encoder = Encoder.fit(TABLE, KINDS)
        expected = encoder.transform(TABLE).toarray()
        assert np.array_equal(encoder.transform(make(TABLE)).toarray(), expected)

    def test_many_categories_are_kept_sparse(self):
        cells = [f"c{i}" for i in range(200)]
        X = Encoder.fit({"c": cells}).transform({"c": cells})
        assert sparse.issparse(X)
        assert np.array_equal(X.sum(axis=1), np.ones(200))

    @pytest.mark.parametrize(
        ("state", "problem"),
        [
            ({}, "an encoder must be a list of columns; got dict"),
            ([{"kind": "number"}], "each column of an encoder must have a kind and a name"),
            ([{"kind": "script", "name": "a"}], "unknown kind 'script'"),
            ([{"kind": "number", "name": "a"}], r"a number column must have \['fill', 'name'\]"),
            ([{"kind": "number", "name": "a", "fill": np.nan}], "'a' of an encoder is damaged"),
            ([{"kind": "number", "name": "a", "fill": "1"}], "'a' of an encoder is damaged"),
            ([{"kind": "category", "name": "a", "values": ["x", 1]}], "is damaged"),
            ([{"kind": "category", "name": "a", "values": ["x", "x"]}], "is damaged"),
            ([{"kind": "category", "name": "a", "values": 3}], "is damaged"),
            ([{"kind": "text", "name": "a", "words": ["x"], "weights": []}], "is damaged"),
            ([{"kind": "text", "name": "a", "words": ["x", "x"], "weights": [1.0, 1.0]}], "fit"),
            ([{"kind": "text", "name": "a", "words": ["x"], "weights": [np.inf]}], "is damaged"),
            ([{"kind": "text", "name": "a", "words": ["x"], "weights": ["1"]}], "is damaged"),
            ([{"kind": "text", "name": "a", "words": [1], "weights": [1.0]}], "is damaged"),
            ([{"kind": "text", "name": "a", "weights": [1.0]}], "words and weights are not there"),
            (packed(b"onetwo", [0, 3]), "letters and starts do not fit"),
            (packed(b"onetwo", [1, 3, 6]), "letters and starts do not fit"),
            (packed(b"onetwo", [0, 3, 3, 6]), "letters and starts do not fit"),
            (packed(b"onetwo", [0, 7, 6]), "letters and starts do not fit"),
            (packed(b"oneone", [0, 3, 6]), "words and weights do not fit"),
            (packed(b"on\xffone", [0, 3, 6]), "is damaged"),
            (packed(b"onetwo", [0, 3, 6], [1.0]), "words and weights do not fit"),
            (packed(b"", []), "letters and starts do not fit"),
        ],
    )  # fmt: skip
    def test_a_damaged_state_is_refused(self, state, problem):
        with pytest.raises(ValueError, match=problem):
            Encoder.from_json(state)

    def test_a_missing_column_is_named(self):
        with pytest.raises(ValueError, match="the table lacks the column 'c'"):
            Encoder.fit(TABLE).transform({"n": [1], "t": ["a"]})


@given(st.lists(st.one_of(st.none(), st.floats(allow_infinity=False), st.integers(-99, 99))))
def test_numbers_come_through_text_unchanged(values):
    written = ["" if v is None or v != v else repr(v) for v in values]
    expected = [np.nan if v is None else float(v) for v in values]
    np.testing.assert_array_equal(as_numbers("a", written), expected)
    np.testing.assert_array_equal(as_numbers("a", values), expected)


class TestRowsToCome:
    def test_an_encoder_and_label_names_of_training_rows_fix_the_columns(self, file):
        train = read(file("a,c,tags\n1,x,p\n2,y,q\n", "train"), labels="tags")
        path = file("c,extra,a,tags\nz,1,,q\nx,2,7,\n", "test")
        test = read(path, labels="tags", encoder=train.encoder, label_names=train.label_names)
        assert test.X.tolist() == [[1.5, 0, 0], [7, 1, 0]]
        assert test.Y.toarray().tolist() == [[0, 1], [0, 0]]
        bare = read(path, labels=[], encoder=train.encoder)
        assert bare.Y.shape == (2, 0)

    def test_a_label_never_trained_on_is_refused_with_its_line(self, file):
        with pytest.raises(DataFileError, match="line 3, column 'tags': the label 'r' is not in"):
            read(file("a,tags\n1,p\n2,r\n"), labels="tags", label_names=("p", "q"))


@pytest.mark.parametrize(
    "missing", ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "None", "NULL", "null", "-", " ? "]
)
@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_what_people_write_for_nothing_is_a_missing_number(file, missing, format):
    cells = ["1", missing, "4"]
    text = {
        "csv": "a,l\n" + "".join(f"{cell},1\n" for cell in cells),
        "tsv": "a\tl\n" + "".join(f"{cell}\t1\n" for cell in cells),
        "jsonl": "".join(json.dumps({"a": cell, "l": 1}) + "\n" for cell in cells),
    }
    data = read(file(text[format]), format=format, labels=["l"])
    assert data.X.tolist() == [[1], [2.5], [4]]  # the mean


def test_a_column_is_refused_only_if_most_of_its_cells_are_numbers(file):
    mixed = "a,l\n" + "".join(f"{cell},1\n" for cell in ["7", "x", "8", "y", "z"])
    assert read(file(mixed), labels=["l"]).encoder.columns[0].kind == "category"
    with pytest.raises(DataFileError, match=r"line 3, .*got 'x', and 3 of the column's 5 cells"):
        read(file(mixed.replace("y", "9")), labels=["l"])


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1).map(str.strip).filter(bool)))
def test_a_list_in_brackets_is_the_list_that_was_printed(labels):
    printed = [repr(labels), json.dumps(labels), json.dumps(labels, ensure_ascii=False)]
    if labels:
        printed += [repr(set(labels)), repr(tuple(labels))]
    for text in printed:
        assert set(from_lists("l", [text, "x"], ",", None)[1]) == {*labels, "x"}
    column = pd.Series([labels, []]).to_csv(index=False, header=["l"])
    cells = [row[0] for row in csv.reader(io.StringIO(column))][1:]
    assert set(from_lists("l", [*cells, "x"], ",", None)[1]) == {*labels, "x"}


WIDE_TEXTS = {
    "csv": "a,l\n1,x\n" + "y" * 400 + ",x\n",
    "tsv": "a\tl\n1\tx\n" + "y" * 400 + "\tx\n",
    "jsonl": '{"a": "u"}\n{"a": "v"}\n{"a": "' + "y" * 400 + '"}\n',
    "libsvm": "0 1:1\n0 1:1\n0 " + " ".join(f"{j}:1" for j in range(1, 90)) + "\n",
    "xmc": "2 90 1\n0 1:1\n0 " + " ".join(f"{j}:1" for j in range(1, 90)) + "\n",
    "arff": "@relation r\n@attribute a string\n@data\n" + "y" * 400 + "\n",
}


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("format", WIDE_TEXTS)
def test_lines_and_unpacked_sizes_have_limits(file, monkeypatch, format, pack):
    text = WIDE_TEXTS[format].encode()
    path = file(gzip.compress(text) if pack else text)
    options = {"labels": []} if format in ("csv", "tsv", "jsonl", "arff") else {}
    line = text[:-1].count(b"\n") + 1
    with pytest.raises(DataFileError, match=f"line {line}: a line must have at most 300 bytes"):
        read(path, format=format, max_line=300, **options)
    with contextlib.ExitStack() as stack:
        if pack:
            wanted = pytest.raises(DataFileError, match="unpacks to more than 200 bytes")
            stack.enter_context(wanted)
        read(path, format=format, max_unpacked=200, **options)
    monkeypatch.setenv("DELTARANK_MAX_LINE", "300")
    with pytest.raises(DataFileError, match="at most 300 bytes"):
        read(path, format=format, **options)
    assert read(path, format=format, max_line=1000, **options).X.shape[0] >= 1


def test_many_columns_cost_as_much_as_their_cells(file):
    """Side by side: four times the columns take about four times as long, not sixteen."""

    def seconds(n):
        names = ",".join(f"x{j}" for j in range(n))
        path = file(f"{names},l\n" + ",".join(["1"] * n) + ",1\n")
        began = time.perf_counter()
        read(path, labels=["l"])
        return time.perf_counter() - began

    seconds(100)
    few, many = (min(seconds(n) for _ in range(3)) for n in (3000, 12000))
    assert many < 10 * few


MISSING_CELLS = ["NA", "N/A", "?", "null", "NULL", "None", "nan", "-"]
NO_LABELS = [
    "['a' 'b']", "[a, b]", "['a', 'b'", "['a'] ['b']", "{'a': 1}", "[None]", "[['a']]", "[a]",
    "('a' 'b')", "('a', 'b'", "b'a'", "frozenset({'a'})", "array(['a'], dtype=object)",
]  # fmt: skip


@pytest.mark.parametrize("cell", NO_LABELS)
@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_what_is_no_label_is_refused_with_its_row(tmp_path, format, cell):
    path = _write_labels(tmp_path, format, cell)
    place = {"csv": "line 3", "tsv": "line 3", "jsonl": "line 2"}.get(format, "row 1")
    with pytest.raises(DataFileError, match=place) as caught:
        read(path, format=format, labels="l")
    assert repr(cell) in str(caught.value)


@pytest.mark.parametrize("cell", MISSING_CELLS)
@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_a_word_for_missing_is_no_label(tmp_path, format, cell):
    data = read(_write_labels(tmp_path, format, cell), format=format, labels="l")
    assert data.label_names == ("x", "y")
    assert data.Y.toarray().tolist() == [[1, 0], [0, 0], [0, 1]]


def _write_labels(folder, format, cell):
    frame = pd.DataFrame({"a": [1, 2, 3], "l": ["x", cell, "y"]})
    path = folder / "a"
    {
        "csv": lambda: frame.to_csv(path, index=False, na_rep=""),
        "tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        "jsonl": lambda: frame.to_json(path, orient="records", lines=True),
        "parquet": lambda: frame.to_parquet(path),
        "arrow": lambda: feather.write_feather(pa.Table.from_pandas(frame), str(path)),
    }[format]()
    return path


@pytest.mark.parametrize(
    "cells",
    [
        [b"ab", b"c"],
        [[b"a"], [b"b"]],
        [True, False],
        [[True], [False]],
        [{"a": 1, "b": 0}, {"a": 0, "b": 1}],
        pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64())),
        [[["a"]], [["b"]]],
    ],
    ids=str,
)
def test_labels_of_a_typed_table_are_names_or_numbers(tmp_path, cells):
    parquet.write_table(pa.table({"a": [1.0, 2.0], "l": cells}), tmp_path / "a")
    with pytest.raises(DataFileError, match=r"row 0: each label must have a name"):
        read(tmp_path / "a", labels="l")


MISTAKES = [
    ("csv", "a,b\n1,2\n3\n", {"labels": ["b"]}, "line 3: a row must have 2 cells"),
    ("csv", 'a,b\n1,"2\n3,4\n', {"labels": ["b"]}, "line 2: quotes do not match"),
    ("csv", "a,a\n1,2\n", {"labels": ["a"]}, "line 1, column 2: two columns have the name 'a'"),
    ("csv", "a,b\n1,0\n\n1,0\n", {"labels": ["b"]}, "line 3: an empty line among the rows"),
    ("csv", "a,b\n", {"labels": ["b"]}, "must hold a line of names and at least one row"),
    ("csv", ",a,b\n1,2,1\n", {"labels": ["b"]}, r"a column has no name; pass ignore=\[''\]"),
    ("csv", "a,b\n1,2\n", {"labels": ["b"]}, "line 2, column 'b': a label must be 0 or 1; got '2'"),
    ("csv", "a,b\n1,0\n1,\n", {"labels": ["b"]}, "line 3, column 'b': a label must be 0 or 1"),
    ("csv", "b\n1\n", {"labels": ["b"]}, "no columns are left for features"),
    ("csv", "a,b\n1,['x' y]\n", {"labels": "b"}, r"column 'b': .* got \"\['x' y\]\""),
    ("csv", "a,b\n1,1\n2,0\n", {"labels": "b"}, r"the column holds 0 and 1, so it is one label"),
    ("csv", b"a,b\n1,\xff\n", {"labels": "b"}, "line 2, column 3: text must be UTF-8"),
    ("jsonl", '{"a": 1}\n{"a": 1,}\n', {"labels": "a"}, r"line 2, column \d+: not JSON"),
    ("jsonl", '{"a": 1}\n[1]\n', {"labels": "a"}, "line 2, column 1: each line must be"),
    ("jsonl", '{"a": 1, "a": 2}\n', {"labels": "a"}, "line 1: a name occurs twice in an object"),
    ("jsonl", '{"a": 1}\n\n{"a": 2}\n', {"labels": "a"}, "line 2: an empty line among the rows"),
    ("jsonl", '{"a": 1, "l": ["x", {}]}\n', {"labels": "l"}, "column 'l': each label must .*{}"),
    ("jsonl", '{"a": {"b": 1}, "l": ["x"]}\n', {"labels": "l"}, r"column 'a': a number is wanted"),
    ("jsonl", '{"a": Infinity, "l": ["x"]}\n', {"labels": "l"}, "a number must be finite"),
    ("jsonl", '{"a": ' + "[" * 100_000 + "\n", {"labels": "l"}, "line 1.*not (readable )?JSON"),
    ("jsonl", '{"a": ' + "9" * 9000 + ', "l": ["x"]}\n', {"labels": "l"}, "not readable JSON"),
    ("parquet", b"PAR1 and then nothing", {"labels": "l"}, "not readable"),
    ("arrow", b"ARROW1 and then nothing", {"labels": "l"}, "not readable"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "text", "options", "problem"), MISTAKES)
def test_mistakes_are_named_with_their_place(file, format, text, options, problem):
    path = file(text)
    with pytest.raises(DataFileError, match=problem) as caught:
        read(path, format=format, **options)
    assert str(path) in str(caught.value)


def test_one_reader_that_ends_does_not_shorten_the_cells_of_another(tmp_path):
    long = "word " * 40_000
    (tmp_path / "a.csv").write_text(f"n,body\n1,a\n2,{long}\n")
    encoder = Encoder.fit({"n": [1, 2]})
    before = csv.field_size_limit()
    first, second = (
        read_blocks(tmp_path / "a.csv", encoder, format="csv", n_bytes=1) for _ in "ab"
    )
    next(first), next(second)
    first.close()
    assert [block.X.tolist() for block in second] == [[[2.0]]]
    assert csv.field_size_limit() == before


def test_a_parquet_file_with_a_name_that_is_no_text_is_refused(file):
    sink = io.BytesIO()
    parquet.write_table(pa.table({"size": [1.0], "tags": ["x"]}), sink, store_schema=False)
    path = file(sink.getvalue().replace(b"size", b"siz\x86"))
    with pytest.raises(DataFileError, match="must be UTF-8; got"):
        read(path, format="parquet", labels="tags")


@pytest.mark.parametrize("stream", [False, True])
def test_an_arrow_file_with_damaged_places_of_strings_is_refused(file, stream):
    table = pa.table({"a": ["red", "blue", "green"], "tags": ["x", "y", "z"]})
    sink = io.BytesIO()
    with (ipc.new_stream if stream else ipc.new_file)(sink, table.schema) as writer:
        writer.write_table(table)
    places = np.array([0, 3, 7, 12], "<i4").tobytes()
    assert sink.getvalue().count(places) == 1
    damaged = np.array([0, 3, 2**30, 12], "<i4").tobytes()
    path = file(sink.getvalue().replace(places, damaged))
    with pytest.raises(DataFileError, match="not readable"):
        read(path, format="arrow", labels="tags")
    with pytest.raises(DataFileError, match="not readable"):
        list(read_blocks(path, Encoder.fit({"a": ["red", "blue"]}), format="arrow"))


def test_a_small_file_that_asks_for_too_much_memory_is_damaged(file, monkeypatch):
    """Sizes in a damaged file may be absurd; a large file may be right, and memory too small."""
    sink = io.BytesIO()
    table = pa.table({"a": [1.0], "tags": ["x"]})
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    path = file(sink.getvalue())

    def starved(content, n_bytes):
        raise MemoryError

    monkeypatch.setattr("deltarank.datasets.readers.table_files._arrow", starved)
    with pytest.raises(DataFileError, match="asks for more memory than there is"):
        read(path, format="arrow", labels="tags")
    monkeypatch.setattr("deltarank.datasets.readers.table_files.LARGEST_WITHOUT_WANT", 10)
    with pytest.raises(MemoryError):
        read(path, format="arrow", labels="tags")


def test_what_is_asked_for_must_be_there(file):
    path = file("a,b\n1,0\n")
    with pytest.raises(ValueError, match=r"labels= must name the column .* columns are 'a', 'b'"):
        read(path)
    with pytest.raises(ValueError, match="has no column 'c', which labels= names; its columns are"):
        read(path, labels=["c"])
    with pytest.raises(ValueError, match="has no column 'd', which text= names"):
        read(path, labels=["b"], text=["d"])
    with pytest.raises(
        TypeError, match="format csv has no option 'label'; its options are labels,"
    ):
        read(path, label=["b"])
    with pytest.raises(TypeError, match="format libsvm has no option 'labels'; its options are n_"):
        read(path, format="libsvm", labels=["b"])
    with pytest.raises(ValueError, match="unknown format 'xls'; choose one of arff, arrow, csv"):
        read(path, format="xls")
    with pytest.raises(FileNotFoundError):
        read(path.parent / "absent")


@given(st.lists(st.sets(st.text(alphabet="abc xé", min_size=1).map(str.strip).filter(bool))))
def test_label_lists_come_back(sets):
    Y, names = from_lists("l", [sorted(s) for s in sets], ",", None)[:2]
    assert [{names[j] for j in Y[[i]].indices} for i in range(len(sets))] == sets
    Y, again = from_lists("l", [" , ".join(sorted(s)) for s in sets], ",", None)[:2]
    assert [{again[j] for j in Y[[i]].indices} for i in range(len(sets))] == sets


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "parquet", "arrow", None])
@given(content=st.one_of(st.binary(max_size=60), st.text('{}[]",:;\t\n a1.', max_size=60)))
def test_any_bytes_are_read_or_refused(tmp_path_factory, format, content):
    path = tmp_path_factory.mktemp("nonsense") / "a"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    try:
        read(path, format=format, labels=[])
    except (DataFileError, TypeError, ValueError) as error:
        assert str(path) in str(error) or "option" in str(error)  # noqa: PT017


@given(
    rows=st.lists(
        st.tuples(st.text(min_size=1), st.floats(allow_nan=False, allow_infinity=False)), min_size=2
    )
)
def test_awkward_strings_survive_a_csv(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    frame = pd.DataFrame(rows, columns=["s", "x"])
    # By Python's own expressions: Arrow's know no such characters.
    frame["s"] = [re.sub(r"[\r\x00\ud800-\udfff]", "-", text) for text, _ in rows]
    frame["l"] = 1
    path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    data = read(path, format="csv", labels=["l"], categorical=["s"])
    assert data.X.shape[0] == len(rows)
    assert np.array_equal(data.X[:, [data.X.shape[1] - 1]].ravel(), frame["x"])
    missing = {"?", "-", "--", "NA", "na", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None"}
    known = frame["s"].map(lambda s: s.strip() not in {"", *missing})
    assert len(data.encoder.columns[0].values) == frame["s"][known].nunique()


def test_lists_in_a_column_of_features_are_categories_of_which_a_cell_has_several(tmp_path):
    rows = [
        '{"codes": ["E2", "JK"], "tags": ["a"]}',
        '{"codes": [], "tags": ["b"]}',
        '{"codes": ["JK", null], "tags": ["a", "b"]}',
        '{"codes": null, "tags": []}',
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n")
    data = read(tmp_path / "rows.jsonl")
    assert data.encoder.feature_names() == ["codes=E2", "codes=JK"]
    assert np.asarray(data.X).tolist() == [[1, 1], [0, 0], [0, 1], [0, 0]]
    assert data.encoder.transform({"codes": [["JK", "XX"]]}).tolist() == [[0, 1]]
