"""Tables as people have them: separators guessed, empty labels skipped, identifiers left out."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deltarank.datasets import Preparation, read
from deltarank.datasets.readers.label_columns import marked_columns
from deltarank.datasets.readers.label_lists import from_lists, guess_separator
from deltarank.datasets.readers.telling_nothing import reason_to_leave_out


@pytest.fixture
def table(tmp_path):
    def write(text):
        path = tmp_path / "items.csv"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["sea;sun", "snow"], ";"),
        (["sea|sun", "snow"], "|"),
        (["sea, sun", "snow"], ","),
        (["Cooking, Finnish; Cooking, Swedish", "Art, Modern"], ";"),
        (["snow", "sun"], ","),
        (['["a;b", "c"]', "['d|e']", "x, y"], ","),  # brackets have commas of their own
        ([*["red, green"] * 40, "R&amp;D, blue"], ","),  # one sign in many cells is an accident
        ([["a", "b"], None], ","),
        ([], ","),
    ],
)
def test_the_separator_is_the_one_that_cells_have(cells, separator):
    assert guess_separator(cells) == separator


def test_a_guessed_separator_is_told_and_kept_for_other_rows(table, tmp_path):
    data = read(table("size,tags\n1,sea;sun\n2,snow\n"))
    assert data.label_names == ("sea", "snow", "sun")
    assert data.separator == ";"
    assert any("separated by ';'" in note for note in data.notes)
    assert Preparation.fit(data, scale=False).separator == ";"


def test_a_given_separator_is_taken_at_its_word(table):
    data = read(table("size,tags\n1,sea;sun\n2,snow\n"), separator="|")
    assert data.label_names == ("sea;sun", "snow")


@pytest.mark.parametrize(
    ("cell", "labels", "n_empty"),
    [
        ("a; b;", {"a", "b"}, 1),
        (";;a", {"a"}, 2),
        (["a", None, ""], {"a"}, 2),
        ([1.5, float("nan")], {"1.5"}, 1),
        ("; ;", set(), 3),
    ],
    ids=range(5),
)
def test_empty_labels_are_skipped_and_counted(cell, labels, n_empty):
    lists = from_lists("tags", [cell, "x; y"], ";", None)
    assert set(np.array(lists.names)[lists.Y.toarray()[0] == 1]) == labels
    assert any(note.startswith(f"column 'tags': {n_empty} empty") for note in lists.notes)


def test_a_separator_that_leaves_lists_whole_is_suspected(table):
    tags = ["sea", "sun", "snow", "ice", "soup", "hill", "path", "lake"]
    pairs = [f"{i},{a}/{b}" for i, a in enumerate(tags) for b in tags if a < b]
    data = read(table("size,tags\n" + "\n".join(pairs * 2) + "\n"))
    (note,) = data.notes
    assert "cut at '/', the 28 labels would be 8; is ',' what separates them?" in note
    assert read(table("size,tags\n" + "\n".join(pairs) + "\n"), separator="/").notes == ()


def test_lists_that_need_no_separator_are_not_suspected(table):
    rows = [f'{i},"[""sea/{i}"", ""sun/{i}""]"' for i in range(30)]
    assert read(table("size,tags\n" + "\n".join(rows) + "\n")).notes == ()


def test_lists_that_are_cut_at_a_wrong_sign_are_suspected_before_a_fit():
    cells = [f"red{i}/blue{i % 3}" for i in range(40)]
    assert any("one row only" in note for note in from_lists("tags", cells, None, None).notes)
    tail = [f"common; rare {i}" for i in range(40)]
    assert not any("one row" in note for note in from_lists("tags", tail, None, None).notes)
    assert not from_lists("tags", cells, "/", tuple({p for c in cells for p in c.split("/")})).notes


@pytest.mark.parametrize(
    ("name", "cells", "is_left_out"),
    [
        ("id", [7 * i for i in range(30)], True),
        ("book_id", [f"b{i}" for i in range(30)], True),
        ("id", [*range(100, 198), 100, 101], True),  # two rows stand there twice
        ("id", [i % 5 for i in range(30)], False),  # a foreign key repeats
        ("row", list(range(1, 31)), True),
        ("year", [1990 + i for i in range(30)], False),
        ("code", [f"X-{i:05}" for i in range(30)], True),
        ("title", [f"Book {i}" for i in range(30)], False),
        ("size", list(np.linspace(0, 1, 30)), False),
        ("date", ["2026-11-18", "18.11.2026", "2026-11-18T09:30:00Z"] * 10, True),
        ("date", ["2026-11-18"] * 29 + ["soon"], False),
        ("id", [1, 2, 3], False),  # too few rows to tell
        ("lists", [["a"]] * 30, False),
    ],
)
def test_identifiers_and_dates_tell_nothing(name, cells, is_left_out):
    assert (reason_to_leave_out(name, cells) is not None) == is_left_out


def test_a_column_that_is_left_out_can_be_taken(table):
    path = table("id,size,tags\n" + "".join(f"x{i},{i % 7},a\n" for i in range(30)))
    assert read(path).feature_names == ("size",)
    assert any("column 'id' is left out" in note for note in read(path).notes)
    assert len(read(path, categorical=["id"]).feature_names) == 31


def test_a_poor_feature_is_better_than_none(table):
    path = table("id,tags\n" + "".join(f"{i},a\n" for i in range(30)))
    assert read(path).feature_names == ("id",)


@pytest.mark.parametrize(
    ("labels", "columns"),
    [
        (-2, ["lab_a", "lab_b"]),
        (1, ["size"]),
        (["lab_*"], ["lab_a", "lab_b"]),
        (["lab_b", "lab_?"], ["lab_b", "lab_a"]),
        (["nothing_*"], ["nothing_*"]),  # refused afterwards, by name
    ],
)
def test_label_columns_are_counted_or_matched(labels, columns):
    assert marked_columns(labels, ["size", "lab_a", "lab_b"]) == columns


@pytest.mark.parametrize("labels", [0, 3, -3, 17])
def test_label_columns_must_leave_features(labels):
    with pytest.raises(ValueError, match="must leave columns for features; there are 3 columns"):
        marked_columns(labels, ["size", "lab_a", "lab_b"])


def run(*arguments):
    command = [str(Path(sys.executable).parent / "deltarank"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_commands_tell_what_they_forgave_and_keep_frequent_labels(table, tmp_path):
    rows = "".join(f"{i},{i % 7},{'sea;' if i % 2 else 'sun; snow'}\n" for i in range(40))
    path = table("id,size,tags\n" + rows + "x,3,rare\n")
    done = run("fit", path, "--min-count", 2, "--C", 1, "--model", tmp_path / "m.delta")
    assert done.returncode == 0, done.stderr
    for said in ("separated by ';'", "20 empty labels are skipped", "column 'id' is left out",
                 "3 of 4 labels are kept", "--categorical takes it"):  # fmt: skip
        assert said in done.stderr
    done = run("fit", path, "--max-labels", 2, "--C", 1, "--model", tmp_path / "m.delta")
    assert "2 of 4 labels are kept" in done.stderr
    done = run("fit", path, "--min-count", 99, "--C", 1, "--model", tmp_path / "m.delta")
    assert done.returncode == 1
    assert "--min-count 99 leaves no label; the most frequent one has 20 rows" in done.stderr


def test_commands_count_and_match_label_columns(table, tmp_path):
    path = table("size,lab_a,lab_b\n" + "1,0,1\n2,1,0\n3,1,1\n" * 5)
    for labels in ("-2", "lab_*", "lab_a,lab_b"):
        done = run("fit", path, f"--labels={labels}", "--C", 1, "--model", tmp_path / "m.delta")
        assert done.returncode == 0, done.stderr
        assert "2 labels" in done.stderr


def test_errors_of_commands_name_their_options(table, tmp_path):
    path = table("size,colour\n1,red\n2,blue\n")
    done = run("fit", path, "--model", tmp_path / "m.delta")
    assert "--label-list must name the column of label lists, or --labels" in done.stderr
    assert "labels=" not in done.stderr
    path = table("size,\n1,red\n2,blue\n")
    done = run("fit", path, "--labels", "size", "--model", tmp_path / "m.delta")
    assert "--ignore ''" in done.stderr


def test_evaluate_counts_rows_that_have_nothing_to_put_in_order(table, tmp_path):
    path = table("size,tags\n" + "1,a\n2,b\n3,\n4,a;b\n" * 10)
    model = tmp_path / "m.delta"
    assert run("fit", path, "--C", 1, "--model", model).returncode == 0
    done = run("evaluate", model, path)
    assert "20 of 40 rows have no label, or all of them" in done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    values = {measure: float(value) for label, measure, value, *_ in lines[1:] if not label}
    both = values["rank_loss"], values["rank_loss_of_rows_with_pairs"]
    assert both[1] == pytest.approx(2 * both[0])
