"""`deltarank rank` reads a file some rows at a time, and ranks it as if it were read whole."""

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deltarank import LogisticRanker, datasets, save
from deltarank.cli import main
from deltarank.datasets import Preparation, read, write_libsvm, write_xmc
from deltarank.datasets.readers import formats
from deltarank.storage import load_with_extra

N_ROWS, N_FEATURES = 90, 6
NAMES = [f"x{j}" for j in range(N_FEATURES)]


def write_table(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same recipes in every format of tables, the same numbers in the others, and models."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, ipc, parquet

    folder = tmp_path_factory.mktemp("rows")
    rows = datasets.example_rows(N_ROWS, seed=1)
    write_table(folder / "train.csv", datasets.example_rows(200, seed=0))
    write_table(folder / "rows.csv", rows)
    (folder / "rows.csv.gz").write_bytes(gzip.compress((folder / "rows.csv").read_bytes()))
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tsv = [list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
    (folder / "rows.tsv").write_text("".join("\t".join(row) + "\n" for row in tsv))
    table = pyarrow.Table.from_pylist(rows)
    parquet.write_table(table, folder / "rows.parquet", row_group_size=40)
    feather.write_feather(table, folder / "rows.feather", chunksize=40)
    with ipc.new_stream(folder / "rows.stream", table.schema) as writer:
        writer.write_table(table, max_chunksize=40)
    train = read(folder / "train.csv")
    preparation = Preparation.fit(train, scale=True)
    sets = [{train.label_names[label] for label in row.indices} for row in train.Y]
    ranker = LogisticRanker().fit(preparation.transform(train.X), sets)
    save(ranker, folder / "tables.delta", extra={"preparation": preparation.to_json()})
    generator = np.random.default_rng(0)
    X = generator.normal(size=(N_ROWS, N_FEATURES)).round(3)
    X[generator.random(X.shape) < 0.4] = 0
    Y = (X[:, :3] > 0).astype(int)
    write_libsvm(folder / "rows.svm", X, Y)
    write_xmc(folder / "rows.xmc", X, Y)
    save(LogisticRanker().fit(X, Y), folder / "numbers.delta")
    head = "@relation r\n" + "".join(f"@attribute {name} numeric\n" for name in NAMES) + "@data\n"
    cells = [",".join(map(str, row)) for row in X.tolist()]
    (folder / "dense.arff").write_text(head + "% a remark\n" + "\n".join(cells) + "\n")
    braces = ["{" + ",".join(f"{j} {row[j]}" for j in np.flatnonzero(row)) + "}" for row in X]
    (folder / "sparse.arff").write_text(head + "\n".join(braces) + "\n")
    for kind in ("dense", "sparse"):
        data = read(folder / f"{kind}.arff", labels=[])
        prepared = Preparation.fit(data, scale=True)
        ranker = LogisticRanker().fit(prepared.transform(data.X), Y)
        save(ranker, folder / f"{kind}.delta", extra={"preparation": prepared.to_json()})
    return folder


def rank(monkeypatch, capsys, *arguments, stdin=b""):
    monkeypatch.setattr(sys, "argv", ["deltarank", "rank", *map(str, arguments)])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    code = 0
    try:
        main()
    except SystemExit as exit_:
        code = exit_.code or 0
    return code, *capsys.readouterr()


CASES = [
    ("tables.delta", "rows.csv"),
    ("tables.delta", "rows.csv.gz"),
    ("tables.delta", "rows.tsv"),
    ("tables.delta", "rows.jsonl"),
    ("tables.delta", "rows.parquet"),
    ("tables.delta", "rows.feather"),
    ("tables.delta", "rows.stream"),
    ("numbers.delta", "rows.svm"),
    ("numbers.delta", "rows.xmc"),
    ("dense.delta", "dense.arff"),
    ("sparse.delta", "sparse.arff"),
]


@pytest.mark.parametrize(("model", "file"), CASES)
@pytest.mark.parametrize("way", ["file", "stdin"])
def test_blocks_are_ranked_as_the_whole_file_is(folder, monkeypatch, capsys, model, file, way):
    ranker, extra = load_with_extra(folder / model)
    preparation = Preparation(N_FEATURES)
    if extra is not None:
        preparation = Preparation.from_json(extra["preparation"])
    X = preparation.transform(preparation.read(folder / file).X)
    n_read = count_blocks(monkeypatch, n_bytes=700)
    stdin = (folder / file).read_bytes() if way == "stdin" else b""
    code, out, err = rank(
        monkeypatch, capsys, folder / model, "-" if way == "stdin" else folder / file, stdin=stdin
    )
    assert (code, err) == (0, "")
    assert len(n_read) > 3, "the file was read in one piece"
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["row"] for line in lines] == list(range(N_ROWS))
    whole = ranker.rank(X, top=min(5, len(ranker.classes_))).tolist()
    assert [line["labels"] for line in lines] == whole
    scores = np.sort(ranker.decision_function(X), axis=1)[:, ::-1][:, :5]
    np.testing.assert_allclose([line["scores"] for line in lines], scores, atol=2e-6)


def count_blocks(monkeypatch, n_bytes):
    """Let blocks be small, and return a list that grows with each."""
    counted = []
    given = formats.read_blocks

    def small(path, encoder, *, format):
        for block in given(path, encoder, format=format, n_bytes=n_bytes):
            counted.append(block.X.shape[0])
            yield block

    monkeypatch.setattr("deltarank.datasets.preparation.read_blocks", small)
    return counted


BAD_LINES = {
    "rows.csv": ("tables.delta", "only, two\n", "a row must have 4 cells"),
    "rows.jsonl": ("tables.delta", "{nonsense\n", "not JSON"),
    "rows.svm": ("numbers.delta", "0 1:1 2:x\n", "a value must be a number"),
    "dense.arff": ("dense.delta", "1,2,x,4,5,6\n", "a number is wanted; got 'x'"),
}


@pytest.mark.parametrize("file", BAD_LINES)
def test_a_bad_line_is_named_after_the_rows_of_the_blocks_before_it(
    folder, tmp_path, monkeypatch, capsys, file
):
    model, line, words = BAD_LINES[file]
    lines = (folder / file).read_text().splitlines(keepends=True)
    bad = tmp_path / file
    bad.write_text("".join([*lines, line, *lines[-2:]]))
    count_blocks(monkeypatch, n_bytes=700)
    code, out, err = rank(monkeypatch, capsys, folder / model, bad)
    assert code == 1
    assert f"{bad}, line {len(lines) + 1}" in err
    assert words in err
    assert err.count("\n") == 1
    printed = [json.loads(line)["row"] for line in out.splitlines()]
    assert 20 < len(printed) <= N_ROWS
    assert printed == list(range(len(printed)))


def test_a_bad_cell_of_a_file_without_lines_is_named_by_its_row(
    folder, tmp_path, monkeypatch, capsys
):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{**row, "minutes": "soon"} for row in datasets.example_rows(1)]
    rows = [{**row, "minutes": str(row["minutes"])} for row in datasets.example_rows(70)] + rows
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "bad.parquet")
    count_blocks(monkeypatch, n_bytes=500)
    code, _, err = rank(monkeypatch, capsys, folder / "tables.delta", tmp_path / "bad.parquet")
    assert code == 1
    assert "row 70: a number is wanted; got 'soon'" in err


def test_an_xmc_file_that_breaks_its_promise_is_found_out_in_the_end(
    folder, tmp_path, monkeypatch, capsys
):
    text = (folder / "rows.xmc").read_text()
    (tmp_path / "cut.xmc").write_text(text[: text.rindex("\n", 0, -1) + 1])
    code, _, err = rank(monkeypatch, capsys, folder / "numbers.delta", tmp_path / "cut.xmc")
    assert code == 1
    assert f"promises {N_ROWS} rows; got {N_ROWS - 1}" in err


def test_a_column_of_json_lines_may_be_absent_from_later_blocks(
    folder, tmp_path, monkeypatch, capsys
):
    rows = datasets.example_rows(60)
    for row in rows[30:]:
        del row["season"]
    path = tmp_path / "some.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = rank(monkeypatch, capsys, folder / "tables.delta", path)
    n_read = count_blocks(monkeypatch, n_bytes=700)
    assert rank(monkeypatch, capsys, folder / "tables.delta", path) == whole
    assert len(n_read) > 3


MEASURE = """
import sys
from measure import memory_kb, reset_peak
from deltarank.cli import main
from deltarank.datasets.readers import formats
formats.read_blocks.__kwdefaults__["n_bytes"] = 1 << 18
small, large = sys.argv[2:]
def peak(path):
    sys.argv = ["deltarank", "rank", {model!r}, path]
    reset_peak()
    try:
        main()
    except SystemExit as done:
        assert not done.code
    return memory_kb("VmHWM")
peak(small)
print(peak(small), peak(large), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("model", "file"),
    [("tables.delta", "rows.csv"), ("tables.delta", "rows.parquet"), ("numbers.delta", "rows.svm")],
)
def test_memory_does_not_grow_with_the_file(folder, tmp_path, model, file):
    small, large = (tmp_path / f"{times}-{file}" for times in (1, 4))
    for path, times in ((small, 1), (large, 4)):
        repeated(folder / file, path, times * {"rows.svm": 400}.get(file, 100))
    code = MEASURE.format(model=str(folder / model))
    benchmarks = Path(__file__).parents[1] / "benchmarks"
    done = subprocess.run(
        [sys.executable, "-c", code, "rank", str(small), str(large)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=300,
        env={"PYTHONPATH": str(benchmarks), "DELTARANK_NUM_THREADS": "1", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stderr.split())
    # Held in memory, the rows that were added take 20 MB and more.
    assert after - before < 10_000, f"{before} kB became {after} kB"


def repeated(source, target, times):
    """Write a file with the rows of another many times over."""
    if source.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        table = parquet.read_table(source)
        parquet.write_table(pyarrow.concat_tables([table] * times), target, row_group_size=2000)
        return
    lines = source.read_text().splitlines(keepends=True)
    head = 1 if source.suffix == ".csv" else 0
    with target.open("w") as file:
        file.writelines(lines[:head])
        body = "".join(lines[head:])
        for _ in range(times):
            file.write(body)
