"""ARFF, dense and sparse: against scipy, a slow reading by hand, and nonsense."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import arff as scipy_arff

from deltarank.datasets import DataFileError, read
from deltarank.datasets.readers import arff
from deltarank.datasets.readers.arff import read_arff

HEAD = "@relation r\n@attribute a numeric\n@attribute b real\n@attribute l {0,1}\n@data\n"
MIXED = """% a comment
@RELATION 'mixed: -C -2'

@ATTRIBUTE 'the size' REAL
@attribute colour {red, 'dark blue', "it's"}
@attribute l1 {0,1}
@attribute l2 {0,1} % another
@DATA
1.5, red, 0, 1
% in between
-2e1,'dark blue',1,1

?,"it's",0,0
7,?,1,0
"""


@pytest.fixture
def file(tmp_path):
    def make(content, name="data.arff"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def test_dense_rows_are_those_that_scipy_reads(file):
    generator = np.random.default_rng(0)
    values = generator.normal(size=(40, 5)) * 10.0 ** generator.integers(-12, 12, (40, 5))
    names = [f"x{j}" for j in range(5)] + ["l0", "l1"]
    marks = generator.integers(0, 2, (40, 2))
    rows = [
        ",".join([*map(repr, x), *map(str, y)])
        for x, y in zip(values.tolist(), marks.tolist(), strict=True)
    ]
    kinds = ["numeric"] * 5 + ["{0,1}"] * 2
    head = "\n".join(f"@attribute {n} {k}" for n, k in zip(names, kinds, strict=True))
    text = f"@relation r\n{head}\n@data\n" + "\n".join(rows) + "\n"
    theirs, _ = scipy_arff.loadarff(io.StringIO(text))
    ours = read(file(text), labels=-2)
    assert np.array_equal(ours.X, np.column_stack([theirs[f"x{j}"] for j in range(5)]))
    assert np.array_equal(
        ours.Y.toarray(), np.column_stack([theirs[n].astype(int) for n in ("l0", "l1")])
    )
    assert (ours.feature_names, ours.label_names) == (tuple(names[:5]), ("l0", "l1"))


def test_choices_become_columns_and_gaps_the_mean(file):
    data = read(file(MIXED))
    mean = (1.5 - 20 + 7) / 3
    expected = [[1.5, 1, 0, 0], [-20, 0, 1, 0], [mean, 0, 0, 1], [7, 0, 0, 0]]
    assert np.array_equal(data.X, expected)
    assert data.feature_names == ("the size", "colour=red", "colour=dark blue", "colour=it's")
    assert data.Y.toarray().tolist() == [[0, 1], [1, 1], [0, 0], [1, 0]]
    other = read(file(MIXED.replace("1.5, red", "?, ?")), encoder=data.encoder)
    assert other.X[0].tolist() == [mean, 0, 0, 0]


def test_sparse_and_dense_rows_say_the_same(file):
    rows = [[0, 2.5, 1], [0, 0, 0], [-1, 0, 1], [3, 4, 0]]
    full = HEAD + "".join(",".join(map(str, row)) + "\n" for row in rows)
    cells = [[f"{j} {v}" for j, v in enumerate(row) if v] for row in rows]
    thin = HEAD + "".join("{" + ", ".join(row) + "}\n" for row in cells)
    for text in (full, thin, thin.replace("{", "{ ").replace("}", " } "), full.replace(",", " , ")):
        text = text.replace("{ 0 , 1 } ", "{0,1}").replace("{ 0,1 } ", "{0,1}")
        data = read(file(text), labels=["l"])
        assert np.array_equal(dense(data.X), np.array(rows)[:, :2])
        assert data.Y.toarray()[:, 0].tolist() == [1, 0, 1, 0]
    assert sparse.issparse(read(file(thin), labels=["l"]).X)


def test_what_a_sparse_row_leaves_out_is_the_first_choice(file):
    head = "@relation r\n@attribute c {x,y,z}\n@attribute n numeric\n@attribute l {0,1}\n@data\n"
    data = read(file(head + "{1 5}\n{0 z,2 1}\n{}\n"), labels=-1)
    assert data.X.tolist() == [[1, 0, 0, 5], [0, 0, 1, 0], [1, 0, 0, 0]]
    assert data.Y.toarray()[:, 0].tolist() == [0, 1, 0]
    with pytest.raises(DataFileError, match="leaves out 1, not 0: write rows in full"):
        read(file("@relation r\n@attribute c {1,0}\n@attribute l {0,1}\n@data\n{}\n"), labels=-1)


@pytest.mark.parametrize("others", ["", "@attribute s string\n"])
def test_a_label_that_sparse_rows_leave_out_as_1_is_refused(file, others):
    """Weka leaves out the first value declared: {1,0} left out is 1, not 0."""
    head = f"@relation r\n@attribute n numeric\n{others}@attribute l {{1,0}}\n@data\n"
    with pytest.raises(DataFileError, match=r"leaves out 1, not 0|must be declared \{0,1\}"):
        read(file(head + "{0 5}\n{}\n"), labels=["l"])
    if not others:
        assert read(file(head + "5,1\n0,0\n"), labels=["l"]).Y.toarray().tolist() == [[1], [0]]


@pytest.mark.parametrize("quote", ["'", '"'])
def test_escapes_in_quotes_are_those_of_weka(file, quote):
    written = quote + r"one\ntwo\tthree\rfour \\ five\'s \"six\" \%" + quote
    head = "@relation r\n@attribute s string\n@attribute l {0,1}\n@data\n"
    words = read(file(f"{head}{written},1\n"), labels=-1).encoder.columns[0].words
    assert words.words() == ["five", "four", "one", "six", "three", "two"]
    named = file(head.replace("s string", f"c {{{written}, x}}") + f"{written},1\nx,0\n")
    values = read(named, labels=-1).encoder.columns[0].values
    assert values == ('one\ntwo\tthree\rfour \\ five\'s "six" %', "x")


class TestLabels:
    XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="l"/></labels>'

    @pytest.mark.parametrize("name", ["set.arff", "set-train.arff", "set_test.arff.gz"])
    def test_the_xml_beside_the_file_names_them(self, file, tmp_path, name):
        (tmp_path / "set.xml").write_text(self.XML)
        text = (HEAD + "1,2,1\n").encode()
        path = file(gzip.compress(text) if name.endswith("gz") else text, name)
        assert read(path).label_names == ("l",)

    def test_their_order_is_that_of_the_columns(self, file, tmp_path):
        xml = '<labels><label name="l2"><label name="l1"/></label></labels>'
        (tmp_path / "x.xml").write_text(xml)
        assert read(file(MIXED), labels=tmp_path / "x.xml").label_names == ("l1", "l2")

    @pytest.mark.parametrize(
        ("relation", "labels", "expected"),
        [
            ("'r: -C 1'", None, ("l",)),
            ("r", 1, ("l",)),
            ("r", -1, ("b",)),
            ("'r: -C 1'", -1, ("b",)),
            ("r", ["b", "l"], ("l", "b")),
            ("r", [], ()),
        ],
    )
    def test_a_count_takes_the_first_or_the_last(self, file, relation, labels, expected):
        head = f"@relation {relation}\n@attribute l {{0,1}}\n@attribute a real\n"
        text = head + "@attribute b {0,1}\n@data\n1,0.5,0\n"
        assert read(file(text), labels=labels).label_names == expected

    def test_what_cannot_be_found_is_said(self, file, tmp_path):
        path = file(HEAD + "1,2,1\n")
        with pytest.raises(ValueError, match="labels= must be the XML file of label names, their"):
            read(path)
        with pytest.raises(ValueError, match="has no attribute 'k', which labels= names"):
            read(path, labels=["k"])
        with pytest.raises(ValueError, match="labels=4 is not among its 3 attributes"):
            read(path, labels=4)
        (tmp_path / "broken.xml").write_text("<labels>\n<label name='l'>")
        with pytest.raises(DataFileError, match=r"broken\.xml, line 2, column \d+: not XML"):
            read(path, labels=tmp_path / "broken.xml")
        (tmp_path / "other.xml").write_text("<labels><tag/></labels>")
        with pytest.raises(DataFileError, match="labels must be written <label name="):
            read(path, labels=tmp_path / "other.xml")


MISTAKES = [
    (HEAD + "1,2,1\n1,x,1\n", "line 7, column 3: a number is wanted; got 'x'"),
    (HEAD + "1,2,1\n1,2\n", "line 7, column 1: a row must have 3 values; got 2"),
    (HEAD + "1,2,1,4\n", "line 6, column 1: a row must have 3 values; got 4"),
    (HEAD + "1,,1\n", "line 6, column 3: a number is wanted; got ''"),
    (HEAD + "1,1_0,1\n", "line 6, column 3: a number is wanted; got '1_0'"),
    (HEAD + "1,1e999,1\n", "line 6, column 3: a number must be finite; got '1e999'"),
    (HEAD + "1,nan,1\n", "a number is wanted; got 'nan'"),
    (HEAD + "1,2,2\n", "line 6, column 'l': 0 or 1 is wanted; got 2"),
    (HEAD + "% c\n\n1,2,?\n", r"line 8, column 'l': 0 or 1 is wanted; got \?"),
    (HEAD + "{0 1}\n1,2,1\n", "line 7, column 1: a sparse row must start with a brace"),
    (HEAD + "{0 1,3 1}\n", "line 6, column 6: a cell must be written 'index value', with an index"),
    (HEAD + "{0 1,1}\n", "line 6, column 6: a cell must be written 'index value'"),
    (HEAD + "{0 1 1 1}\n", "line 6, column 4: a number is wanted; got '1 1 1'"),
    (HEAD + "{0 1\n", "line 6, column 4: a number is wanted; got '1'"),
    (HEAD + "{1 1,0 1,1 2}\n", "line 6, column 1: an attribute may occur only once in a row"),
    (HEAD + "{0 1} {2}\n", "line 6, column 7: nothing may follow the brace"),
    (HEAD + "{0 ?}\n", r"line 6, column 'a': a number is wanted; got \?"),
    (HEAD + "{2 3}\n", "line 6, column 'l': 0 or 1 is wanted; got 3"),
    (HEAD, "the file holds no rows"),
    ("@relation r\n@attribute a numeric\n", "no line @data"),
    ("@relation r\n@data\n1\n", "no @attribute stands before @data"),
    ("@relation r\n@attribute a date\n@data\n", "line 2, column 14: the type must be numeric"),
    ("@relation r\n@attribute a {x,\n@data\n", "line 2, column 14: the list of values does not"),
    ("@relation r\n@attribute a {x,,y}\n@data\n", "line 2, column 17: a value is wanted"),
    ("@relation r\n@attribute a\n@data\n", "line 2, column 1: @attribute must be followed by"),
    ("@relation r\n@atribute a real\n@data\n", "line 2, column 1: @relation, @attribute or @data"),
    (HEAD.replace(" b ", " a "), "line 3, column 1: two attributes have the name 'a'"),
]
MIXED_MISTAKES = [
    ("2,green,0,1", "line 9, column 'colour': one of red, dark blue, it's is wanted; got 'green'"),
    ("2,red,0", "line 9: a row must have 4 values; got 3"),
    ("2,'red,0,1", "line 9, column 3: quotes do not match"),
    ("x,red,0,1", "line 9, column 'the size': a number is wanted; got 'x'"),
    (",red,0,1", "line 9, column 'the size': a number is wanted; got ''"),
    ("2,red,?,1", r"column 'l1': a label must be 0 or 1; got \?"),
    ("2,red,2,1", "line 9, column 'l1': one of 0, 1 is wanted; got '2'"),
]


@pytest.mark.parametrize(("text", "problem"), MISTAKES)
def test_mistakes_are_named_with_line_and_column(file, text, problem):
    with pytest.raises(DataFileError, match=problem):
        read_arff(file(text), labels=["l"])


@pytest.mark.parametrize(("row", "problem"), MIXED_MISTAKES)
def test_mistakes_among_strings_are_named_too(file, row, problem):
    with pytest.raises(DataFileError, match=problem):
        read_arff(file(MIXED.replace("1.5, red, 0, 1", row)))


def test_a_column_of_strings_is_text(file):
    text = "@relation r\n@attribute t string\n@attribute l {0,1}\n@data\n'red hat',1\n\"a hat\",0\n"
    data = read_arff(file(text), labels=-1)
    assert data.feature_names == ("t:hat", "t:red")
    assert data.X.toarray()[1].tolist() == [1, 0]


@given(n_bytes=st.integers(1, 90))
def test_chunks_change_nothing(tmp_path_factory, n_bytes):
    path = tmp_path_factory.mktemp("chunks") / "a.arff"
    path.write_text(HEAD + "1,2,1\n% c\n\n-3.5,1e-3,0\n0,0,1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arff, "CHUNK_BYTES", n_bytes)
        data = read_arff(path, labels=-1)
    assert data.X.tolist() == [[1, 2], [-3.5, 0.001], [0, 0]]
    assert data.Y.toarray()[:, 0].tolist() == [1, 0, 1]


def rows_by_hand(text):
    """Read rows under HEAD with string methods; None where they are malformed."""
    rows = []
    is_sparse = None
    for line in text.split("\n"):
        line = line.replace("\r", " ").replace("\t", " ").strip(" ")
        if not line or line.startswith("%"):
            continue
        is_sparse = line.startswith("{") if is_sparse is None else is_sparse
        row = _sparse_row(line) if is_sparse else _dense_row(line)
        if row is None or row[2] not in (0, 1) or None in row:
            return None
        rows.append(row)
    return rows or None


def _number(word):
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        word = word[1:-1]
    if not word or not set(word) <= set("0123456789.+-eE"):
        return None
    try:
        value = float(word)
    except ValueError:
        return None
    return None if np.isinf(value) else value


def _dense_row(line):
    words = [word.strip(" ") for word in line.split(",")]
    return [_number(word) for word in words] if len(words) == 3 else None


def _sparse_row(line):
    if not (line.startswith("{") and line.endswith("}")) or "}" in line[:-1]:
        return None
    row, inner = {}, line[1:-1].strip(" ")
    for cell in inner.split(",") if inner else ():
        index, _, word = cell.strip(" ").partition(" ")
        if not (index.isascii() and index.isdigit() and int(index) < 3) or int(index) in row:
            return None
        row[int(index)] = _number(word.strip(" "))
    return [row.get(j, 0.0) for j in range(3)]


@given(
    lines=st.lists(
        st.one_of(
            st.text(alphabet="01237.,{} -+eE%\t\r'\"x", max_size=20),
            st.lists(st.sampled_from(["1", "0", ".5", "2e1", "'3'", "x"]), min_size=2, max_size=4)
            .map(",".join),
            st.lists(st.sampled_from(["0 1", "1 -2.5", "2 1", "2 0", "3 1", "1", ""]), max_size=3)
            .map(lambda cells: "{" + ",".join(cells) + "}"),
        ),
        max_size=5,
    )
)  # fmt: skip
@example(lines=["{}"])
@example(lines=["1,1,1", "{}"])
@example(lines=["\"1',1,1"])
def test_nonsense_is_refused_or_read_as_by_hand(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("nonsense") / "a.arff"
    path.write_bytes((HEAD + "\n".join(lines)).encode())
    try:
        data = read_arff(path, labels=-1)
    except DataFileError:
        found = None
    else:
        found = np.column_stack([dense(data.X), data.Y.toarray()]).tolist()
    assert found == rows_by_hand("\n".join(lines))


@given(content=st.binary(max_size=60), head=st.sampled_from([b"", HEAD.encode(), MIXED.encode()]))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, head):
    path = tmp_path_factory.mktemp("nonsense") / "a.arff"
    path.write_bytes(head + content)
    try:
        read_arff(path, labels=-1)
    except DataFileError as error:
        assert str(path) in str(error)  # noqa: PT017
