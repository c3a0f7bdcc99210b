"""The command, run as a user would run it."""

import json
import os
import pty
import resource
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from deltarank.cli import main

COMMAND = [str(Path(sys.executable).parent / "deltarank")]


def run(*arguments, **options):
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120, **options
    )


@pytest.fixture(scope="module")
def section4(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    return run("reproduce", "section4", "--seed", "7", "--out", str(folder)), folder


def test_section4_says_that_univariate_surrogates_rank_rightly_and_pairwise_ones_do_not(section4):
    result, _ = section4
    assert result.returncode == 0, result.stderr
    head, *lines = [line.split("\t") for line in result.stdout.splitlines()]
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    verdict = {(row["example"], row["surrogate"]): row["right"] for row in rows}
    for example in "AB":
        for loss in ("exponential", "logistic"):
            assert verdict[example, f"univariate {loss}"] == "yes"
            assert verdict[example, f"pairwise {loss}"] == "no"
    regret = {(row["example"], row["surrogate"]): float(row["regret"]) for row in rows}
    assert regret["A", "pairwise logistic"] == 0.025
    assert regret["B", "pairwise exponential"] == 0.05


def test_a_pipe_gets_nothing_but_data_and_files_hold_the_same_rows(section4):
    result, folder = section4
    assert {line.count("\t") for line in result.stdout.splitlines()} == {8}
    saved = [json.loads(line) for line in (folder / "section4.jsonl").read_text().splitlines()]
    assert len(saved) == len(result.stdout.splitlines()) - 1
    assert saved[0]["scores"] == [0.549306, 0.423649, -0.549306]
    assert "command: deltarank reproduce section4 --seed 7." in (folder / "report.html").read_text()
    figure = ElementTree.fromstring((folder / "section4.svg").read_text())
    text = " ".join(figure.itertext())
    assert "pairwise logistic" in text
    assert "2 > 1 > 3, regret 0.025" in text


def test_a_terminal_gets_a_table(tmp_path):
    reader, writer = pty.openpty()
    environment = {**os.environ, "COLUMNS": "150", "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [*COMMAND, "reproduce", "section4", "--out", str(tmp_path)],
        stdout=writer, stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    os.close(writer)
    shown = b""
    try:
        while chunk := os.read(reader, 4096):
            shown += chunk
    except OSError:  # the terminal is gone when the process ends
        pass
    assert process.wait(timeout=60) == 0
    assert "Which surrogates put three labels in the right order" in shown.decode()
    assert "│ 2 > 1 > 3" in shown.decode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reproduce", "section4", "section9"], "unknown experiment 'section9'; choose one of"),
        (["reproduce", "--labels", "1"], "Invalid value for '--labels'"),
        (["reproduce", "--sizes", "100,x"], "--sizes must be positive whole numbers joined by"),
        (["reproduce", "--Cs", "1,-1"], "--Cs must be positive numbers joined by commas"),
        (["rnk"], "No such command 'rnk'"),
        (["reproduce", "section4", "--where", "x"], "No such option"),
        (["reproduce", "section4", "--out", "/dev/null/x"], "--out must name a folder"),
    ],
)
def test_wrong_arguments_give_a_line_of_words_and_no_traceback(arguments, words):
    result = run(*arguments)
    assert result.returncode != 0
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_help_is_instant_and_the_version_is_the_packages():
    import deltarank

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = run("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "reproduce" in result.stdout
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 0.6, "wanted 0.3 s on an idle core; doubled here for busy ones"
    assert run("--version").stdout.strip() == deltarank.__version__


def test_the_figure_is_optional(tmp_path):
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "matplotlib.py").write_text("raise ImportError('blocked')")
    environment = {**os.environ, "PYTHONPATH": str(blocked)}
    result = run("reproduce", "section4", "--out", str(tmp_path), env=environment)
    assert result.returncode == 0
    assert "no figure: figures need matplotlib: pip install 'deltarank[report]'" in result.stderr
    assert (tmp_path / "section4.jsonl").exists()
    assert not (tmp_path / "section4.svg").exists()


class TestDatasets:
    def test_the_list_has_the_columns_of_table_1(self):
        head, *lines = [line.split("\t") for line in run("datasets").stdout.splitlines()]
        assert head[:8] == ["dataset", "#train", "#test", "#attr.", "#lab.", "min", "ave.", "max"]
        rows = {line[0]: line[1:8] for line in lines}
        assert rows["yeast"] == ["1500", "917", "103", "14", "1", "4.23", "11"]
        assert rows["bibtex"][:4] == ["4880", "2515", "1836", "159"]

    def test_show_counts_from_the_files(self, data_folder):
        head, line = [
            line.split("\t") for line in run("datasets", "show", "scene").stdout.splitlines()
        ]
        assert line[:8] == ["scene", "1211", "1196", "294", "6", "1", "1.06", "3"]
        assert head[8:] == ["split", "source", "licence"]

    def test_convert_goes_from_any_format_to_text_and_back(self, tmp_path):
        table = tmp_path / "in.csv"
        table.write_text('name,size,body,tags\na,1.5,red hat,x;y\nb,2,"blue, old hat",\n')
        result = run(
            "datasets", "convert", str(table), str(tmp_path / "out.txt.gz"),
            "--label-list", "tags", "--separator", ";", "--text", "body", "--ignore", "name",
        )  # fmt: skip
        assert (result.returncode, result.stdout) == (0, ""), result.stderr
        assert "2 rows, 5 sparse features, 2 labels" in result.stderr
        result = run("datasets", "convert", str(tmp_path / "out.txt.gz"), str(tmp_path / "out.svm"))
        assert result.returncode == 0, result.stderr
        first, second = (tmp_path / "out.svm").read_text().splitlines()
        assert first.startswith("0,1 1:1.5 ")
        assert second.startswith(" 1:2 ")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["show", "nix"], "unknown data set 'nix'; choose one of"),
            (["convert", "absent.svm", "b.svm"], "No such file"),
            (["convert", "absent.svm", "b.doc"], "does not tell a format to write"),
            (["convert", "absent.svm", "b.svm", "--to", "csv"], "unknown format 'csv'; choose one"),
        ],
    )
    def test_mistakes_are_one_line(self, arguments, words):
        result = run("datasets", *arguments)
        assert result.returncode == 1
        assert words in result.stderr
        assert "Traceback" not in result.stderr
        assert result.stdout == ""

    def test_a_terminal_sees_how_far_a_long_reading_is_and_a_pipe_does_not(self, tmp_path):
        rows = "".join(f"{i % 7} 1:{i}.25 2:0.5 3:1e-3\n" for i in range(60_000))
        (tmp_path / "in.svm").write_text(rows * 2)
        command = ["datasets", "convert", str(tmp_path / "in.svm"), str(tmp_path / "out.txt.xz")]
        assert run(*command).stderr.count("\n") == 1
        reader, writer = pty.openpty()
        process = subprocess.Popen(
            [*COMMAND, *command], stdout=subprocess.DEVNULL, stderr=writer,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )  # fmt: skip
        os.close(writer)
        shown = b""
        try:
            while chunk := os.read(reader, 4096):
                shown += chunk
        except OSError:  # the terminal is gone when the process ends
            pass
        assert process.wait(timeout=60) == 0
        assert b"writing out.txt.xz" in shown
        assert b"0:00:0" in shown


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_told_in_a_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "datasets", "example"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.endswith("No space left on device\n")
    assert done.stderr.count("\n") == 1


def test_too_little_memory_is_told_in_a_line(monkeypatch, capsys):
    def starve():
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("deltarank.cli.app.app", starve)
    with pytest.raises(SystemExit, match="1"):
        main()
    assert capsys.readouterr().err == "deltarank: not enough memory (Unable to allocate 9 TiB)\n"
