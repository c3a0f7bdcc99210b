"""Experiments: runs that resume, statistics against scipy, rows that mean what they say."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from numpy.testing import assert_allclose
from scipy import stats

from deltarank import AdaBoostRanker, StagedSearchCV
from deltarank.core.statistics import (
    clustered_error,
    paired_bootstrap,
    sign_flip_p,
    standard_error,
    t_test,
    wilcoxon_p,
)
from deltarank.datasets import SyntheticModel
from deltarank.metrics import rank_loss
from deltarank.paper.experiments import (
    EXPERIMENTS,
    figure1,
    figure1_findings,
    figure1_limits,
    figure1_tables,
    find,
    table1,
    table2,
)
from deltarank.paper.experiments.algorithms import ALGORITHMS
from deltarank.paper.experiments.figure1_limits import MINIMISERS, floor, limit
from deltarank.paper.experiments.presets import FULL, QUICK
from deltarank.paper.experiments.published import TABLE1, TABLE2
from deltarank.paper.experiments.runner import read_rows, run_jobs
from deltarank.recipes import PATIENCE, Tuning

TINY = replace(
    QUICK, n_models=2, n_training_sets=1, sizes=(60, 120), n_test=300, n_limit=2000, rounds=(10, 20)
)
JOBS = [{"number": n, "power": 2} for n in range(8)]


def slow_square(number, power):
    time.sleep(0.1)
    return {"square": number**power}


def hears_interrupts(number, power):
    return {"hears": signal.getsignal(signal.SIGINT) is not signal.SIG_IGN}


def refuse(**job):
    raise AssertionError(f"{job} was done before")


def without_times(rows):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


class TestRunner:
    def test_rows_are_jobs_with_answers_times_and_versions(self, tmp_path):
        rows = run_jobs(slow_square, JOBS, tmp_path / "rows.jsonl")
        assert [row["number"] for row in rows] == list(range(8))
        assert [row["square"] for row in rows] == [n * n for n in range(8)]
        assert all(row["seconds"] >= 0.1 for row in rows)
        assert set(rows[0]["versions"]) >= {"python", "numpy", "deltarank"}
        assert read_rows(tmp_path / "rows.jsonl") == rows

    def test_rows_that_are_there_are_not_made_again(self, tmp_path):
        path = tmp_path / "rows.jsonl"
        rows = run_jobs(slow_square, JOBS, path)
        assert run_jobs(refuse, JOBS, path) == rows

    def test_long_jobs_start_first_and_rows_keep_the_order_of_jobs(self, tmp_path, monkeypatch):
        monkeypatch.setenv("DELTARANK_NUM_THREADS", "1")
        started = []

        def note(number, power):
            started.append(number)
            return {}

        rows = run_jobs(note, JOBS, tmp_path / "rows.jsonl", cost=lambda job: job["number"])
        assert started == list(range(7, -1, -1))
        assert [row["number"] for row in rows] == list(range(8))

    def test_a_line_cut_short_is_done_again(self, tmp_path):
        path = tmp_path / "rows.jsonl"
        whole = run_jobs(slow_square, JOBS, path)
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:3]) + lines[3][:20])
        assert without_times(run_jobs(slow_square, JOBS, path)) == without_times(whole)

    def test_a_full_disk_is_told_with_the_file(self, tmp_path, monkeypatch):
        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"No space left on device: '.*rows\.jsonl'"):
            run_jobs(slow_square, JOBS[:1], tmp_path / "rows.jsonl")

    def test_workers_leave_ctrl_c_to_the_command(self, tmp_path, monkeypatch):
        monkeypatch.setenv("DELTARANK_NUM_THREADS", "2")
        heard = signal.getsignal(signal.SIGINT)
        get_reusable_executor().shutdown(kill_workers=True)
        rows = run_jobs(hears_interrupts, JOBS[:4], tmp_path / "rows.jsonl")
        assert [row["hears"] for row in rows] == [False] * 4
        assert signal.getsignal(signal.SIGINT) is heard

    def test_a_damaged_line_is_named(self, tmp_path):
        path = tmp_path / "rows.jsonl"
        path.write_text('{"number": 0}\nnot json\n{"number": 1}\n')
        with pytest.raises(ValueError, match=r"rows\.jsonl, line 2: not JSON; move the file away"):
            run_jobs(slow_square, JOBS, path)

    def test_a_killed_run_goes_on_and_ends_with_the_same_rows(self, tmp_path):
        """Kill -9 a real run again and again; every row that was written is kept."""
        path = tmp_path / "rows.jsonl"
        program = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from pathlib import Path\n"
            "from test_experiments import JOBS, slow_square\n"
            "from deltarank.paper.experiments.runner import run_jobs\n"
            "run_jobs(slow_square, JOBS, Path(sys.argv[2]))\n"
        )
        environment = {**os.environ, "DELTARANK_NUM_THREADS": "1"}
        command = [sys.executable, "-c", program, os.path.dirname(__file__), str(path)]
        n_before, n_kills = 0, 0
        while len(read_rows(path)) < len(JOBS):
            process = subprocess.Popen(command, env=environment)
            while len(read_rows(path)) <= n_before and process.poll() is None:
                time.sleep(0.01)
            time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
            n_kills += process.wait() == -signal.SIGKILL
            assert len(read_rows(path)) > n_before
            n_before = len(read_rows(path))
        assert n_kills >= 2
        expected = run_jobs(slow_square, JOBS, tmp_path / "whole.jsonl")
        assert without_times(run_jobs(slow_square, JOBS, path)) == without_times(expected)


class TestStatistics:
    VALUES = np.random.default_rng(0).normal(0.3, 1, 200)

    def test_the_standard_error_is_scipys(self):
        assert standard_error(self.VALUES) == stats.sem(self.VALUES)
        assert np.isnan(standard_error([1.0]))

    def test_groups_count_once(self):
        groups = np.repeat(np.arange(20), 10)
        means = self.VALUES.reshape(20, 10).mean(axis=1)
        assert_allclose(clustered_error(self.VALUES, groups), stats.sem(means))

    def test_the_bootstrap_interval_is_scipys_up_to_chance(self):
        other = np.zeros(200)
        ours = paired_bootstrap(self.VALUES, other, n_draws=5000)
        theirs = stats.bootstrap(
            (self.VALUES,), np.mean, method="percentile", n_resamples=5000, rng=0
        ).confidence_interval
        assert_allclose((ours.low, ours.high), theirs, atol=0.02)
        assert_allclose(ours.mean, self.VALUES.mean())

    def test_students_test_is_scipys(self):
        found = t_test(self.VALUES)
        theirs = stats.ttest_1samp(self.VALUES, 0)
        interval = theirs.confidence_interval(0.95)
        assert_allclose(found.p, theirs.pvalue)
        assert_allclose((found.low, found.high), (interval.low, interval.high))
        assert_allclose(found.error, stats.sem(self.VALUES))
        assert np.isnan(t_test([1.0]).p)
        assert t_test([1.0, 1.0]).p == 0
        assert t_test([0.0, 0.0]).p == 1

    def test_splits_that_share_rows_have_a_larger_variance(self):
        """Random splits of one sample: its mean, over and over, as if it were estimated anew."""
        generator = np.random.default_rng(1)
        n_rows, n_train = 100, 60
        held, naive, corrected = 0, 0, 0
        for _ in range(300):
            rows = generator.normal(size=n_rows)
            means = [generator.permutation(rows)[n_train:].mean() for _ in range(10)]
            plain, mended = t_test(means), t_test(means, overlap=40 / 60)
            naive += plain.low < 0 < plain.high
            corrected += mended.low < 0 < mended.high
            held += 1
        assert naive / held < 0.85
        assert corrected / held > 0.92

    def test_signs_are_flipped_as_by_scipy(self):
        for values in (self.VALUES[:7], self.VALUES[:10] - 0.3):
            theirs = stats.permutation_test(
                (values,), np.sum, permutation_type="samples", n_resamples=np.inf
            )
            assert_allclose(sign_flip_p(values), theirs.pvalue)
        assert_allclose(sign_flip_p(np.ones(10)), 2 / 1024)
        assert_allclose(
            sign_flip_p(self.VALUES), stats.ttest_1samp(self.VALUES, 0).pvalue, atol=2e-3
        )

    def test_blocks_of_neighbours_are_drawn_together(self):
        """The interval of rows that are like their neighbours has the width of their mean."""
        generator = np.random.default_rng(0)
        noise = generator.normal(size=4000)
        rows = np.empty(4000)
        rows[0] = noise[0]
        for i in range(1, 4000):
            rows[i] = 0.6 * rows[i - 1] + noise[i]
        wanted = 2 * 1.96 / (1 - 0.6) / np.sqrt(4000)
        one, many = (paired_bootstrap(rows, 0.0, block=block) for block in (1, 50))
        assert_allclose(many.high - many.low, wanted, rtol=0.15)
        assert one.high - one.low < 0.6 * wanted

    def test_blocks_of_one_are_rows_and_one_block_is_the_mean(self):
        one = paired_bootstrap(self.VALUES, 0.0, block=1)
        assert one == paired_bootstrap(self.VALUES, 0.0)
        whole = paired_bootstrap(self.VALUES, 0.0, block=10_000)
        assert_allclose((whole.low, whole.high), [whole.mean] * 2)

    def test_wilcoxon_is_scipys(self):
        other = self.VALUES[::-1] * 0.5
        assert wilcoxon_p(self.VALUES, other) == stats.wilcoxon(self.VALUES, other).pvalue
        assert wilcoxon_p([1.0, 1.0], [1.0, 1.0]) == 1


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_asks_a_question_and_its_jobs_are_plain(name):
    experiment = find(name)
    assert experiment.name == name
    assert experiment.question.endswith("?")
    for job in experiment.jobs(QUICK):
        assert json.loads(json.dumps(job)) == job
        assert experiment.cost(job) >= 0


@pytest.fixture(scope="module")
def figure1_rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("figure1") / "rows.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure1_limits, "N_DRAWS", 1024)
        patch.setenv("DELTARANK_NUM_THREADS", "1")
        return run_jobs(figure1.answer, figure1.jobs(TINY), path)


class TestFigure1:
    def test_the_full_protocol_is_the_papers(self):
        jobs = figure1.jobs(FULL)
        trained = [job for job in jobs if job["algorithm"] in figure1.CURVES]
        assert len(trained) == 2 * 10 * 10 * 8 * len(figure1.CURVES)
        assert {job["n_rows"] for job in trained} >= {100, 16_000}
        assert {job["n_test"] for job in jobs} == {50_000}

    def test_rankers_lose_to_the_bayes_ranker_and_gain_by_more_rows(self, figure1_rows):
        rows = figure1_tables.with_regret(figure1_rows)
        regrets = [row["regret"] for row in rows]
        assert np.mean(regrets) > 0
        few, many = ([r["regret"] for r in rows if r["n_rows"] == n] for n in (60, 120))
        assert np.mean(few) > np.mean(many)

    def test_a_row_can_be_redone_from_itself(self, figure1_rows):
        for row in (figure1_rows[0], figure1_rows[-1]):
            job = {key: row[key] for key in figure1.jobs(TINY)[0]}
            again = figure1.answer(**job)
            assert {key: row[key] for key in again} == again

    def test_all_rankers_of_a_training_set_see_the_same_rows(self):
        one, two = (
            figure1.world("dependent", 0, 10, 0.5, 100, 7).model.sample(5, random_state=[7, 0, 1])
            for _ in range(2)
        )
        assert (one[0] == two[0]).all()

    def test_a_model_its_test_rows_and_training_rows_have_streams_of_their_own(self):
        keys = [
            (seed, model, *key)
            for seed in (7, 8) for model in range(3)
            for key in [(figure1.MODEL,), (figure1.TEST,),
                        *((figure1.TRAINING, n, i) for n in (0, 60) for i in range(3))]
        ]  # fmt: skip
        draws = {tuple(figure1.stream(*key).random(4)) for key in keys}
        assert len(draws) == len(keys)

    def test_the_test_rows_do_not_follow_from_the_model(self):
        """Once, both were drawn from one stream: the first angles gave the first radii."""
        here = figure1.world("independent", 0, 10, 0.5, 50, 7)
        angles = np.arctan2(here.model.directions[:, 1], here.model.directions[:, 0])
        turns = angles % (2 * np.pi) / (2 * np.pi)
        radii = np.hypot(*here.X[:10].T)
        assert np.abs(radii**2 - turns).min() > 1e-9

    def test_rows_of_other_seeds_are_not_taken_for_these(self, tmp_path):
        job = figure1.jobs(TINY)[-1]
        old = {key: value for key, value in job.items() if key != "seeding"}
        path = tmp_path / "rows.jsonl"
        path.write_text(json.dumps({**old, "loss": -1.0}) + "\n")
        assert run_jobs(figure1.answer, [job], path)[0]["loss"] > 0

    def test_stumps_have_every_threshold_as_in_weka(self):
        preset = replace(TINY, sizes=(600,), stumps=(10, 20))
        job = next(j for j in figure1.jobs(preset) if j["algorithm"] == "WBR-AB")
        here = figure1.world(job["case"], 0, 10, 0.5, 300, job["seed"])
        stream = figure1.stream(job["seed"], 0, figure1.TRAINING, 600, 0)
        X, Y = here.model.sample(600, random_state=stream)
        exact, binned = (
            StagedSearchCV(
                AdaBoostRanker(bins=bins), rounds=[10, 20], cv=3, random_state=job["seed"]
            ).fit(X, Y)
            for bins in (None, 256)
        )
        losses = [rank_loss(here.Y, each.decision_function(here.X)) for each in (exact, binned)]
        assert losses[0] != losses[1]
        assert figure1.answer(**job)["loss"] == losses[0]

    def test_cases_of_a_model_share_their_directions(self):
        independent, dependent = (
            figure1.world(case, 3, 10, 0.5, 10, 7).model for case in figure1.CASES
        )
        assert (independent.directions == dependent.directions).all()
        assert independent.independent
        assert not dependent.independent

    def test_differences_are_paired_by_training_set(self):
        rows = [
            {"case": "independent", "n_rows": 9, "model": m, "training_set": i, "algorithm": a,
             "loss": 10 * m + i + 0.5 * (a == "LLLR")}
            for a in ("WBR-LR", "LLLR") for m in range(3) for i in range(2)
        ]  # fmt: skip
        gaps, models = figure1_tables.paired_gaps(rows, "independent", 9, "LLLR", "WBR-LR")
        assert (gaps == 0.5).all()
        assert models.tolist() == [0, 0, 1, 1, 2, 2]

    def test_tables_and_figure_come_from_the_rows(self, figure1_rows):
        curves, differences, limits = figure1_tables.tables(figure1_rows)
        assert len(limits.rows) == 2 * 4
        assert len(curves.rows) == 2 * len(figure1.CURVES) * 2
        mine = [
            row["loss"]
            for row in figure1_rows
            if (row["case"], row["algorithm"], row["n_rows"]) == ("dependent", "LLLR", 120)
        ]
        shown = [
            row
            for row in curves.rows
            if (row["case"], row["algorithm"], row["n_rows"]) == ("dependent", "LLLR", 120)
        ]
        assert_allclose(shown[0]["loss"], np.mean(mine))
        assert {row["pair"] for row in differences.rows} >= {"AB.MR - WBR-AB", "LLLR - WBR-LR"}
        figure = figure1.figures(figure1_rows)["figure1"]
        assert len(figure.axes) == 8


def test_the_grid_of_rounds_is_cut_by_patience_and_says_so():
    X, Y = figure1.world("independent", 0, 5, 0.5, 200, 1)[1:]
    entry = ALGORITHMS["AB.MH"]
    ranker = entry.make(Tuning(**{**QUICK.tuning(), "rounds": [10, 20, 50, 100, 200]})).fit(X, Y)
    found = entry.chosen(ranker)
    assert found["tried to"] <= PATIENCE * found["chosen"]
    assert found["tried to"] <= 200


@pytest.mark.parametrize(
    ("gap", "verdict"),
    [(0.01, "is better than"), (-0.01, "is worse than"), (0.0, "is on par with")],
)
def test_findings_weigh_differences_by_their_errors(gap, verdict):
    jitter = iter(0.1 * gap * np.random.default_rng(0).normal(size=240))
    rows = [
        {"case": case, "n_rows": n, "model": m, "training_set": i, "algorithm": a,
         "loss": 0.2 + next(jitter) + gap * (a in ("AB.MR", "LLLR"))}
        for m in range(5) for i in range(2) for case in figure1.CASES
        for n in (50, 100) for a in figure1.CURVES
    ]  # fmt: skip
    rows += [
        {"case": case, "n_rows": 0, "model": m, "algorithm": "Bayes", "loss": 0.1, "risk": 0.11}
        for case in figure1.CASES for m in range(5)
    ]  # fmt: skip
    *found, independent, dependent = figure1_findings.findings(rows)
    assert len(found) == 4
    for sentence in found:
        assert verdict in sentence
        assert ", 100 rows:" in sentence
    for sentence in (independent, dependent):
        assert "loss 0.1000 on the test rows, risk 0.1100" in sentence


def test_a_model_that_makes_a_plateau_is_named():
    rows = [
        {"case": "dependent", "model": m, "n_rows": 9, "training_set": 0, "algorithm": "BR",
         "regret": 0.9 if m == 2 else 0.01 * m}
        for m in range(5)
    ]  # fmt: skip
    (sentence,) = figure1_findings._plateau_findings([], rows, 9)
    assert sentence.startswith("dependent labels, BR at 9 rows: model 2 makes 92% of the mean")
    assert figure1_findings._plateau_findings([], rows[:2], 9) == []


def test_choices_at_an_end_of_their_grid_are_counted():
    grids = {"Cs": [0.1, 1.0, 10.0], "stumps": [10, 20], "rounds": [10, 50, 100]}
    rows = [
        {"case": "dependent", "model": m, "n_rows": 9, "training_set": i, "algorithm": "WBR-LR",
         "loss": 0.1, "regret": 0.1, "chosen": [0.1, 10.0, 1.0, 10.0][2 * m + i], **grids}
        for m in range(2) for i in range(2)
    ]  # fmt: skip
    assert figure1_tables._ends(rows) == {"at low end": 0.25, "at high end": 0.5}
    assert figure1_tables._ends([{**rows[0], "algorithm": "WBR-AB", "chosen": 20}]) == {
        "at low end": 0.0,
        "at high end": 1.0,
    }


class TestLimits:
    """Where curves go, and where the Bayes ranker itself stands."""

    @pytest.mark.slow
    def test_the_regret_of_a_ranking_is_what_it_loses_on_many_rows(self):
        model = SyntheticModel.random(6, dependent=True, random_state=3)

        def scores(X):
            return X @ np.roll(model.directions, 1, axis=0).T

        X, Y = model.sample(100_000, random_state=4)
        lost = rank_loss(Y, scores(X), per_instance=True) - rank_loss(
            Y, model.bayes_scores(X), per_instance=True
        )
        assert abs(model.regret(scores) - lost.mean()) < 4 * standard_error(lost)

    def test_losses_go_where_theory_says(self, monkeypatch):
        monkeypatch.setattr(figure1_limits, "N_DRAWS", 8192)
        independent, dependent = (
            SyntheticModel.random(10, dependent=case, random_state=[2012, 5])
            for case in (False, True)
        )
        regrets = {
            (name, case): limit(model, name, 100_000, np.random.default_rng(1))["regret"]
            for case, model in (("independent", independent), ("dependent", dependent))
            for name in MINIMISERS
        }
        # Linear scores with the right link: all are consistent where labels are independent.
        assert max(r for (_, case), r in regrets.items() if case == "independent") < 5e-5
        assert regrets["LLLR limit", "dependent"] > 4e-4
        assert regrets["BR limit", "dependent"] > 1e-3
        assert regrets["WBR-LR limit", "dependent"] < 2e-4

    @pytest.mark.slow
    def test_the_bayes_ranker_has_no_regret_where_it_is_exact_and_little_elsewhere(self):
        independent, dependent = (
            SyntheticModel.random(10, dependent=case, random_state=[2012, 5])
            for case in (False, True)
        )
        assert floor(independent) == 0
        assert 1e-6 < floor(dependent) < 1e-4


class TestTables:
    def test_counts_beside_the_papers(self, data_folder):
        rows = [{**job, **table1.answer(**job)} for job in table1.jobs(QUICK)]
        shown = {row["data set"]: row for row in table1.tables(rows)[0].rows}
        assert set(shown) == set(QUICK.data_sets)
        assert shown["scene"]["#attr."] == "294"
        assert shown["emotions"]["ave."] == "1.81 (paper: 1.96)"

    def test_grids_end_earlier_where_rounds_take_long(self, data_folder):
        jobs = table2.jobs(FULL)
        last = {job["data_set"]: job["rounds"][-1] for job in jobs}
        assert last.pop("mediamill") == 5000
        assert set(last.values()) == {20_000}
        assert table2.jobs(replace(FULL, rounds=(10_000,)))[-1]["rounds"] == [10_000]

    def test_a_cell_of_table_2_is_the_loss_of_a_tuned_ranker(self, data_folder):
        job = {"data_set": "emotions", "features": "raw", "split": 0, "algorithm": "WBR-LR",
               **QUICK.tuning()}  # fmt: skip
        row = {**job, **table2.answer(**job)}
        assert len(row["row_losses"]) == 202
        assert_allclose(np.mean(row["row_losses"]), row["loss"], atol=1e-5)
        assert abs(row["loss"] - TABLE2["emotions"]["WBR-LR"]) < 0.02
        other = {**row, "algorithm": "LLLR", "loss": 0.5, "row_losses": [0.5] * 202}
        losses, rivals, successors, *_ = table2.tables([row, other])
        assert successors.rows[0]["WBR-LR"] == losses.rows[0]["WBR-LR"]
        assert losses.rows[0]["WBR-LR"] == f"{row['loss']:.4f} (0.1657)"
        assert rivals.rows[0]["better"] == "WBR-LR"

    def test_overlapping_splits_do_not_make_a_difference_certain(self):
        gaps = [0.001, 0.012, 0.002, 0.011, -0.004, 0.013, 0.002, 0.012, 0.001, 0.013]
        one, other = (
            [{"loss": 0.2 + extra, "row_losses": [0.2 + extra] * 800} for extra in extras]
            for extras in (gaps, [0.0] * 10)
        )
        found = table2.difference("image", one, other)
        assert stats.ttest_1samp(gaps, 0).pvalue < 0.02
        assert found.low < 0 < found.mean

    def test_neighbours_of_mediamill_count_together(self):
        losses = np.repeat(np.random.default_rng(0).normal(0.1, 1, 100), 20).tolist()
        rows = [{"loss": float(np.mean(losses)), "row_losses": losses}]
        zero = [{"loss": 0.0, "row_losses": [0.0] * len(losses)}]
        apart, together = (table2.difference(name, rows, zero) for name in ("yeast", "mediamill"))
        assert together.high - together.low > 2 * (apart.high - apart.low)

    def test_no_variant_of_the_features_is_chosen_by_its_test_loss(self):
        grids = {"Cs": [0.1], "stumps": [10], "rounds": [10], "chosen": 0.5}
        rows = [
            {"data_set": "yeast", "features": variant, "split": 0, "algorithm": a, **grids,
             "loss": loss, "row_losses": [loss] * 9}
            for variant, loss in (("raw", 0.5), ("standardised", 0.1)) for a in ("LLLR", "WBR-LR")
        ]  # fmt: skip
        said = " ".join(table2.findings(rows))
        assert (
            "WBR-LR (raw features): within .005 of the paper's loss, or below it, on 0 of 1" in said
        )
        assert "WBR-LR (standardised features): within .005 of the paper's" in said

    def test_without_data_there_are_no_jobs(self, monkeypatch, tmp_path):
        monkeypatch.setenv("DELTARANK_DATA", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert table1.jobs(FULL) == table2.jobs(FULL) == []

    def test_the_printed_tables_have_a_row_a_data_set(self):
        assert set(TABLE1) == set(TABLE2) == set(FULL.data_sets)
