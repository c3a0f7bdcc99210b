"""Model files of every kind that release 0.1.0 wrote before its modules moved: they still load."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from deltarank import load, save
from deltarank.core.arrays import read_arrays
from deltarank.storage.registry import STORED

FOLDER = Path(__file__).parent / "models"
# What that release itself computed from these files.
KEPT = json.loads((FOLDER / "scores.json").read_text())


@pytest.mark.parametrize("name", sorted(KEPT["scores"]))
def test_a_file_gives_the_scores_it_gave(name):
    ranker = load(FOLDER / f"{name}.delta")
    scores = ranker.decision_function(np.array(KEPT["rows"]))
    assert_allclose(scores, KEPT["scores"][name], rtol=1e-12, atol=1e-12)
    assert set(ranker.rank(np.array(KEPT["rows"]))[0]) == {"cat", "dog", "eel"}


def test_there_is_a_file_of_every_kind_of_ranker():
    kinds = {type(load(FOLDER / f"{name}.delta")).__name__ for name in KEPT["scores"]}
    assert kinds == set(STORED)


def test_a_model_with_its_preparation_ranks_a_table_as_it_did(tmp_path, capsys, monkeypatch):
    from deltarank.cli import main

    (tmp_path / "rows.csv").write_text(KEPT["table"])
    arguments = ["rank", str(FOLDER / "prepared.delta"), str(tmp_path / "rows.csv"), "--top", "3"]
    monkeypatch.setattr("sys.argv", ["deltarank", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    ranked = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["labels"] for row in ranked] == [row["labels"] for row in KEPT["ranked"]]
    for row, kept in zip(ranked, KEPT["ranked"], strict=True):
        assert_allclose(row["scores"], kept["scores"], atol=1e-5)


def test_a_tree_of_an_older_file_is_saved_as_trees_are_now(tmp_path):
    save(load(FOLDER / "label_tree.delta"), tmp_path / "again.delta")
    before, _ = read_arrays(FOLDER / "label_tree.delta")
    after, _ = read_arrays(tmp_path / "again.delta")
    assert "coef_.indices" in before.keys() - after.keys()
    assert "coef_.gaps" in after.keys() - before.keys()
    scores = load(tmp_path / "again.delta").decision_function(np.array(KEPT["rows"]))
    assert_allclose(scores, KEPT["scores"]["label_tree"], rtol=1e-12, atol=1e-12)
