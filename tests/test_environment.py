"""Hardened containers, devices, links, pipes, and names that would command a terminal."""

import json
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import deltarank
from deltarank import LogisticRanker, load, save
from deltarank.cli import main
from deltarank.core import compiling, files
from deltarank.core.caching import cached_property
from deltarank.core.text import visible
from deltarank.datasets import DataFileError, detect_format, fetch, read

X = np.random.default_rng(0).normal(size=(20, 2))
RANKER = LogisticRanker().fit(X, [{"a"} if row[0] > 0 else {"b"} for row in X])
ROWS = "size,tags\n" + "".join(f"{row[0]},{'a' if row[0] > 0 else 'b'}\n" for row in X)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(ROWS)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["deltarank", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, capsys.readouterr()

    return run


class TestContainer:
    def test_kernels_are_compiled_uncached_where_nothing_can_be_written(self, monkeypatch):
        plain = compiling._njit

        def without_folder(**options):
            if options.get("cache"):
                raise RuntimeError("cannot cache function: no locator available")
            return plain(**options)

        monkeypatch.setattr(compiling, "_njit", without_folder)
        assert compiling.njit(nogil=True, cache=True)(lambda number: number + 1)(2) == 3

    def test_kernels_cached_by_different_processes_keep_apart(self, tmp_path):
        """Numba alone gives both the symbol of the closure that sorts, and one serves for both."""
        header = (
            "import numpy as np\nfrom deltarank.core.compiling import njit\n@njit(cache=True)\n"
        )
        in_place = "def run(x):\n    x = x.copy()\n    x.sort()\n    return x\n"
        (tmp_path / "one.py").write_text(header + in_place)
        (tmp_path / "two.py").write_text(f"{header}def run(x):\n    return np.argsort(x)\n")

        def python(code):
            done = subprocess.run(
                [sys.executable, "-c", f"import numpy as np\n{code}"],
                capture_output=True,
                text=True,
                check=True,
                cwd=tmp_path,
                env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            )
            return done.stdout

        # Four functions compiled before this one: then sort and argsort would share numbers.
        python(
            "import one\nfrom numba.core.bytecode import FunctionIdentity\n"
            "for _ in range(4):\n    next(FunctionIdentity._unique_ids)\n"
            "one.run(np.arange(50))"
        )
        python("import two\ntwo.run(np.arange(50))")
        both = python(
            "import one, two\nx = np.random.default_rng(0).permutation(100)\n"
            "print((one.run(x) == np.sort(x)).all(), (two.run(x) == np.argsort(x)).all())"
        )
        assert both == "True True\n"

    def test_every_cached_kernel_is_compiled_so(self):
        for path in Path(deltarank.__file__).parent.rglob("*.py"):
            if path.name != "compiling.py":
                assert "from numba import njit" not in path.read_text(), path

    def test_a_user_without_a_home_has_a_cache_among_temporary_files(self, monkeypatch, tmp_path):
        def homeless(path):
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.delenv("DELTARANK_DATA", raising=False)
        monkeypatch.setattr(Path, "expanduser", homeless)
        monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
        assert fetch.folders() == [tmp_path / "deltarank"]

    def test_a_closed_standard_input_is_said(self, run, monkeypatch):
        monkeypatch.setattr(sys, "stdin", None)
        code, printed = run("fit", "-", "-m", "m")
        assert (code, "standard input is closed" in printed.err) == (1, True)

    @pytest.mark.slow
    def test_a_fit_where_numba_finds_no_folder(self):
        """What numba does on a read-only disk without a home: it has no place for a cache."""
        code = (
            "from numba.core import caching\n"
            "caching.CompileResultCacheImpl._locator_classes = []\n"
            "import deltarank\n"
            "print(deltarank.LogisticRanker().fit([[0.0], [1.0]], [{'a'}, {'b'}]).rank([[1.0]]))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "[['b' 'a']]\n", done.stderr


class TestFilesWritten:
    def test_a_device_or_a_pipe_is_never_replaced(self, run, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        for path in (Path("/dev/null"), tmp_path / "pipe"):
            before = path.stat().st_mode
            with pytest.raises(OSError, match="a device or a pipe"):
                save(RANKER, path)
            code, printed = run("fit", "rows.csv", "--model", path)
            assert (code, "a device or a pipe" in printed.err) == (1, True)
            assert path.stat().st_mode == before

    def test_a_link_stays_a_link_and_a_mode_stays_a_mode(self, tmp_path):
        real, link = tmp_path / "folder" / "real", tmp_path / "link"
        real.parent.mkdir()
        real.write_bytes(b"old")
        real.chmod(0o640)
        link.symlink_to(real)
        save(RANKER, link)
        assert link.is_symlink()
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        assert load(real).classes_.tolist() == ["a", "b"]
        files.write_whole(tmp_path / "new", "x")
        usual = tmp_path / "usual"
        usual.write_text("x")
        assert (tmp_path / "new").stat().st_mode == usual.stat().st_mode


def test_cached_attributes_of_two_objects_do_not_wait_for_each_other():
    """A lock that they shared would be held for ever in a process forked meanwhile."""
    together = threading.Barrier(2, timeout=20)

    class Slow:
        @cached_property
        def place(self):
            return together.wait()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lambda slow: slow.place, [Slow(), Slow()])) == [0, 1]


class TestTerminal:
    NASTY = "red\x1b[2J\x07\u202etape\x9b31m"

    def test_what_commands_a_terminal_is_written_out(self):
        shown = r"red\x1b[2J\x07\u202etape\x9b31m"
        assert visible(self.NASTY) == shown
        assert visible("é\tß\n😀") == "é\tß\n😀"

    def test_no_command_sends_escapes_of_a_file_to_the_terminal(self, run, tmp_path):
        rows = [{self.NASTY: float(i), "tags": [self.NASTY, "b"][i % 2]} for i in range(8)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "a.jsonl").write_text(text)
        (tmp_path / "bad.jsonl").write_text(text + '{"' + r"x\u001b" + '": 1, "tags": {}}\n')
        for arguments in (
            ["fit", "a.jsonl", "-m", "m", "--C", "1"],
            ["fit", "a.jsonl", "--dry-run"],
            ["fit", "bad.jsonl", "-m", "n"],
            ["rank", "m", "a.jsonl", "--format", "table"],
            ["evaluate", "m", "a.jsonl"],
            ["explain", "m", "a.jsonl", "--row", "0", "--labels", self.NASTY, "b"],
            ["fit", "absent\x1b[2J.csv", "-m", "n"],
        ):
            _, printed = run(*arguments)
            assert not set("\x1b\x07\x9b\u202e") & set(printed.out + printed.err), arguments

    @pytest.mark.parametrize("format", ["jsonl", "csv", "csv-safe"])
    def test_rankings_as_data_are_made_visible_on_a_terminal_only(self, format, run, tmp_path):
        rows = [{"size": float(i), "tags": [self.NASTY, "b"][i % 2]} for i in range(8)]
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        run("fit", "a.jsonl", "-m", "m", "--C", "1")
        command = ("rank", "m", "a.jsonl", "--format", format)
        _, piped = run(*command)
        assert "\u202e" in piped.out
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdout.isatty", lambda: True)
            _, shown = run(*command)
        assert shown.out == visible(piped.out)
        assert not set("\x1b\x07\x9b\u202e") & set(shown.out)

    def test_a_safe_csv_holds_no_formula(self, run, tmp_path):
        labels = ["=1+1", "+x", "-x", "@x", "plain"]
        rows = [{"size": i, "tags": [labels[i % 5]]} for i in range(20)]
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert run("fit", "a.jsonl", "-m", "m", "--C", "1")[0] == 0
        _, printed = run("rank", "m", "a.jsonl", "--format", "csv-safe")
        written = {line.split(",")[2] for line in printed.out.splitlines()[1:]}
        assert written == {"'=1+1", "'+x", "'-x", "'@x", "plain"}
        _, printed = run("rank", "m", "a.jsonl", "--format", "csv")
        assert {line.split(",")[2] for line in printed.out.splitlines()[1:]} == set(labels)


class TestOddFiles:
    def test_a_pipe_is_read_as_standard_input_is(self, run, tmp_path):
        assert run("fit", "rows.csv", "-m", "m", "--C", "1")[0] == 0
        _, wanted = run("rank", "m", "rows.csv")
        os.mkfifo(tmp_path / "pipe")
        writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(ROWS))
        writer.start()
        code, printed = run("rank", "m", "pipe")
        writer.join()
        assert (code, printed.out) == (0, wanted.out)

    def test_a_table_that_begins_with_a_time_is_a_table(self, tmp_path):
        (tmp_path / "a").write_text("12:30,tags\n1,x\n2,y\n")
        assert detect_format(tmp_path / "a") == "csv"
        assert read(tmp_path / "a").feature_names == ("12:30",)

    @pytest.mark.parametrize("format", [None, "csv", "tsv", "jsonl", "libsvm", "arff"])
    def test_lines_that_end_in_carriage_returns_alone_are_said(self, tmp_path, format):
        (tmp_path / "a").write_bytes(b"a,tags\r1,x\r2,y\r")
        with pytest.raises(DataFileError, match="carriage return alone"):
            read(tmp_path / "a", format=format)
        (tmp_path / "a").write_bytes(b"a,tags\r\n1,x\r\n2,y\r\n")
        assert read(tmp_path / "a").X.tolist() == [[1], [2]]

    @pytest.mark.parametrize("text", ['[{"a": 1}, {"a": 2}]', '[\n  {"a": 1},\n  {"a": 2}\n]\n'])
    def test_a_json_array_is_said(self, tmp_path, text):
        (tmp_path / "a").write_text(text)
        for format in (None, "jsonl"):
            with pytest.raises(DataFileError, match=r"line 1.*got an array: jq -c"):
                read(tmp_path / "a", format=format, labels=[])
