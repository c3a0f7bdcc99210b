"""The examples of the documents are run, and print what the documents say."""

import io
import re
import shlex
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from deltarank.cli import main

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def examples(page):
    """Return the examples of a page: a command, and the lines it prints."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, printed = part.partition("\n")
            found.append((command, printed))
    return found


def run_deltarank(arguments, text, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["deltarank", *arguments])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    capsys.readouterr()
    with suppress(SystemExit):
        main()
    captured = capsys.readouterr()
    return captured.out, captured.err


def run_example(command, capsys, monkeypatch):
    """Run a pipeline of the few tools that the documents use."""
    command, _, target = command.partition(" > ")
    text = notes = ""
    for stage in command.split(" | "):
        name, *arguments = shlex.split(stage)
        if name == "deltarank":
            text, notes = run_deltarank(arguments, text, capsys, monkeypatch)
        elif name == "echo":
            text = arguments[0] + "\n"
        elif name == "head":
            given = Path(arguments[2]).read_text() if len(arguments) > 2 else text
            text = "".join(given.splitlines(keepends=True)[: int(arguments[1])])
        elif name == "cut":
            first, last = map(int, arguments[1].split("-"))
            lines = [line.split("\t")[first - 1 : last] for line in text.splitlines()]
            text = "".join("\t".join(line) + "\n" for line in lines)
        else:
            raise AssertionError(f"no such tool here: {name}")
    if target:
        Path(target).write_text(text)
        text = ""
    return notes + text


def assert_alike(printed, wanted):
    """Compare text, times aside, and numbers to the digits that other machines may share."""
    printed, wanted = (re.sub(r"\d+\.\d s\b", "some s", text) for text in (printed, wanted))
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", wanted)
    for mine, theirs in zip(NUMBER.findall(printed), NUMBER.findall(wanted), strict=True):
        digits = len(theirs.partition(".")[2].partition("e")[0])
        assert float(mine) == pytest.approx(float(theirs), rel=2e-3, abs=0.6 * 10.0**-digits)


@pytest.mark.parametrize("page", ["docs/commands.md", "README.md"])
def test_examples_print_what_the_documents_say(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ours = [e for e in examples(page) if not re.search("yeast|venv", e[0])]
    assert len(ours) >= 4
    for command, wanted in ours:
        assert_alike(run_example(command, capsys, monkeypatch), wanted)


def test_the_example_with_real_data_prints_what_the_document_says(
    data_folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    ours = [e for e in examples("docs/commands.md") if "yeast" in e[0]]
    assert len(ours) == 3
    for command, wanted in ours:
        assert_alike(run_example(command, capsys, monkeypatch), wanted)
