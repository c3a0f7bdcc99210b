"""fit, rank, evaluate, compare and explain, as a user gives them.

Most run `main` in this process, which starts compiled code once; a few are processes of their own.
"""

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from scipy.stats import wilcoxon
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import coverage_error, label_ranking_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from deltarank import LogisticRanker, datasets, load, rank_loss, save
from deltarank.cli import main, options
from deltarank.cli.evaluate import show_measures
from deltarank.core.weights import WEIGHTS
from deltarank.datasets import Preparation, read
from deltarank.recipes import RECIPES
from deltarank.storage import load_with_extra

COMMAND = str(Path(sys.executable).parent / "deltarank")


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def rows(self):
        head, *lines = [line.split("\t") for line in self.out.splitlines()]
        return [dict(zip(head, line, strict=True)) for line in lines]


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs the command in this process."""
    monkeypatch.setenv("DELTARANK_NUM_THREADS", os.environ.get("DELTARANK_NUM_THREADS", "2"))

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["deltarank", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code or 0
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


def write_csv(path, rows, without=()):
    names = [name for name in rows[0] if name not in without]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training and test recipes, and a model fitted to them by the command."""
    folder = tmp_path_factory.mktemp("recipes")
    write_csv(folder / "train.csv", datasets.example_rows(300, seed=0))
    write_csv(folder / "test.csv", datasets.example_rows(120, seed=1))
    write_csv(folder / "new.csv", datasets.example_rows(120, seed=1), without=["tags"])
    done = subprocess.run(
        [COMMAND, "fit", "train.csv", "--model", "recipes.delta", "--C", "10"],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    *columns, fitted, wrote = done.stderr.splitlines()  # and no progress bar
    assert [line.split(":")[0] for line in columns] == [
        "column 'description'", "column 'minutes'", "column 'season'", "column 'tags'",
    ]  # fmt: skip
    assert fitted.startswith("fitted LogisticRanker to 300 rows")
    assert wrote == "wrote recipes.delta"
    return folder


@pytest.fixture(scope="module")
def by_hand(folder):
    """The same without the command: scores of the test rows, their label sets, and the ranker."""
    train = read(folder / "train.csv", labels="tags")
    numbers = train.X[:, [list(train.feature_names).index("minutes")]].toarray()
    mean, scale = numbers.mean(), numbers.std()

    def scaled(X):
        X = X.toarray()
        at = list(train.feature_names).index("minutes")
        X[:, at] = (X[:, at] - mean) / scale
        return X

    options = {"encoder": train.encoder, "label_names": train.label_names}
    test = read(folder / "test.csv", labels="tags", **options)
    # Sparse rows have their intercept penalised.
    ranker = LogisticRanker(C=10, penalize_intercept=True)
    ranker.fit(scaled(train.X), train.Y.toarray())
    return ranker.decision_function(scaled(test.X)), test.Y.toarray(), train


def test_the_choices_of_options_are_those_there_are():
    assert set(get_args(options.RankerName)) == set(RECIPES)
    assert set(get_args(options.Weight)) == set(WEIGHTS)


class TestFit:
    def test_a_dry_run_shows_how_each_column_is_read_and_writes_nothing(
        self, run, folder, tmp_path
    ):
        model = tmp_path / "m.delta"
        result = run("fit", folder / "train.csv", "--dry-run", "--model", model)
        kinds = {row["column"]: (row["read as"], row["count"]) for row in result.rows}
        n_words = len(read(folder / "train.csv").encoder.columns[0].words)
        assert kinds == {
            "description": ("text", str(n_words)),
            "minutes": ("number", "1"),
            "season": ("category", "4"),
            "tags": ("label list", "11"),
        }
        assert (result.code, result.err, model.exists()) == (0, "", False)
        assert "--model must name" in run("fit", folder / "train.csv").err

    @pytest.mark.parametrize(
        ("name", "content", "told"),
        [
            ("a.svm", "0,2 1:0.5 3:2\n1 2:1\n", [("1 to 3", "numbers"), ("0 to 2", "labels")]),
            (
                "a.arff",
                "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute 'a b' numeric\n"
                "@data\n{0 1, 1 2}\n{1 3}\n",
                [("a b", "number"), ("y", "label")],
            ),
        ],
    )
    def test_a_dry_run_of_every_kind_of_file(self, run, tmp_path, name, content, told):
        (tmp_path / name).write_text(content)
        rows = run("fit", tmp_path / name, "--dry-run").rows
        assert [(row["column"], row["read as"]) for row in rows] == told

    def test_many_columns_alike_have_one_line(self, run, tmp_path):
        names = ",".join(f"x{j}" for j in range(30))
        rows = "".join(",".join(["1"] * 30) + f",{tag}\n" for tag in "aabb")
        (tmp_path / "wide.csv").write_text(f"{names},tags\n{rows}")
        told = run("fit", tmp_path / "wide.csv", "--model", tmp_path / "m", "--C", "1").err
        assert "30 columns, 'x0' to 'x29': number\ncolumn 'tags': label list, 2 labels\n" in told

    def test_of_many_columns_of_many_kinds_a_fit_tells_the_first(self, run, tmp_path):
        names = ",".join(f"x{j}" for j in range(30))
        rows = "".join(",".join(["1", tag] * 15) + f",{tag}\n" for tag in "aabb")
        (tmp_path / "wide.csv").write_text(f"{names},tags\n{rows}")
        told = run("fit", tmp_path / "wide.csv", "--model", tmp_path / "m", "--C", "1").err
        assert told.count("column 'x") == 20
        assert "and more; --dry-run lists all 31 columns\n" in told

    @pytest.mark.parametrize("odd", ["1e999", "1,5", "1_000", "0x10", "12 kg", "²"])
    def test_an_odd_cell_among_numbers_is_refused_with_its_line(self, run, tmp_path, odd):
        path = tmp_path / "odd.csv"
        cells = [str(number) for number in range(50)]
        cells[30] = f'"{odd}"'
        path.write_text("size,tags\n" + "".join(f"{c},{'ab'[len(c) % 2]}\n" for c in cells))
        told = run("fit", path, "--model", tmp_path / "m").err
        assert f"{path}, line 32, column 'size'" in told
        assert repr(odd) in told
        assert "--categorical" in told
        named = run("fit", path, "--dry-run", "--categorical", "size").rows
        assert named[0] == {"column": "size", "read as": "category", "count": "50"}

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ([], "fitted LogisticRankerCV to 300 rows"),
            (["--ranker", "kernel", "--C", "1"], "gamma = "),
            (["--ranker", "label-tree", "--C", "2"], "fitted LabelTreeRanker"),
            (["--ranker", "adaboost", "--rounds", "5"], "n_stumps = 5"),
            (["--ranker", "adaboost", "--tune"], "fitted AdaBoostRanker"),
            (["--ranker", "adaboost-mr", "--rounds", "7"], "n_stumps = 7"),
            (["--ranker", "adaboost-mh", "--rounds", "7"], "fitted AdaBoostMH"),
            (["--ranker", "boosted-trees", "--rounds", "7"], "fitted BoostedTreeRanker"),
            (["--ranker", "lllr", "--rounds", "9"], "n_iterations = 9"),
            (["--ranker", "pairwise", "--C", "0.5", "--weight", "uniform"], "C = 0.5"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_every_ranker_goes_from_a_file_to_a_ranking(
        self, run, folder, tmp_path, arguments, words
    ):
        model = tmp_path / "new" / "m.delta"
        fitted = run("fit", folder / "train.csv", "--model", model, *arguments)
        assert (fitted.code, fitted.out) == (0, ""), fitted.err
        assert words in fitted.err
        assert "11 labels in" in fitted.err
        ranked = run("rank", model, folder / "new.csv", "--top", "2")
        assert ranked.code == 0, ranked.err
        first = json.loads(ranked.out.splitlines()[0])
        assert len(first["labels"]) == len(first["scores"]) == 2

    def test_pairwise_is_tuned_by_rank_loss(self, run, folder, tmp_path):
        small = write_csv(tmp_path / "small.csv", datasets.example_rows(60, seed=2))
        fitted = run("fit", small, "--ranker", "pairwise", "--tune", "-m", tmp_path / "m.delta")
        assert fitted.code == 0, fitted.err
        assert "fitted PairwiseRanker to 60 rows" in fitted.err

    def test_the_same_seed_gives_the_same_file(self, run, folder, tmp_path):
        for name in ("a", "b"):
            run("fit", folder / "train.csv", "-m", tmp_path / name, "--seed", "3", "--threads", "1")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_a_file_from_standard_input_and_columns_of_0_and_1(self, run, tmp_path):
        text = b"size,a,b\n" + b"".join(b"%d,%d,%d\n" % (i, i > 5, i < 5) for i in range(12))
        model = tmp_path / "m.delta"
        assert run("fit", "-", "--labels", "a,b", "--model", model, stdin=text).code == 0
        ranked = run("rank", model, "-", "--format", "csv", stdin=b"size\n0\n11\n")
        rows = list(csv.DictReader(io.StringIO(ranked.out)))
        assert [row["label"] for row in rows if row["place"] == "1"] == ["b", "a"]
        # The label columns are found by their names again.
        assert run("evaluate", model, "-", stdin=text).rows[0]["measure"] == "rank_loss"

    def test_a_model_file_serves_python_too(self, folder, by_hand):
        ranker, extra = load_with_extra(folder / "recipes.delta")
        preparation = Preparation.from_json(extra["preparation"])
        new = preparation.read(folder / "new.csv")
        scores = ranker.decision_function(preparation.transform(new.X))
        np.testing.assert_allclose(scores, by_hand[0], atol=1e-4)

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["train.csv"], 2, "--model"),
            (["train.csv", "-m", "x", "--ranker", "svm"], 2, "'svm' is not one of"),
            (["train.csv", "-m", "x", "--rounds", "5"], 2, "--rounds is not for logistic"),
            (["train.csv", "-m", "x", "--C", "1", "--tune"], 2, "--tune chooses --C"),
            (["train.csv", "-m", "x", "--ranker", "kernel", "--no-tune"], 2, "--no-tune is not"),
            (["train.csv", "-m", "x", "--labels", "a", "--label-list", "b"], 2, "exclude"),
            (["train.csv", "-m", "x", "--threads", "0"], 2, "--threads"),
            (["train.csv", "-m", "x", "--C", "-1"], 1, "C must be positive and finite; got -1.0"),
            (["train.csv", "-m", "/dev/null/x"], 1, "--model must name a file to write"),
            (["train.csv", "-m", "."], 1, "--model must name a file to write"),
            (["absent.csv", "-m", "x"], 1, "absent.csv: No such file or directory"),
            (["yaest", "-m", "x"], 1, "no file and no data set of the catalogue is called 'yaest'"),
            (["train.csv", "-m", "x", "--label-list", "genres"], 1, "has no column 'genres'"),
            (["marks.csv", "-m", "x"], 1, "--label-list must name the column of label lists"),
            (["bad.csv", "-m", "x"], 1, "bad.csv, line 3: a row must have 2 cells"),
            (["bare.csv", "-m", "x"], 1, "no row has a label"),
            (["rows.svm", "-m", "x", "--text", "a"], 1, "format libsvm has no option 'text'"),
        ],
    )
    def test_mistakes_are_told_in_a_line_before_any_work(
        self, run, folder, tmp_path, monkeypatch, arguments, code, words
    ):
        monkeypatch.chdir(tmp_path)
        Path("train.csv").write_bytes((folder / "train.csv").read_bytes())
        Path("marks.csv").write_text("size,a,b\n1,0,1\n2,1,0\n")
        Path("bad.csv").write_text("size,tags\n1,a\n2,b,c\n")
        Path("bare.csv").write_text("size,tags\n1,\n2,\n")
        Path("rows.svm").write_text("0 1:1\n1 2:1\n")
        result = run("fit", *arguments)
        assert result.code == code, result.err
        assert words in result.err.replace("\n", " ")
        assert result.out == ""
        if code == 1:
            told = [line for line in result.err.splitlines() if not line.startswith("column ")]
            assert len(told) == 1
        assert not Path("x").exists()


class TestRank:
    def test_labels_stand_in_the_order_of_their_scores(self, run, folder, by_hand):
        scores, _, train = by_hand
        ranked = run("rank", folder / "recipes.delta", folder / "new.csv", "--top", "4")
        lines = [json.loads(line) for line in ranked.out.splitlines()]
        assert [line["row"] for line in lines] == list(range(120))
        names = np.array(train.label_names)
        for line, row in zip(lines, scores, strict=True):
            assert line["labels"] == names[np.argsort(-row)][:4].tolist()
            np.testing.assert_allclose(line["scores"], np.sort(row)[::-1][:4], atol=1e-4)

    def test_labels_in_the_file_and_unknown_words_do_not_matter(self, run, folder):
        with_labels = run("rank", folder / "recipes.delta", folder / "test.csv")
        assert with_labels.out == run("rank", folder / "recipes.delta", folder / "new.csv").out
        line = b'{"season": "monsoon", "minutes": null, "description": "xyzzy plugh"}\n'
        strange = run("rank", folder / "recipes.delta", "-", "--top", "99", stdin=line)
        assert len(json.loads(strange.out)["labels"]) == 11

    def test_more_rows_than_a_chunk_come_out_the_same(self, run, folder, monkeypatch):
        whole = run("rank", folder / "recipes.delta", folder / "new.csv", "--format", "csv")
        monkeypatch.setattr("deltarank.base.ranker.CELLS_PER_CHUNK", 70)
        assert run("rank", folder / "recipes.delta", folder / "new.csv", "--format", "csv").out == (
            whole.out
        )

    def test_a_model_saved_from_python_ranks_numbered_and_named_features(self, run, tmp_path):
        X, Y = np.eye(4), [{"a"}, {"b"}, {"c"}, {"d"}]
        save(LogisticRanker(C=100).fit(X, Y), tmp_path / "m")
        ranked = run("rank", tmp_path / "m", "-", "--top", "1", stdin=b"0 3:1\n1 1:1 9:4\n")
        assert [json.loads(line)["labels"] for line in ranked.out.splitlines()] == [["c"], ["a"]]
        assert "features from number 4 on are unknown to the model" in ranked.err

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["recipes.delta"], 2, "Missing argument"),
            (["recipes.delta", "new.csv", "--top", "0"], 2, "--top"),
            (["recipes.delta", "new.csv", "--format", "xml"], 2, "'xml' is not one of"),
            (["absent.delta", "new.csv"], 1, "absent.delta: No such file or directory"),
            (["new.csv", "new.csv"], 1, "new.csv: not a model file"),
            (["recipes.delta", "recipes.delta"], 1, "recipes.delta: the format is unknown"),
            (["recipes.delta", "short.csv"], 1, "short.csv has no column 'description'"),
            (["recipes.delta", "rows.svm"], 1, "rows.svm: features must have names"),
            (["recipes.delta", "-"], 1, "standard input: the file is empty"),
        ],
    )
    def test_mistakes_are_told_in_a_line(self, run, folder, monkeypatch, arguments, code, words):
        monkeypatch.chdir(folder)
        Path("short.csv").write_text("minutes,season\n3,winter\n")
        Path("rows.svm").write_text("0 1:1\n")
        result = run("rank", *arguments)
        assert (result.code, result.out) == (code, ""), result.err
        assert words in result.err.replace("\n", " ")


class TestEvaluate:
    def test_measures_are_those_of_the_library_and_of_scikit_learn(self, run, folder, by_hand):
        scores, Y, train = by_hand
        rows = run("evaluate", folder / "recipes.delta", folder / "test.csv").rows
        overall = {row["measure"]: row for row in rows if not row["label"]}
        loss = overall["rank_loss"]
        np.testing.assert_allclose(float(loss["value"]), rank_loss(Y, scores), atol=1e-5)
        assert float(loss["low"]) < float(loss["value"]) < float(loss["high"])
        # Empty rows have depth 0 here and there; ours counts steps, scikit-learn's places.
        some = Y.any(axis=1)
        wanted = (coverage_error(Y[some], scores[some]) - 1) * some.mean()
        np.testing.assert_allclose(float(overall["coverage"]["value"]), wanted, rtol=1e-5)
        assert "ndcg_at_5" in overall
        for label, name in enumerate(train.label_names):
            mine = {row["measure"]: row["value"] for row in rows if row["label"] == name}
            assert int(mine["rows"]) == Y[:, label].sum()
            wanted = roc_auc_score(Y[:, label], scores[:, label])
            np.testing.assert_allclose(float(mine["auc"]), wanted, atol=1e-5)
            places = (scores > scores[:, [label]]).sum(axis=1) + 1
            np.testing.assert_allclose(
                float(mine["mean place"]), places[Y[:, label] == 1].mean(), atol=1e-5
            )

    def test_labels_the_model_does_not_know_are_named_and_absent_ones_are_fine(self, run, folder):
        text = b'description,minutes,season,tags\na soup,5,winter,"soup, stuffed"\nb,4,spring,\n'
        result = run("evaluate", folder / "recipes.delta", "-", stdin=text)
        assert result.code == 0, result.err
        unknown, empty = result.err.splitlines()
        assert unknown == "note: labels unknown to the model are left out: stuffed"
        assert empty.startswith("note: 1 of 2 rows have no label")
        soup = {row["measure"]: row["value"] for row in result.rows if row["label"] == "soup"}
        vegan = {row["measure"]: row["value"] for row in result.rows if row["label"] == "vegan"}
        assert soup["rows"] == "1"
        assert vegan == {"rows": "0", "auc": "", "mean place": ""}

    def test_a_terminal_gets_two_tables_with_names_as_they_are(self, monkeypatch):
        overall = [{"measure": "rank_loss", "value": 0.5, "low": 0.4, "high": 0.6}]
        by_label = [{"label": "[bold]:smile:", "rows": 3, "auc": 0.5, "mean place": 1.0}]
        out = io.StringIO()
        out.isatty = lambda: True
        monkeypatch.setattr(sys, "stdout", out)
        show_measures(overall, by_label, "m.delta on test.csv")
        assert "m.delta on test.csv" in out.getvalue()
        assert "│ [bold]:smile: │" in out.getvalue()

    def test_a_file_without_labels_is_refused(self, run, folder):
        result = run("evaluate", folder / "recipes.delta", folder / "new.csv")
        assert result.code == 1
        assert "has no column 'tags', which --labels names" in result.err


class TestCompare:
    def test_losses_differences_and_p_are_those_of_the_rows(self, run, folder, tmp_path):
        result = run(
            "compare", folder / "train.csv", "--test", folder / "test.csv", "--no-tune",
            "--rankers", "logistic,adaboost", "--out", tmp_path,
        )  # fmt: skip
        assert result.code == 0, result.err
        assert "wrote" in result.err
        first, second = result.rows
        losses = []
        for name in ("logistic", "adaboost"):
            model = tmp_path / name
            run("fit", folder / "train.csv", "--ranker", name, "--no-tune", "-m", model)
            ranker, extra = load_with_extra(model)
            preparation = Preparation.from_json(extra["preparation"])
            test = preparation.read(
                folder / "test.csv", labels="tags", label_names=ranker.classes_.tolist()
            )
            scores = ranker.decision_function(preparation.transform(test.X))
            losses.append(rank_loss(test.Y, scores, per_instance=True))
        for row, mine in zip((first, second), losses, strict=True):
            np.testing.assert_allclose(float(row["rank loss"]), mine.mean(), rtol=1e-5)
        difference = losses[1] - losses[0]
        np.testing.assert_allclose(float(second["difference"]), difference.mean(), rtol=1e-4)
        np.testing.assert_allclose(float(second["p"]), wilcoxon(difference).pvalue, rtol=1e-4)
        assert float(first["p"]) == 1
        saved = [json.loads(line) for line in (tmp_path / "compare.jsonl").read_text().splitlines()]
        assert [row["ranker"] for row in saved] == ["logistic", "adaboost"]
        assert "difference from logistic" in (tmp_path / "compare.svg").read_text()

    def test_rankers_done_before_an_interruption_are_shown(self, run, folder, monkeypatch):
        from deltarank.cli import compare

        judge = compare._judge_one

        def interrupted(name, *rest):
            if name == "pairwise":
                raise KeyboardInterrupt
            return judge(name, *rest)

        monkeypatch.setattr(compare, "_judge_one", interrupted)
        result = run(
            "compare", folder / "train.csv", "--folds", "2", "--no-tune",
            "--rankers", "pairwise,adaboost,logistic",
        )  # fmt: skip
        assert [row["ranker"] for row in result.rows] == ["adaboost", "logistic"]
        assert float(result.rows[0]["difference"]) == 0
        assert "stopped before these were done: pairwise" in result.err

    def test_no_fit_is_begun_when_the_time_is_up(self, run, folder):
        result = run("compare", folder / "train.csv", "--folds", "2", "--budget", "0")
        assert result.code == 1
        assert "--budget of 0 minutes was not enough for logistic" in result.err

    def test_boosting_is_left_out_of_the_default_on_text(self, run, tmp_path):
        rng = np.random.default_rng(0)
        words = [f"word{number}" for number in range(3000)]
        path = tmp_path / "text.csv"
        lines = [
            f"{' '.join(rng.choice(words, 40))},{'a' if row % 2 else 'b;a'}\n" for row in range(200)
        ]
        path.write_text("note,tags\n" + "".join(lines))
        result = run(
            "compare", path, "--folds", "2", "--no-tune", "--text", "note", "--separator", ";"
        )
        assert "boosted stumps are left out" in result.err
        assert [row["ranker"] for row in result.rows] == ["logistic", "pairwise"]

    def test_cross_validation_judges_every_row_once(self, run, folder):
        result = run("compare", folder / "train.csv", "--folds", "2", "--rankers", "logistic")
        (row,) = result.rows
        assert (row["ranker"], row["tuned"]) == ("logistic", "yes")
        assert 0 < float(row["low"]) < float(row["rank loss"]) < float(row["high"]) < 0.2

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--rankers", "logistic,svm"], "unknown ranker 'svm'; choose among logistic"),
            (["--test", "x.csv", "--folds", "3"], "--test and --folds exclude each other"),
        ],
    )
    def test_wrong_options_are_usage_errors(self, run, folder, arguments, words):
        result = run("compare", folder / "train.csv", *arguments)
        assert (result.code, result.out) == (2, "")
        assert words in result.err.replace("\n", " ")


class TestExplain:
    @pytest.mark.parametrize("top", [1, 3, 99])
    def test_lines_add_up_to_the_difference_of_scores(self, run, folder, by_hand, top):
        scores, _, train = by_hand
        arguments = ["--row", 7, "--labels", "spicy", "sweet", "--top", top]
        rows = run("explain", folder / "recipes.delta", folder / "new.csv", *arguments).rows
        *parts, total = [float(row["adds"]) for row in rows]
        spicy, sweet = (train.label_names.index(name) for name in ("spicy", "sweet"))
        np.testing.assert_allclose(sum(parts), total, atol=1e-4)
        np.testing.assert_allclose(total, scores[7, spicy] - scores[7, sweet], atol=1e-4)
        assert rows[-1]["feature"] == "(difference)"

    def test_numbers_are_shown_as_they_are_in_the_file(self, run, folder):
        rows = run("explain", folder / "recipes.delta", folder / "new.csv", "--top", 99).rows
        shown = next(float(row["value"]) for row in rows if row["feature"] == "minutes")
        assert shown == datasets.example_rows(1, seed=1)[0]["minutes"]

    def test_without_labels_it_is_the_first_against_the_second(self, run, folder):
        rows = run("explain", folder / "recipes.delta", folder / "new.csv", "--row", 2).rows
        ranked = run("rank", folder / "recipes.delta", folder / "new.csv", "--top", 2)
        first, second = json.loads(ranked.out.splitlines()[2])["scores"]
        np.testing.assert_allclose(float(rows[-1]["adds"]), first - second, atol=1e-4)

    def test_stumps_are_explained_and_kernels_refused(self, run, folder, tmp_path):
        model = tmp_path / "m"
        run("fit", folder / "train.csv", "--ranker", "adaboost-mh", "--rounds", "30", "-m", model)
        rows = run("explain", model, folder / "new.csv", "--labels", "spicy", "sweet").rows
        *parts, total = [float(row["adds"]) for row in rows]
        np.testing.assert_allclose(sum(parts), total, atol=1e-4)
        run("fit", folder / "train.csv", "--ranker", "kernel", "--C", "1", "-m", model)
        refused = run("explain", model, folder / "new.csv")
        assert (refused.code, refused.out) == (1, "")
        assert "only linear and boosted rankers and label trees can be explained" in refused.err

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["--labels", "spicy", "sour"], 1, "unknown label 'sour'; the labels are 'baking'"),
            (["--labels", "spicy"], 2, "--labels"),
            (["--row", "120"], 1, "--row must be below the number of rows, 120; got 120"),
        ],
    )
    def test_mistakes_are_told_in_a_line(self, run, folder, arguments, code, words):
        result = run("explain", folder / "recipes.delta", folder / "new.csv", *arguments)
        assert (result.code, result.out) == (code, ""), result.err
        assert words in result.err


def yeast_by_scikit_learn(C):
    """Scale, weigh, fit label by label and measure, with nothing of ours but the reader."""
    split = datasets.load("yeast")
    Y, Y_test = split.Y_train.toarray(), split.Y_test.toarray()
    scaler = StandardScaler().fit(split.X_train)
    X, X_test = scaler.transform(split.X_train), scaler.transform(split.X_test)
    sizes = Y.sum(axis=1)
    weights = 1 / (sizes * (Y.shape[1] - sizes))
    weights /= weights.mean()
    one = LogisticRegression(C=C, tol=1e-8, max_iter=5000)
    fits = [clone(one).fit(X, column, sample_weight=weights) for column in Y.T]
    scores = np.column_stack([fitted.decision_function(X_test) for fitted in fits])
    return label_ranking_loss(Y_test, scores)


class TestRealData:
    def test_yeast_goes_all_the_way(self, run, data_folder, tmp_path):
        model = tmp_path / "yeast.delta"
        assert run("fit", "yeast", "--C", "0.1", "--model", model).code == 0
        by_name = run("evaluate", model, "yeast")
        by_file = run("evaluate", model, data_folder / "yeast" / "yeast-test.arff")
        assert by_name.out == by_file.out
        wanted = yeast_by_scikit_learn(C=0.1)
        np.testing.assert_allclose(float(by_name.rows[0]["value"]), wanted, atol=2e-5)
        ranked = run("rank", model, "yeast", "--top", "1")
        assert len(ranked.out.splitlines()) == 917
        other = run("evaluate", model, "emotions")
        assert other.code == 1
        assert "data set 'emotions' has other features" in other.err

    def test_numbered_features_of_the_catalogue_fit_their_files(self, run, data_folder, tmp_path):
        split = datasets.load("mediamill")
        model = tmp_path / "m.delta"
        rows = tmp_path / "rows.svm"
        datasets.write_libsvm(rows, split.X_train[:2000], split.Y_train[:2000])
        assert run("fit", rows, "--C", "1", "-m", model).code == 0
        scaler = Preparation.from_json(load_with_extra(model)[1]["preparation"]).scaler
        assert len(scaler.columns) == 120
        found = run("explain", model, "mediamill", "--top", "2")
        assert found.code == 0, found.err
        assert load(model).coef_.shape[1] == 120


def terminal(arguments, folder, **options):
    """Run a process whose output goes to a terminal; return what is seen there."""
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "NO_COLOR": "1"}
    streams = {"stdout": writer, "stderr": writer, **options}
    process = subprocess.Popen([COMMAND, *arguments], cwd=folder, env=environment, **streams)
    os.close(writer)
    seen = b""
    try:
        while chunk := os.read(reader, 4096):
            seen += chunk
    except OSError:  # the terminal is gone when the process ends
        pass
    assert process.wait(timeout=60) == 0, seen
    return seen.decode()


class TestProcesses:
    def test_a_terminal_gets_a_table(self, folder):
        seen = terminal(["rank", "recipes.delta", "new.csv", "--top", "2"], folder)
        assert "│ 119 │" in seen

    def test_a_reader_that_leaves_early_is_no_error_to_talk_about(self, folder):
        done = subprocess.run(
            f"{COMMAND} rank recipes.delta new.csv --format csv | head -1",
            shell=True, cwd=folder, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("row,place,label,score\n", "")

    def test_a_reader_that_left_before_the_last_flush_is_none_either(self):
        buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
        done = subprocess.run(
            f"{COMMAND} datasets example --rows 3 | (exec <&-; sleep 3)",
            shell=True, capture_output=True, text=True, timeout=60, env=buffered,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("", "")

    def test_an_interrupted_fit_leaves_no_file(self, folder, tmp_path, tmp_path_factory):
        command = [COMMAND, "fit", str(folder / "train.csv"), "--ranker", "adaboost-mr"]
        # Kernels are compiled first: it is the fit that is to be interrupted, not the compiler.
        elsewhere = str(tmp_path_factory.mktemp("short") / "m.delta")
        short = [*command, "--rounds", "2", "--model", elsewhere]
        subprocess.run(short, check=True, capture_output=True, timeout=120)
        process = subprocess.Popen(
            [*command, "--rounds", "10000000", "--model", "m.delta"],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode not in (0, None)
        assert out == ""
        assert "Traceback" not in err
        assert os.listdir(tmp_path) == []


def test_fit_chooses_the_balance_for_orders_alone():
    from deltarank.cli.training import Settings, find_recipe, make

    recipe = find_recipe("logistic", Settings())
    assert make(recipe, Settings()).balances == (0.0, 0.5, 1.0)
    assert make(recipe, Settings(weight="uniform")).balances == (0.0,)
    assert make(recipe, Settings(weight="recall")).balances == (0.0,)
    assert make(recipe, Settings().made_for("ndcg@5")).balances == (0.0, 0.5, 1.0)
    assert make(recipe, Settings().made_for("precision@3")).balances == (0.0,)


@pytest.mark.parametrize("metric", ["ndcg@3", "precision@7", "macro-f1@2", "rank-loss"])
def test_evaluate_prints_the_metric_that_a_model_was_made_for(run, tmp_path, metric):
    example = run("datasets", "example")
    (tmp_path / "r.csv").write_text(example.out)
    model = tmp_path / "m.delta"
    assert run("fit", tmp_path / "r.csv", "--metric", metric, "--model", model).code == 0
    first = run("evaluate", model, tmp_path / "r.csv", "--draws", "50").out.splitlines()[1]
    _, name, *numbers = first.split("\t")
    value, low, high = map(float, numbers)
    assert name == metric
    assert low <= value <= high
    assert low < high


def test_evaluate_tells_whether_weights_matter(run, folder):
    arguments = ("evaluate", folder / "recipes.delta", folder / "test.csv")
    plain, told = run(*arguments), run(*arguments, "--weights")
    assert not any("weights" in row["measure"] for row in plain.rows)
    added = {row["measure"]: row for row in told.rows if row not in plain.rows}
    assert list(added) == [
        "pairs_changed_by_weights", "gain_by_weights", "dependence_through_weights",
        "p_of_dependence",
    ]  # fmt: skip
    gain = [float(added["gain_by_weights"][key]) for key in ("low", "value", "high")]
    assert gain == sorted(gain)
    assert 0 < float(added["pairs_changed_by_weights"]["value"]) < 0.2


def test_evaluate_says_which_rankers_have_no_weights(run, tmp_path):
    (tmp_path / "r.csv").write_text(run("datasets", "example").out)
    model = tmp_path / "m.delta"
    assert run("fit", tmp_path / "r.csv", "--metric", "macro-f1@2", "--model", model).code == 0
    result = run("evaluate", model, tmp_path / "r.csv", "--weights")
    assert result.code == 1
    assert "ranker must have a parameter `weight`" in result.err.replace("\n", " ")


@pytest.mark.parametrize("metric", ["ndgc@5", "precision", "rank-loss@3", "ndcg@0"])
def test_a_metric_that_is_none_is_refused(run, tmp_path, metric):
    result = run("fit", tmp_path / "none.csv", "--metric", metric, "--model", tmp_path / "m.delta")
    assert result.code == 2
    assert "--metric" in result.err


@pytest.mark.parametrize("ranker", ["pairwise", "adaboost-mr"])
def test_a_rule_needs_chances_and_says_so_before_the_work(run, tmp_path, ranker):
    options = ("--ranker", ranker, "--metric", "macro-f1@2", "--model", tmp_path / "m.delta")
    result = run("fit", tmp_path / "none.csv", *options)
    assert result.code == 2
    assert "its scores tell pairs of labels apart" in " ".join(result.err.replace("│", "").split())


@pytest.mark.parametrize("name", ["n_trees", "n_stumps", "C"])
def test_a_rule_is_found_for_the_parameter_that_was_chosen(name):
    from deltarank import AdaBoostRanker, BoostedTreeRanker, LogisticRanker
    from deltarank.cli.training import Settings, _decided, find_recipe

    recipes = {"n_trees": "boosted-trees", "n_stumps": "adaboost", "C": "logistic"}
    families = {"n_trees": BoostedTreeRanker, "n_stumps": AdaBoostRanker, "C": LogisticRanker}
    settings = Settings().made_for("macro-f1@2")
    fitted = families[name](weight="uniform", **{name: 7})
    decided = _decided(find_recipe(recipes[name], settings), settings, fitted)
    assert decided.ranker.get_params()[name] == 7


class TestPipelines:
    """Model files of scikit-learn's pipelines, which no command has fitted."""

    @pytest.mark.parametrize("options", [{}, {"with_mean": False}, {"with_std": False}])
    @pytest.mark.parametrize("named", [True, False])
    def test_a_scaler_and_a_ranker_answer_as_in_python(self, run, tmp_path, options, named):
        generator = np.random.default_rng(3)
        X = generator.normal(size=(40, 3)) * [1, 10, 100] + [0, 5, 50]
        Y = (X - X.mean(axis=0) + generator.normal(size=X.shape) > 0).astype(int)
        rows = "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in X.tolist())
        if named:
            X = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])
            data = tmp_path / "rows.csv"
            data.write_text("a,b,c\n" + rows)
        else:
            data = tmp_path / "rows.svm"
            lines = [" ".join(f"{j}:{v!r}" for j, v in enumerate(x, 1)) for x in X.tolist()]
            data.write_text("".join(f"0 {line}\n" for line in lines))
        pipeline = make_pipeline(StandardScaler(**options), LogisticRanker()).fit(X, Y)
        save(pipeline, tmp_path / "m.delta")
        result = run("rank", tmp_path / "m.delta", data, "--top", "3")
        assert result.code == 0, result.err
        found = [json.loads(line) for line in result.out.splitlines()]
        wanted = -np.sort(-pipeline.decision_function(X), axis=1)
        np.testing.assert_allclose([row["scores"] for row in found], wanted, atol=2e-6)
        explained = run("explain", tmp_path / "m.delta", data, "--row", "2")
        assert explained.code == 0, explained.err
        difference = float(explained.rows[-1]["adds"])
        np.testing.assert_allclose(difference, wanted[2, 0] - wanted[2, 1], atol=1e-5)

    def test_other_pipelines_are_refused_with_a_way_out(self, run, tmp_path):
        pipeline = make_pipeline(MaxAbsScaler(), LogisticRanker())
        save(pipeline.fit([[1.0], [2.0]], [[1, 0], [0, 1]]), tmp_path / "m.delta")
        result = run("rank", tmp_path / "m.delta", tmp_path / "rows.svm")
        assert result.code == 1
        assert "a StandardScaler before a ranker; got MaxAbsScaler" in result.err
        assert "use it in Python, by deltarank.load" in result.err
