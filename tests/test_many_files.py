"""Tables in many files: read as one, and never held as a whole."""

import json
import subprocess
import sys

import numpy as np
import pytest

from deltarank import load
from deltarank.cli import main
from deltarank.datasets import read
from deltarank.datasets.readers.many_files import read_many

RNG = np.random.default_rng(0)
WORDS = [f"word{i}" for i in range(40)]
ROWS = [
    {
        "text": " ".join(RNG.choice(WORDS, 8)),
        "size": int(RNG.integers(9)),
        "colour": str(RNG.choice(["red", "blue", "dark green"])),
        "tags": [str(tag) for tag in RNG.choice(["sea", "sun", "snow"], 2, replace=False)],
    }
    for _ in range(90)
]


def write(folder, kind, rows, name):
    path = folder / f"{name}.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "csv":
        lines = [f"{r['text']},{r['size']},{r['colour']},{';'.join(r['tags'])}\n" for r in rows]
        path.write_text("text,size,colour,tags\n" + "".join(lines))
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_many_files_are_read_as_one(kind, tmp_path):
    whole = read(write(tmp_path, kind, ROWS, "whole"))
    parts = [write(tmp_path, kind, ROWS[i : i + 30], f"part{i}") for i in (0, 30, 60)]
    many = read_many(parts, n_bytes=500)
    assert many.feature_names == whole.feature_names
    assert many.label_names == whole.label_names
    assert (many.Y != whole.Y).nnz == 0
    assert abs(many.X - whole.X).max() < 1e-12
    assert many.encoder == whole.encoder


def test_named_columns_are_taken_as_they_are_named(tmp_path):
    parts = [write(tmp_path, "csv", ROWS[i : i + 30], f"part{i}") for i in (0, 30, 60)]
    many = read_many(parts, text=["colour"], ignore=["size"], n_bytes=500)
    kinds = {column.name: column.kind for column in many.encoder.columns}
    assert kinds == {"text": "text", "colour": "text"}


def test_objects_may_leave_a_name_out_and_tables_may_not(tmp_path):
    short = [{k: v for k, v in row.items() if k != "size"} for row in ROWS[:30]]
    first = write(tmp_path, "jsonl", short, "a")
    second = write(tmp_path, "jsonl", ROWS[30:], "b")
    whole = tmp_path / "whole.jsonl"
    whole.write_text(first.read_text() + second.read_text())
    many = read_many([first, second], n_bytes=500)
    assert {c.name for c in many.encoder.columns} == {"text", "size", "colour"}
    one = read(whole)
    column = {name: j for j, name in enumerate(one.feature_names)}
    order = [column[name] for name in many.feature_names]
    assert abs(many.X - one.X[:, order]).max() < 1e-12
    other = tmp_path / "other.csv"
    other.write_text("text,tags\nthe sea in the sun,sea\n")
    with pytest.raises(ValueError, match=r"other\.csv: all files must have the same columns"):
        read_many([write(tmp_path, "csv", ROWS, "c"), other])


def test_what_is_no_table_is_refused(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:0.5\n2 2:1\n")
    with pytest.raises(ValueError, match=r"rows.svm: many files .* \(csv, .*\); got libsvm"):
        read_many([path])
    with pytest.raises(ValueError, match="at least one file"):
        read_many([])


def command(monkeypatch, *given):
    monkeypatch.setattr("sys.argv", ["deltarank", *map(str, given)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_a_pattern_is_fitted_as_one_file_would_be(tmp_path, monkeypatch, capsys):
    one = write(tmp_path, "jsonl", ROWS, "whole")
    for i in (0, 30, 60):
        write(tmp_path, "jsonl", ROWS[i : i + 30], f"part{i}")
    pattern = tmp_path / "part*.jsonl"
    assert command(monkeypatch, "fit", pattern, "--C", "1", "--model", tmp_path / "many") == 0
    assert "reading 3 files, some rows at a time" in capsys.readouterr().err
    assert command(monkeypatch, "fit", one, "--C", "1", "--model", tmp_path / "one") == 0
    many, single = load(tmp_path / "many"), load(tmp_path / "one")
    np.testing.assert_allclose(many.coef_, single.coef_, atol=1e-6)
    assert command(monkeypatch, "fit", tmp_path / "no*.csv", "--model", tmp_path / "m") != 0
    assert "no file is called" in capsys.readouterr().err


def test_files_that_a_pattern_names_are_ranked_and_measured_as_one(tmp_path, monkeypatch, capsys):
    one, model = write(tmp_path, "jsonl", ROWS, "whole"), tmp_path / "m"
    for i in (0, 30, 60):
        write(tmp_path, "jsonl", ROWS[i : i + 30], f"part{i}")
    pattern = tmp_path / "part*.jsonl"
    assert command(monkeypatch, "fit", one, "--C", "1", "--model", model) == 0
    capsys.readouterr()
    for name, *more in (["rank", "--top", "2"], ["evaluate"], ["explain", "--row", "65"]):
        printed = []
        for data in (one, pattern):
            assert command(monkeypatch, name, model, data, *more) == 0
            printed.append(capsys.readouterr().out)
        assert printed[1] == printed[0]
        assert printed[0]
        assert command(monkeypatch, name, model, tmp_path / "no*.csv", *more) != 0
        assert "no file is called" in capsys.readouterr().err


PEAK = """
import sys
from pathlib import Path
from deltarank.datasets.readers.many_files import read_many

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

paths = sorted(Path(sys.argv[1]).glob("*.jsonl"))
read_many(paths[:1])  # compiled and loaded
before = peak()
data = read_many(paths)
print(data.X.shape[0], peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_text(tmp_path):
    rows = []
    for i in range(300):
        row = {"text": " ".join(RNG.choice(WORDS, 2000)), "tags": [f"t{i % 7}"]}
        rows.append(json.dumps(row) + "\n")
    part = "".join(rows)
    for name in range(36):
        (tmp_path / f"{name}.jsonl").write_text(part)
    ran = subprocess.run([sys.executable, "-c", PEAK, tmp_path], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    n_rows, grown = map(int, ran.stdout.split())
    assert n_rows == 36 * 300
    # The allocator alone keeps some ten MB, so the text must be many times as much.
    assert 36 * len(part) > 135 * 2**20
    assert grown * 2**10 < 36 * len(part) / 3
