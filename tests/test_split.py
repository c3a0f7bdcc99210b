"""deltarank split: rows as they stand, labels spread, time and groups respected."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from deltarank.cli.split import grouped, latest, spread
from deltarank.datasets import detect_format, read
from deltarank.datasets.records import read_records


def run(*arguments):
    command = [str(Path(sys.executable).parent / "deltarank"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


CSV = 'text,tags\n"two\nlines, quoted ""so""",a\nplain,b\n;,a\nlast,"a, b"\n'
CONTENTS = {
    "a.csv": CSV,
    "a.tsv": "text\ttags\none\ta\ntwo\tb\nthree\ta\nfour\tb\n",
    "a.jsonl": "".join(json.dumps({"a": i, "tags": ["x"]}) + "\n" for i in range(4)),
    "a.svm": "0 1:1\n1 2:1\n 1:3\n0,1 2:2\n",
    "a.txt": "4 2 2\n0 0:1\n1 1:1\n 0:3\n0,1 1:2\n",
}


@pytest.mark.parametrize("name", CONTENTS)
def test_some_rows_of_a_file_are_read_as_those_rows_of_the_whole(tmp_path, name):
    path, part = tmp_path / name, tmp_path / f"part-{name}.gz"
    path.write_text(CONTENTS[name])
    format = detect_format(path)
    records = read_records(path, format)
    assert records.n_rows == 4
    records.write(part, [0, 3])
    options = {"label_names": ["a", "b", "x"]} if format in ("csv", "tsv", "jsonl") else {}
    whole, some = read(path, **options), read(part, **options)
    np.testing.assert_array_equal(some.Y.toarray(), whole.Y.toarray()[[0, 3]])


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_some_rows_of_an_arrow_table_are_those_rows(tmp_path, name):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    write = {"parquet": parquet.write_table, "arrow": feather.write_feather}[name]
    write(pa.table({"size": [1.0, 2.0, 3.0], "tags": [["a"], [], ["b"]]}), str(tmp_path / "a"))
    records = read_records(tmp_path / "a", name)
    records.write(tmp_path / "b", np.array([0, 2]))
    assert read(tmp_path / "b", labels="tags", format=name).X.ravel().tolist() == [1.0, 3.0]


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_every_label_is_on_both_sides_in_its_share(share):
    generator = np.random.default_rng(0)
    Y = (generator.random((400, 5)) < [0.5, 0.3, 0.2, 0.1, 0.05]).astype(np.int8)
    tested = spread(Y, share, seed=1)
    assert abs(tested.mean() - share) < 0.03
    np.testing.assert_allclose(Y[tested].sum(axis=0), share * Y.sum(axis=0), atol=4)


def test_rows_of_one_moment_stay_together():
    days = ["2026-01-02", "2026-01-01", "2026-01-02", "2026-01-03T10:00", "2026-01-02"]
    assert latest(days, 0.4, "day").tolist() == [False, False, False, True, False]
    assert latest(["10", "9", "8", "100"], 0.25, "day").tolist() == [False, False, False, True]
    with pytest.raises(ValueError, match=r"--by-time day: .* row 1 has 'soon'"):
        latest(["2026-01-01", "soon"], 0.5, "day")


def test_no_group_is_on_both_sides():
    cells = [f"author {i % 17}" for i in range(200)]
    tested = grouped(cells, 0.3, seed=0)
    sides = {cell: {bool(tested[i]) for i in range(200) if cells[i] == cell} for cell in cells}
    assert all(len(side) == 1 for side in sides.values())
    assert abs(tested.mean() - 0.3) < 0.06


def test_the_command_writes_every_row_once(tmp_path):
    lines = [json.dumps({"n": i, "day": f"2026-01-{i % 28 + 1:02}", "who": i % 5, "tags": ["x"]})
             for i in range(60)]  # fmt: skip
    (tmp_path / "all.jsonl").write_text("\n".join(lines) + "\n")
    for more in ([], ["--by-time", "day"], ["--by-group", "who"]):
        files = [tmp_path / "train.jsonl", tmp_path / "test.jsonl.xz"]
        done = run("split", tmp_path / "all.jsonl", "--train", files[0], "--test", files[1], *more)
        assert done.returncode == 0, done.stderr
        rows = [Counter(read(file).X[:, 0].tolist()) for file in files]
        assert rows[0] + rows[1] == Counter(range(60))
        assert "wrote" in done.stderr
        assert not done.stdout


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--by-time", "day", "--by-group", "who"], "exclude each other"),
        (["--share", "1.5"], "--share must be between 0 and 1; got 1.5"),
        (["--by-group", "nobody"], "has no column 'nobody'; its columns are 'size', 'tags'"),
        (["--share", "0.0001"], "--share must be between 0.05 and 0.95 where labels are"),
    ],
)
def test_wrong_options_are_named(tmp_path, more, said):
    path = tmp_path / "a.csv"
    path.write_text("size,tags\n" + "1,a\n2,b\n" * 10)
    done = run("split", path, "--train", tmp_path / "b", "--test", tmp_path / "c", *more)
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "b").exists()
