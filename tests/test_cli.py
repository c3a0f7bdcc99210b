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

COMMAND = [str(Path(sys.executable).parent / "deltarank")]


def run(*arguments, **options):
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120, **options
    )


@pytest.fixture(scope="module")
def section4(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    return run("reproduce", "section4", "--out", str(folder)), folder


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
        (["reproduce", "section9"], "unknown experiment 'section9'; choose one of section4"),
        (["reproduce"], "Missing argument"),
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
