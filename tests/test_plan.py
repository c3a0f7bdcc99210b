"""Commands look before they leap: how long a fit takes, and a shorter way to C."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import normalize

from deltarank.cli import main, plan
from deltarank.cli.inputs import note, saying_once
from deltarank.cli.training import Settings
from deltarank.linear.rows import costs
from deltarank.recipes import RECIPES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = sparse.csr_array((X @ RNG.normal(size=(4, 6)) + RNG.normal(size=(120, 6)) > 0.5).astype(int))


def planned(settings, name="logistic"):
    return plan.planned(name, RECIPES[name], settings, X, Y)


def test_small_data_are_searched_whole_and_in_silence(capsys):
    assert type(planned(Settings())).__name__ == "LogisticRankerCV"
    assert capsys.readouterr().err == ""


def test_c_is_chosen_on_a_part_where_all_would_take_long(capsys, monkeypatch):
    monkeypatch.setattr(plan, "LONGEST_SEARCH", 0)
    monkeypatch.setattr(plan, "MOST_ROWS", 80)
    monkeypatch.setattr(plan, "MOST_LABELS", 3)
    ranker = planned(Settings())
    rows, labels = plan.part(Y, 0)
    frequencies = np.asarray(Y.sum(axis=0)).ravel()
    assert set(labels) == set(np.argsort(-frequencies, kind="stable")[:3])
    own = RECIPES["logistic"].tuned("rank", plan.Tuning()).fit(X[rows], Y[rows][:, labels])
    assert type(ranker).__name__ == "LogisticRanker"
    assert ranker.C == own.C_
    assert "on 80 rows and the 3 most frequent labels (--tune takes all" in capsys.readouterr().err


def test_who_asks_for_a_search_gets_it(monkeypatch):
    monkeypatch.setattr(plan, "LONGEST_SEARCH", 0)
    assert type(planned(Settings(tune=True))).__name__ == "LogisticRankerCV"


def test_long_fits_are_announced_with_what_a_sample_of_labels_took(capsys, monkeypatch):
    monkeypatch.setattr(plan, "WORTH_SAYING", 0)
    monkeypatch.setattr(plan, "SAMPLED_LABELS", 3)
    times = iter([100.0, 300.0])
    monkeypatch.setattr(plan.time, "perf_counter", lambda: next(times))
    planned(Settings(C=1.0))
    # 200 s for three of six labels; one fit.
    told = capsys.readouterr().err
    assert "120 rows, 4 features, 6 labels: this will take about 7 minutes and " in told


def wide_text(n_labels=300, n_features=20_000):
    words = sparse.random_array((200, n_features), density=0.002, rng=RNG, format="csr")
    words = normalize(words)
    tags = sparse.random_array((200, n_labels), density=0.01, rng=RNG, format="csr")
    return words, (tags > 0).astype(int)


def test_small_coefficients_are_left_out_where_all_would_take_much(capsys):
    words, tags = wide_text()
    assert plan.WORTH_PRUNING < 8 * 20_000 * 300
    for settings in (Settings(), Settings(C=10.0)):
        ranker = plan.planned("logistic", RECIPES["logistic"], settings, words, tags)
        assert ranker.prune == plan.PRUNE
        assert "45.8 MB" in capsys.readouterr().err
    long = plan.planned("logistic", RECIPES["logistic"], Settings(C=0.1), 10 * words, tags)
    assert long.prune == plan.PRUNE / 10
    assert "coefficients below 0.005 are" in capsys.readouterr().err
    kept = plan.planned("logistic", RECIPES["logistic"], Settings(C=10.0, prune=0.0), words, tags)
    assert kept.prune is None
    given = plan.planned("logistic", RECIPES["logistic"], Settings(prune=0.3), words, tags)
    assert given.prune == 0.3
    few = plan.planned("logistic", RECIPES["logistic"], Settings(), words, tags[:, :20])
    dense = plan.planned("logistic", RECIPES["logistic"], Settings(C=1.0), X, Y)
    assert few.prune is dense.prune is None
    assert capsys.readouterr().err == ""


def test_the_memory_that_is_told_is_that_of_the_coefficients_that_are_kept():
    words, tags = wide_text()
    _, of_all = plan._measured(words, tags, 10.0, None)
    _, of_some = plan._measured(words, tags, 10.0, 0.3)
    assert of_all == 300 * 20_000 * 8
    ranker = plan.LogisticRanker(C=10.0, weight=plan._alike, prune=0.3).fit(words, tags)
    assert of_some == pytest.approx(plan._bytes_of(ranker.coef_), rel=0.5)
    assert of_some < of_all / 10


def test_a_search_is_told_to_take_the_memory_of_its_scores(capsys, monkeypatch):
    monkeypatch.setattr(plan, "WORTH_SAYING", 0)
    monkeypatch.setattr(plan, "LONGEST_SEARCH", np.inf)
    monkeypatch.setattr(plan.memory, "in_words", str)
    monkeypatch.setattr(plan.memory, "in_use", lambda: 0)
    monkeypatch.setattr(plan, "_measured", lambda *_: (1.0, 0.0))
    held = []
    for settings in (Settings(C=1.0), Settings()):
        planned(settings)
        held.append(float(capsys.readouterr().err.split(" and ")[-1].split()[0]))
    assert held[1] - held[0] == 8 * len(plan.DEFAULT_CS) * 120 * 6


def test_the_sample_counts_rows_without_its_labels_and_holds_frequent_and_rare_labels(monkeypatch):
    seen = []

    class Watched(plan.LogisticRanker):
        def fit(self, X, y):
            seen.append((np.asarray(y.sum(axis=0)).ravel(), super().fit(X, y)))
            return self

    monkeypatch.setattr(plan, "LogisticRanker", Watched)
    monkeypatch.setattr(plan, "SAMPLED_LABELS", 2)
    plan._measured(X, Y, 1.0, None)
    frequencies = np.asarray(Y.sum(axis=0)).ravel()
    assert set(seen[-1][0]) == {frequencies.max(), frequencies.min()}
    assert (plan._alike(Y) == 1).all()


@pytest.mark.parametrize(("best", "words"), [(100.0, "largest"), (0.1, "smallest"), (1.0, "")])
def test_the_end_of_the_grid_is_told(best, words, capsys):
    class Search:
        C_, cv_results_ = best, {"param_C": np.array([0.1, 1.0, 100.0])}

    plan.note_end_of_grid(Search())
    told = capsys.readouterr().err
    assert (f"the {words} value tried" in told) if words else told == ""


def test_what_every_fold_would_tell_is_told_once(capsys):
    with saying_once():
        for text in ["C is high", "C is high", "C is low", "C is high"]:
            note(text)
    note("C is high")
    assert capsys.readouterr().err == "C is high\nC is low\nC is high\n"


def test_costs_grow_with_rows_labels_and_c():
    one = costs.fit_seconds((1000, 5000), 30_000, 100, 1.0)
    assert costs.fit_seconds((2000, 5000), 60_000, 100, 1.0) > one
    assert costs.fit_seconds((1000, 5000), 30_000, 200, 1.0) == pytest.approx(2 * one)
    passes = [costs.passes_seconds(1000, 30, 5000, 100, [C]) for C in (1.0, 1000.0)]
    assert passes[1] > 5 * passes[0]


def test_very_many_labels_get_a_tree_unless_another_ranker_is_asked_for(
    tmp_path, monkeypatch, capsys
):
    rows = "".join(f"word{i % 7} and word{i % 5},a{i};b{i % 9}\n" for i in range(60))
    (tmp_path / "tags.csv").write_text(f"text,tags\n{rows}")
    monkeypatch.setattr(plan, "MOST_WITHOUT_TREE", 50)

    def fitted(*more):
        given = ["fit", tmp_path / "tags.csv", "--separator", ";", "--model", tmp_path / "m", *more]
        monkeypatch.setattr("sys.argv", ["deltarank", *map(str, given)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr().err

    told = fitted()
    assert "fitting a label tree, as there are 69 labels" in told
    assert "(--ranker logistic does that)" in told
    assert re.search(r"fitted LabelTreeRanker to 60 rows, .* in [\d.]+ s; n_trees = 3$", told, re.M)
    assert "fitted LogisticRanker to 60 rows" in fitted("--ranker", "logistic", "--C", "1")
    monkeypatch.setattr(plan, "MOST_WITHOUT_TREE", 69)
    assert "tree" not in fitted("--C", "1").lower()
