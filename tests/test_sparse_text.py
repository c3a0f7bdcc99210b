"""LIBSVM and XMC text: against scikit-learn, a slow reading by hand, and nonsense."""

import bz2
import gzip
import io
import lzma
import re
import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from deltarank.datasets import DataFileError, read
from deltarank.datasets.readers import sparse_text as reader
from deltarank.datasets.readers.kernels.decimals import EXACT, TOO_LARGE, UNDECIDED, read_number
from deltarank.datasets.readers.sparse_text import read_libsvm, read_xmc
from deltarank.datasets.readers.streams import chunks_of_lines
from deltarank.datasets.writers import write_libsvm, write_xmc

NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"


def by_hand(text: bytes, first_feature=1):
    """Read LIBSVM text with string methods; None where it is malformed."""
    rows = []
    for line in text.removesuffix(b"\n").split(b"\n"):
        if line.startswith(b"#"):
            continue
        line = line.partition(b"#")[0].replace(b"\r", b" ").replace(b"\t", b" ").decode("latin-1")
        words = line.split(" ")
        labels, cells = (words[0], words[1:]) if ":" not in words[0] else ("", words)
        if labels and not re.fullmatch(r"[0-9]+(,[0-9]+)*", labels):
            return None
        features = {}
        for cell in filter(None, cells):
            index, colon, value = cell.partition(":")
            if not (colon and re.fullmatch("[0-9]+", index) and re.fullmatch(NUMBER, value, re.A)):
                return None
            if int(index) in features or not first_feature <= int(index) < 2**31:
                return None
            features[int(index)] = float(value)
            if np.isinf(features[int(index)]):
                return None
        names = {int(label) for label in labels.split(",") if label}
        if any(name >= 2**31 for name in names):
            return None
        rows.append((names, features))
    return rows


def as_rows(data, first_feature=1):
    rows = []
    for i in range(data.X.shape[0]):
        x, y = data.X[[i]], data.Y[[i]]
        cells = {int(j) + first_feature: float(v) for j, v in zip(x.indices, x.data, strict=True)}
        rows.append((set(y.indices.tolist()), cells))
    return rows


@pytest.fixture
def file(tmp_path):
    def make(content):
        path = tmp_path / "data"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


class TestNumbers:
    def read(self, text):
        values = np.zeros(1)
        end, kind = read_number(
            np.frombuffer(text.encode() + b"\n", np.uint8), 0, values, values.view(np.uint64), 0
        )
        return end, kind, values[0]

    @given(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False).map(repr),
            st.from_regex(re.compile(NUMBER, re.A), fullmatch=True),
            # Half-way between two floats, and one unit beside.
            st.builds(
                lambda m, e, d: f"{2 * m + 1 + d}e{e}",
                st.integers(2**53, 2**54), st.integers(-30, 30), st.integers(-1, 1),
            ),
            st.builds(lambda m, e: f"{m}e{e}", st.integers(0, 10**25), st.integers(-345, 320)),
        )
    )  # fmt: skip
    @example("2.4703282292062327e-324")
    @example("2.4703282292062328e-324")
    @example("1.7976931348623158e308")
    @example("1.7976931348623159e308")
    @example("0e999999999999999999999")
    @example("9007199254740993")
    @example("0" * 400 + "1." + "0" * 400 + "1e-3")
    def test_every_number_is_what_python_reads(self, text):
        end, kind, value = self.read(text)
        expected = float(text)
        assert end == len(text)
        if np.isinf(expected):
            assert kind in (TOO_LARGE, UNDECIDED)
        elif kind != UNDECIDED:
            assert kind == EXACT
            assert np.float64(expected).tobytes() == value.tobytes()

    def test_few_numbers_are_left_undecided(self):
        generator = np.random.default_rng(0)
        bits = generator.integers(0, 2**63, 20_000).view(np.float64)
        kinds = [self.read(repr(value))[1] for value in bits[np.isfinite(bits)].tolist()]
        assert np.mean(np.array(kinds) == UNDECIDED) < 1e-3

    def test_numbers_of_many_digits_are_read_exactly(self, file):
        # The first is a hair above the middle between two floats, and needs all its digits.
        texts = ["1.00000000000000011102230246251565404236316680908203126", "0." + "3" * 60]
        data = read_libsvm(file(f"0 1:{texts[0]} 2:{texts[1]}\n"))
        assert data.X.data.tolist() == [float(text) for text in texts]
        # The middle between the largest float and what would be the next: rounds to infinity.
        with pytest.raises(DataFileError, match="line 1, column 5: a value must be finite"):
            read_libsvm(file(f"0 1:{2**1024 - 2**970}\n"))


class TestAgainstScikitLearn:
    @pytest.mark.parametrize("seed", range(3))
    def test_it_reads_what_scikit_learn_writes_and_reads(self, tmp_path, seed):
        generator = np.random.default_rng(seed)
        X = sparse.random_array((200, 30), density=0.2, rng=generator, format="csr") * 1e3
        Y = (generator.random((200, 7)) < 0.3).astype(int)
        Y[:, 6] = 1
        dump_svmlight_file(X, Y, str(tmp_path / "data"), multilabel=True, zero_based=False)
        theirs, sets = load_svmlight_file(str(tmp_path / "data"), multilabel=True, n_features=30)
        ours = read(tmp_path / "data", n_features=30)
        assert (theirs != ours.X).nnz == 0
        assert [set(row) for row in sets] == [labels for labels, _ in as_rows(ours)]

    def test_scikit_learn_reads_what_it_writes(self, tmp_path):
        generator = np.random.default_rng(0)
        X = sparse.random_array((100, 20), density=0.3, rng=generator, format="csr")
        Y = np.eye(20, dtype=int)[generator.integers(0, 20, 100)]
        write_libsvm(tmp_path / "data", X, Y)
        theirs, sets = load_svmlight_file(str(tmp_path / "data"), multilabel=True, n_features=20)
        assert (theirs != X).nnz == 0
        assert [list(row) for row in sets] == [[float(i)] for i in Y.argmax(axis=1)]

    def test_empty_lines_keep_their_place_where_scikit_learn_drops_them(self, file):
        text = "0 1:1\n\n1 1:2\n\n"
        assert as_rows(read(file(text))) == [({0}, {1: 1}), (set(), {}), ({1}, {1: 2}), (set(), {})]
        assert load_svmlight_file(io.BytesIO(text.encode()), multilabel=True)[0].shape[0] == 2


def matrices():
    """Features and labels with empty rows, empty columns and awkward values."""
    values = st.one_of(
        st.just(0.0),
        st.floats(allow_nan=False, allow_infinity=False),
        st.integers(-3, 3).map(float),
    )
    return st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(values, min_size=4, max_size=4), min_size=n, max_size=n),
            st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=n, max_size=n),
        )
    )


@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz", "a.svm.bz2", "a.svm.xz"])
@given(rows=matrices())
def test_libsvm_gives_back_what_was_written(tmp_path_factory, name, rows):
    path = tmp_path_factory.mktemp("round") / name
    X, Y = np.array(rows[0]), np.array(rows[1])
    write_libsvm(path, X, Y)
    data = read_libsvm(path, n_features=4, n_labels=3)
    assert np.array_equal(data.X.toarray(), X)
    assert np.array_equal(data.Y.toarray(), Y)


@given(rows=matrices(), dtype=st.sampled_from([np.float32, np.float64]))
def test_xmc_gives_back_what_was_written(tmp_path_factory, rows, dtype):
    path = tmp_path_factory.mktemp("round") / "a.txt"
    with np.errstate(over="ignore"):
        X = np.array(rows[0]).astype(dtype)
    X[~np.isfinite(X)] = 0
    write_xmc(path, X, np.array(rows[1]))
    data = read(path, format="xmc")
    assert data.X.shape == X.shape
    assert np.array_equal(data.X.toarray().astype(dtype), X)
    assert np.array_equal(data.Y.toarray(), rows[1])


LINES = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.text(alphabet="0123456789,: .-+eE#\t\rnaif", max_size=24).map(str.encode),
        st.lists(
            st.sampled_from([b"1,2", b"0", b" ", b"1:2", b"3:-.5e1", b"7:1.", b"2:1e400", b"#c",
                             b"4:", b":4", b"0:1", b"2147483647:1", b"2147483648:1", b"1:1_0"]),
            max_size=6,
        ).map(b" ".join),
    ),
    max_size=8,
)  # fmt: skip


@given(lines=LINES)
@example(lines=[b"2:1 1:1 2:3"])
@example(lines=[b"5,5,1 1:1"])
@example(lines=[b"000000000000001:1"])
def test_nonsense_is_refused_or_read_as_by_hand(tmp_path_factory, lines):
    text = b"\n".join(lines)
    path = tmp_path_factory.mktemp("nonsense") / "data"
    path.write_bytes(text)
    content = text.removeprefix(b"\xef\xbb\xbf")
    expected = (by_hand(content) if content else None) or None
    try:
        found = as_rows(read_libsvm(path))
    except DataFileError:
        found = None
    assert found == expected


@given(lines=LINES, sizes=st.tuples(*[st.integers(0, 9)] * 3))
def test_xmc_nonsense_is_refused_or_has_the_promised_sizes(tmp_path_factory, lines, sizes):
    text = b"\n".join([b"%d %d %d" % sizes, *lines])
    path = tmp_path_factory.mktemp("nonsense") / "data"
    path.write_bytes(text)
    try:
        data = read_xmc(path)
    except DataFileError:
        return
    assert (*data.X.shape, data.Y.shape[1]) == sizes
    assert as_rows(data, first_feature=0) == by_hand(b"\n".join(lines), first_feature=0)


class TestChunks:
    @given(n_bytes=st.integers(1, 40), n_threads=st.integers(1, 4))
    def test_chunks_and_threads_change_nothing(self, tmp_path_factory, n_bytes, n_threads):
        text = b"1,2 1:1 2:2\n\n# note\n 3:0.25\n0 1:-1 # end\n5:5\n1,0 2:1e-3"
        path = tmp_path_factory.mktemp("chunks") / "data"
        path.write_bytes(text)
        pieces = list(chunks_of_lines(path, n_bytes))
        assert b"".join(pieces) == text + b"\n"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reader, "n_threads", lambda: n_threads)
            patch.setattr(reader, "chunks_of_lines", lambda path, *_: iter(pieces))
            assert as_rows(read_libsvm(path)) == by_hand(text)

    def test_a_mistake_in_a_late_chunk_has_its_own_line(self, file, monkeypatch):
        rows = [f"0 1:{i}" for i in range(50)]
        rows[37] = "0 1:3 2:x"
        path = file("\n".join(rows))
        monkeypatch.setattr(reader, "n_threads", lambda: 3)
        monkeypatch.setattr(reader, "chunks_of_lines", lambda path, *_: chunks_of_lines(path, 64))
        with pytest.raises(DataFileError, match=r"line 38, column 9: a value must be a number"):
            read_libsvm(path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_files_are_told_by_content_and_refused_when_cut_short(file, pack):
    generator = np.random.default_rng(0)
    text = "".join(f"0,1 1:{value!r}\n" for value in generator.random(500).tolist())
    packed = pack(text.encode())
    assert read(file(packed)).X.shape == (500, 1)
    for n in (len(packed) // 2, len(packed) - 1):
        with pytest.raises(DataFileError, match=r"cut short or corrupt|holds no rows"):
            read_libsvm(file(packed[:n]))
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0x55
    with pytest.raises(DataFileError, match="corrupt"):
        read_libsvm(file(bytes(flipped)))


MISTAKES = [
    ("x 1:1\n", 1, 1, "labels must be whole numbers joined by commas; got 'x'"),
    ("0 1:1\n1, 1:1\n", 2, 3, "labels must be whole numbers joined by commas; got ''"),
    ("-1 1:1\n", 1, 1, "labels must be whole numbers joined by commas; got '-1'"),
    ("1.5 1:1\n", 1, 1, "labels must be whole numbers joined by commas; got '1.5'"),
    ("0,1:1 2:2\n", 1, 3, "labels must be whole numbers joined by commas; got '1:1'"),
    ("0 1:1 qid:3\n", 1, 7, "features must be written index:value; got 'qid:3'"),
    ("0 1:1 2 :3\n", 1, 7, "features must be written index:value; got '2'"),
    ("0 1:\n", 1, 5, "a value must be a number; got ''"),
    ("0 1:1,5\n", 1, 5, "a value must be a number; got '1,5'"),
    ("0 1:nan\n", 1, 5, "a value must be a number; got 'nan'"),
    ("0 1:1e999\n", 1, 5, "a value must be finite; got '1e999'"),
    ("0 1:1\n0 0:1\n", 2, 3, r"features must be from 1 \(see first_feature=\) to 2147483647; got"),
    ("0 99999999999:1\n", 1, 3, "features must be from 1 .* got '99999999999'"),
    ("9999999999 1:1\n", 1, 1, "labels must be from 0 .* got '9999999999'"),
    ("0 1:1 1:2\n", 1, 7, "a feature may occur only once in a row; got '1' again"),
    ("\n0 3:1 1:2 3:5\n", 2, 11, "a feature may occur only once in a row; got '3' again"),
    ("# note\n0 1:1 2:2x # rest\n", 2, 9, "a value must be a number; got '2x'"),
]


@pytest.mark.parametrize(("text", "line", "column", "problem"), MISTAKES)
def test_mistakes_are_named_with_line_and_column(file, text, line, column, problem):
    path = file(text)
    with pytest.raises(DataFileError, match=problem) as caught:
        read_libsvm(path)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"{path}, line {line}, column {column}: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1, column 1: the first line must be the numbers of rows, features and labels"),
        ("2 3\n0 0:1\n", "the first line must be the numbers of rows, features .* got '2 3'"),
        ("1 3 2\n0 3:1\n", "line 2, column 3: features must be from 0 to 2, by the first line"),
        ("1 3 2\n2 0:1\n", "line 2, column 1: labels must be from 0 to 1, by the first line"),
        ("1 3 0\n0 0:1\n", "line 2, column 1: labels must be none at all, by the first line"),
        ("3 3 2\n0 0:1\n", "line 1: the first line promises 3 rows; got 1"),
        ("1 3 2\n0 0:1\n\n", "promises 1 rows; got 2 .an empty line is a row"),
        ("1 9999999999 2\n0 0:1\n", "at most 2147483647 features and labels"),
        ("1 " + "9" * 5000 + " 2\n0 0:1\n", "the first line must be"),
    ],
)  # fmt: skip
def test_xmc_is_held_to_its_first_line(file, text, problem):
    with pytest.raises(DataFileError, match=problem):
        read_xmc(file(text))


def test_given_sizes_bound_the_indices(file):
    path = file("0 3:1\n")
    assert read_libsvm(path, n_features=5, n_labels=4).X.shape == (1, 5)
    assert read_libsvm(path, n_features=5, n_labels=4).Y.shape == (1, 4)
    with pytest.raises(DataFileError, match="features must be from 1 to 2, by n_features= or"):
        read_libsvm(path, n_features=2)
    assert read_libsvm(file("1 0:1\n"), first_feature=0, first_label=1).X.shape == (1, 1)


def test_other_people_s_line_ends_and_marks_do_not_matter(file):
    plain = as_rows(read(file("1 1:1 2:2\n 1:3\n")))
    for text in ("1 1:1 2:2\r\n 1:3\r\n", "\ufeff1 1:1 2:2\n 1:3\n", "1\t1:1\t2:2 \n\t1:3"):
        assert as_rows(read(file(text), format="libsvm")) == plain


def test_writing_refuses_what_could_not_be_read(tmp_path):
    target = tmp_path / "a.svm"
    for X, problem in (([[np.nan]], "X must be finite"), ([[1.0]] * 2, "X has 2 and Y has 1")):
        with pytest.raises(ValueError, match=problem):
            write_libsvm(target, X, [[1]])
    assert list(tmp_path.iterdir()) == []


def test_numbers_written_by_others_in_float32_come_back(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    write_libsvm(tmp_path / "a.svm", X, np.ones((50, 1), int))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(read(tmp_path / "a.svm").X.toarray().astype(np.float32), X)
