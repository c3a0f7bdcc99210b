"""Every benchmark runs: each section on tiny made-up data, what it prints read as tables."""

import ast
import csv
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from scipy import sparse

import guard
import measure
import real_data
from deltarank import datasets

ROOT = Path(__file__).parents[1]
SHARED = {"measure.py", "real_data.py", "text_peers.py"}
SCRIPTS = sorted({path.name for path in (ROOT / "benchmarks").glob("*.py")} - SHARED - {"guard.py"})
TINY = {"DELTARANK_BENCH_SCALE": "0.001", "DELTARANK_DATA": ""}


def sections_of(script):
    """Return the names of the functions that a script hands to run_sections."""
    tree = ast.parse((ROOT / "benchmarks" / script).read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    ours = [call for call in calls if getattr(call.func, "id", "") == "run_sections"]
    return [argument.id for call in ours for argument in call.args]


def tables(text):
    """Return what was printed as tables: of each its head and its rows, as lists of cells."""
    lines = [line[1:-1].split("|") for line in text.splitlines() if line.startswith("|")]
    rules = [i for i, cells in enumerate(lines) if set("".join(cells)) == {"-"}]
    ends = [*(rule - 1 for rule in rules), len(lines)][1:]
    return [(lines[i - 1], lines[i + 1 : end]) for i, end in zip(rules, ends, strict=True)]


def check_rows(text):
    """Hold each row to the width of its head, and to numbers that are finite."""
    for head, rows in tables(text):
        for row in rows:
            assert len(row) == len(head), row
            assert re.search(r"\d", "".join(row)), f"no number in {row}"
            assert not re.search(r"\b(nan|inf)\b", "|".join(row)), row


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_hands_its_sections_to_run_sections(script):
    assert sections_of(script), (
        f"end {script} in: if __name__ == '__main__': run_sections(first, second), functions of it "
        "that print tables, with sizes that go through scaled(); see benchmarks/measure.py"
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_finds_all_that_it_imports(script):
    try:
        import_module(Path(script).stem)
    except measure.LeftOut as lacking:
        pytest.skip(str(lacking))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "section"), [(script, name) for script in SCRIPTS for name in sections_of(script)]
)
def test_a_section_prints_tables_of_finite_numbers(script, section, tmp_path):
    command = [sys.executable, str(ROOT / "benchmarks" / script), section]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **TINY},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    check_rows(done.stdout)
    lacking = re.search(rf"^(?:{section} left out: )?(needs .+)\n\Z", done.stderr, re.MULTILINE)
    if done.returncode == 1 and lacking:
        pytest.skip(lacking[1])
    assert done.returncode == 0, done.stderr
    printed = tables(done.stdout)
    assert printed, done.stdout
    assert all(rows for _, rows in printed), done.stdout


@pytest.mark.slow
def test_guard_prints_and_records_the_times_of_every_task(monkeypatch, tmp_path, capsys):
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    # Both sides are what is installed here: environments of their own would take minutes.
    monkeypatch.setattr(guard, "environment", lambda source, folder, threads: sys.executable)
    monkeypatch.setattr(guard, "HISTORY", tmp_path / "history.csv")
    monkeypatch.setattr(guard, "TURNS", 1)
    monkeypatch.setattr(guard, "ROWS", 500)
    monkeypatch.setattr(sys, "argv", ["guard.py", "HEAD", "--limit", "1000", "--record", "0.0"])
    guard.main()
    printed = capsys.readouterr().out
    check_rows(printed)
    ((_, rows),) = tables(printed)
    with (tmp_path / "history.csv").open(newline="") as file:
        recorded = [row["task"] for row in csv.DictReader(file)]
    assert recorded == [row[0].strip() for row in rows]
    assert len(rows) > 5


def test_guard_fails_where_head_is_slower_than_the_limit_allows(monkeypatch, capsys):
    best = {("fit", "base"): 1, ("fit", "head"): 1.3, ("rank", "base"): 1, ("rank", "head"): 1.2}
    monkeypatch.setattr(guard, "checked_out", lambda commit, folder: folder)
    monkeypatch.setattr(guard, "environment", lambda source, folder, threads: sys.executable)
    monkeypatch.setattr(guard, "compare", lambda base, head, threads: best)
    monkeypatch.setattr(sys, "argv", ["guard.py", "main"])
    with pytest.raises(SystemExit, match=r"^slower than 1\.25 times main: fit$"):
        guard.main()
    check_rows(capsys.readouterr().out)


def test_an_unknown_section_is_refused_with_those_there_are(monkeypatch):
    def fit():
        raise AssertionError("it ran")

    def rank():
        raise AssertionError("it ran")

    monkeypatch.setattr(sys, "argv", ["bench.py", "fit", "fti"])
    with pytest.raises(SystemExit, match=r"^unknown section 'fti'; choose from fit, rank$"):
        measure.run_sections(fit, rank)


def test_a_section_that_lacks_something_is_left_out_and_the_others_run(monkeypatch):
    ran = []

    def fit():
        raise measure.LeftOut("needs a CUDA device")

    def rank():
        ran.append(os.environ["DELTARANK_NUM_THREADS"])

    monkeypatch.setattr(sys, "argv", ["bench.py"])
    monkeypatch.setenv("DELTARANK_NUM_THREADS", "1")
    with pytest.raises(SystemExit, match=r"^fit left out: needs a CUDA device$"):
        measure.run_sections(fit, rank)
    assert ran == ["2"]


def test_a_module_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "napkinxc", None)
    with pytest.raises(
        measure.LeftOut, match=r"^needs napkinxc: pip install 'deltarank\[bench\]'$"
    ):
        measure.extra("bench", "napkinxc")


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["mediamill", "scene", "yeast", "delicious", "eurlex-4k"])
def test_a_stand_in_is_dense_or_sparse_like_the_real_data(monkeypatch, data_folder, name):
    monkeypatch.setattr(measure, "SCALE", 0.001)
    real, made = datasets.load(name), real_data.stand_in(name)
    for wanted, found in ((real.X_train, made.X), (real.Y_train, made.Y)):
        assert sparse.issparse(found) == sparse.issparse(wanted)
        assert found.dtype == wanted.dtype
