"""The package as a whole: what importing costs, what documents claim, files and threads."""

import os
import re
import runpy
import subprocess
import sys
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import deltarank
from deltarank.core import files, threads
from deltarank.core.threads import row_blocks, run

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
HEAVY = {"sklearn", "numba", "scipy", "matplotlib", "torch", "dask", "pandas", "onnx", "fastapi"}


def python(code, **options):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, **options
    )


def loaded_after(statement):
    result = python(f"import sys\n{statement}\nprint(*{{m.split('.')[0] for m in sys.modules}})")
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


def test_importing_the_package_or_its_command_loads_no_heavy_library():
    assert not loaded_after("import deltarank") & (HEAVY | {"numpy"})
    assert not loaded_after("import deltarank.cli") & (HEAVY | {"numpy"})


def test_listing_data_sets_loads_no_heavy_library():
    listing = "import deltarank.datasets.fetch; deltarank.datasets.CATALOGUE"
    assert not loaded_after(listing) & HEAVY


def test_using_the_metrics_loads_no_optional_library():
    optional = HEAVY - {"numba", "scipy"}
    assert not loaded_after("import deltarank.metrics, deltarank.theory") & optional


def test_every_public_name_is_there():
    for name in deltarank.__all__:
        assert getattr(deltarank, name) is not None
        assert name in dir(deltarank)
    with pytest.raises(AttributeError, match="has no attribute 'rnk_loss'"):
        _ = deltarank.rnk_loss


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == deltarank.__version__
    assert f"## {deltarank.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_citation_of_an_equation_leads_somewhere():
    listed = re.findall(r"^\| \((\d+)\) \|", (ROOT / "docs/equations.md").read_text(), re.M)
    known = set(listed)
    assert len(listed) == len(known), "two equations have one number"
    assert known == {str(number) for number in range(1, len(known) + 1)}
    places = [*SOURCES, *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    for place in places:
        text = place.read_text()
        for citation in re.findall(r"Eq\. (\(\d+\)(?:(?:,| and| or) \(\d+\))*)", text):
            for number in re.findall(r"\d+", citation):
                assert number in known, f"{place.name} cites Eq. ({number})"


def test_links_between_documents_lead_somewhere():
    for page in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_continuous_integration_runs_the_commands_of_the_readme_before_it_installs_anything():
    commands = runpy.run_path(str(ROOT / ".ci/readme.py"))["commands"]()
    assert list(commands) == ["reproduce", "test"]
    readme = (ROOT / "README.md").read_text()
    for command in commands.values():
        assert f"```console\n$ {command}\n```" in readme
    steps = (ROOT / ".ci/run").read_text()
    assert "set -euo pipefail" in steps
    assert steps.index("\npython3 .ci/readme.py\n") < steps.index("pip install")


def test_the_steps_of_the_noxfile_can_be_loaded_and_are_listed_for_contributors():
    pytest.importorskip("nox", reason="needs nox")
    code = "import nox, runpy; runpy.run_path('noxfile.py'); print(*nox.registry.get())"
    result = python(code, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    steps = result.stdout.split()
    assert {"readme", "bare", "tests", "gpu", "pythons"} <= set(steps)
    contributing, run = ((ROOT / name).read_text() for name in ("CONTRIBUTING.md", ".ci/run"))
    for step in steps:
        assert f"`{step}`" in contributing
    assert set(re.search(r"nox -s (.+)", run).group(1).split()) < set(steps)


def test_the_lock_file_names_every_dependency_and_no_registry():
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in project["dependencies"]:
        name = re.match(r"[\w-]+", requirement).group()
        assert re.search(rf"^{name}==[^\n]+\\\n    --hash=sha256:", lock, re.M), name


class TestFiles:
    def test_a_failed_write_leaves_the_old_file_and_no_litter(self, tmp_path, monkeypatch):
        target = tmp_path / "model"
        files.write_whole(target, "old")

        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            files.write_whole(target, "new")
        assert target.read_text() == "old"
        assert os.listdir(tmp_path) == ["model"]

    def test_folders_are_made_and_files_are_readable_by_others(self, tmp_path):
        target = tmp_path / "a" / "b"
        files.write_whole(target, b"\x00\x01")
        assert target.read_bytes() == b"\x00\x01"
        plain = tmp_path / "plain"
        plain.write_text("")
        assert target.stat().st_mode == plain.stat().st_mode

    def test_writers_in_threads_leave_the_mask_of_new_files_alone(self, tmp_path):
        before, interval = os.umask(0o077), sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda i: files.write_whole(tmp_path / str(i), "x"), range(400)))
            assert os.umask(0o077) == 0o077
            assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
        finally:
            os.umask(before)
            sys.setswitchinterval(interval)

    def test_what_a_killed_writer_left_is_removed_and_what_others_write_is_not(self, tmp_path):
        target = tmp_path / "[a]*.json"
        killed = tmp_path / f".{target.name}.0123abcd.unfinished"
        others = [tmp_path / f".{target.name}.swp", tmp_path / ".other.0123abcd.unfinished"]
        for path in (killed, *others):
            path.write_text("half")
        with files.whole_file(target) as slow:
            slow.write(b"late")
            files.write_whole(target, "soon")
            assert target.read_text() == "soon"
            assert not killed.exists()
        assert target.read_text() == "late"
        assert sorted(tmp_path.iterdir()) == sorted([target, *others])

    def test_an_error_of_the_disk_names_the_file(self, tmp_path, monkeypatch):
        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"No space left on device: '.*model'"):
            files.write_whole(tmp_path / "model", "new")


class TestThreads:
    def test_results_come_in_order_also_from_tasks_within_tasks(self, monkeypatch):
        monkeypatch.setenv("DELTARANK_NUM_THREADS", "2")

        def outer(i):
            return run([partial(pow, i, j) for j in range(4)])

        expected = [[i**j for j in range(4)] for i in range(8)]
        assert run([partial(outer, i) for i in range(8)]) == expected

    def test_errors_reach_the_caller(self, monkeypatch):
        monkeypatch.setenv("DELTARANK_NUM_THREADS", "2")
        with pytest.raises(ZeroDivisionError):
            run([partial(divmod, 1, 0), partial(divmod, 1, 1)])

    def test_blocks_cover_all_rows_once(self):
        for n in (1, 7, 8, 9):
            rows = np.concatenate([np.arange(n)[block] for block in row_blocks(n, 4)])
            assert rows.tolist() == list(range(n))

    def test_without_room_for_threads_tasks_run_in_place(self, monkeypatch):
        def without_room(*_):
            raise OSError(12, "Cannot allocate memory")

        monkeypatch.setattr(threads, "_pool", None)
        monkeypatch.setattr(threads.mmap, "mmap", without_room)
        monkeypatch.setenv("DELTARANK_NUM_THREADS", "2")
        assert threads.run([threading.get_ident] * 3) == [threading.get_ident()] * 3

    def test_a_forked_child_can_use_the_pool(self):
        code = """
import os, numpy as np
os.environ["DELTARANK_NUM_THREADS"] = "2"
from deltarank import rank_loss
Y, S = np.eye(40, dtype=int), np.eye(40)
assert rank_loss(Y, S) == 0
child = os.fork()
if child == 0:
    os._exit(0 if rank_loss(Y, S) == 0 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
        result = python(code)
        assert result.returncode == 0, result.stderr
