"""Many labels: coefficients left out with a bound, blocks kept on disk, a fit that is killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from deltarank import LogisticRanker, explain, load, rank_loss, save, top_features
from deltarank.core.arrays import read_arrays, write_arrays
from deltarank.datasets import long_tailed
from deltarank.linear.checkpoint import Checkpoint
from deltarank.linear.coefficients import linear_scores, pruned
from deltarank.linear.rows.local import LocalRows
from deltarank.storage import ModelFileError

X, Y = long_tailed(800, 1200, 90, random_state=0)
LENGTHS = np.sqrt(X.multiply(X).sum(axis=1))


@pytest.fixture(autouse=True)
def narrow_blocks(monkeypatch):
    """Blocks of 12 labels, so that there are several."""
    monkeypatch.setattr(LocalRows, "bytes_per_block", 12 * 1201 * 144)


class TestPruning:
    @pytest.mark.parametrize("threshold", [0.01, 0.3, 3.0])
    def test_no_score_changes_by_more_than_is_said(self, threshold):
        whole = LogisticRanker(C=10.0).fit(X, Y)
        thin = LogisticRanker(C=10.0, prune=threshold).fit(X, Y)
        change = np.abs(thin.decision_function(X) - whole.decision_function(X))
        assert (change <= LENGTHS[:, None] * thin.prune_effect_ + 1e-4).all()
        assert sparse.issparse(thin.coef_)
        assert np.abs(thin.coef_.data).min() >= threshold
        kept = np.where(np.abs(whole.coef_) < threshold, 0, whole.coef_)
        assert_allclose(thin.coef_.toarray(), kept, atol=1e-5)

    def test_the_bound_is_attained_by_a_row_along_what_was_left_out(self):
        coef = np.random.default_rng(0).normal(size=(3, 40))
        kept, effect = pruned(coef, 0.7)
        lost = coef - kept.toarray()
        row = lost[1] / np.linalg.norm(lost[1])
        assert_allclose(row @ lost[1], effect[1], rtol=1e-12)

    @pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_array.toarray])
    def test_sparse_coefficients_score_and_rank_as_dense_ones(self, form):
        thin = LogisticRanker(C=10.0, prune=0.3).fit(X, Y)
        rows = form(X)
        expected = X @ thin.coef_.toarray().T + thin.intercept_
        assert_allclose(thin.decision_function(rows), expected, rtol=1e-4, atol=1e-4)
        order = np.argsort(-expected, axis=1, kind="stable")
        assert (thin.rank(rows, top=3) == order[:, :3]).mean() > 0.999

    def test_labels_never_or_always_seen_keep_their_constant_scores(self):
        marks = Y.toarray()
        marks[:, 3], marks[:, 4] = 0, 1
        thin = LogisticRanker(prune=1e-3).fit(X, marks)
        whole = LogisticRanker().fit(X, marks)
        assert_array_equal(thin.intercept_[[3, 4]], whole.intercept_[[3, 4]])
        assert thin.coef_[[3, 4]].nnz == 0
        assert_array_equal(thin.prune_effect_[[3, 4]], 0)

    def test_a_model_file_keeps_them_sparse_and_on_disk(self, tmp_path):
        thin = LogisticRanker(C=10.0, prune=0.3).fit(X, Y)
        save(thin, tmp_path / "model")
        again = load(tmp_path / "model")
        assert sparse.issparse(again.coef_)
        assert not again.coef_.data.flags.writeable
        assert_array_equal(again.rank(X, top=5), thin.rank(X, top=5))
        assert_array_equal(again.prune_effect_, thin.prune_effect_)
        assert set(vars(again)) == set(vars(thin))
        dense = thin.coef_.shape[0] * thin.coef_.shape[1] * thin.coef_.dtype.itemsize
        kept = thin.coef_.nnz * (thin.coef_.dtype.itemsize + 4)
        assert kept < (tmp_path / "model").stat().st_size < kept + 30_000 < dense

    def test_a_file_whose_labels_are_out_of_range_is_refused(self, tmp_path):
        path = tmp_path / "model"
        save(LogisticRanker(C=10.0, prune=0.3).fit(X, Y), path)
        arrays, strings = read_arrays(path)
        arrays["coef_.indices"] = arrays["coef_.indices"] + 90
        write_arrays(path, arrays, strings)
        with pytest.raises(ModelFileError, match="coef_ is no sparse matrix"):
            load(path)

    def test_reasons_add_up(self):
        thin = LogisticRanker(C=10.0, prune=0.3).fit(X, Y)
        found = explain(thin, X[:1], 0, 1)
        first, second = thin.decision_function(X[:1])[0, :2]
        assert_allclose(found.difference, first - second, atol=1e-4)
        best = np.abs(thin.coef_[[0]].toarray()).max()
        assert abs(top_features(thin, 0, 1)[0][1]) == pytest.approx(best)

    def test_bad_thresholds_are_refused(self):
        for wrong in (0, -1.0, np.inf, "x"):
            with pytest.raises(ValueError, match="prune must be positive and finite"):
                LogisticRanker(prune=wrong).fit(X, Y)
        with pytest.raises(ValueError, match="warm_start needs them all"):
            LogisticRanker(prune=0.1, warm_start=True).fit(X, Y)

    def test_a_whole_fit_may_follow(self):
        ranker = LogisticRanker(prune=0.3).fit(X, Y).set_params(prune=None, warm_start=True)
        assert_array_equal(ranker.fit(X, Y).coef_, LogisticRanker().fit(X, Y).coef_)
        assert not hasattr(ranker, "prune_effect_")

    def test_scores_of_dense_coefficients_are_plain_products(self):
        generator = np.random.default_rng(0)
        rows, coef, intercept = (generator.normal(size=s) for s in ((5, 3), (4, 3), 4))
        assert_allclose(linear_scores(rows, coef, intercept), rows @ coef.T + intercept)


KILLED = """
import sys, time
import deltarank.linear.checkpoint as checkpoint
from deltarank.linear.rows.local import LocalRows
from deltarank import LogisticRanker, save
from deltarank.datasets import long_tailed
LocalRows.bytes_per_block = 12 * 1201 * 144
X, Y = long_tailed(800, 1200, 90, random_state=0)
plain = checkpoint.Checkpoint.save
def slow(self, number, arrays):
    plain(self, number, arrays)
    time.sleep(float(sys.argv[2]))
checkpoint.Checkpoint.save = slow
ranker = LogisticRanker(C=10.0, prune=0.1, checkpoint=sys.argv[1]).fit(X, Y)
"""


class TestCheckpoint:
    def test_a_fit_killed_in_the_middle_goes_on_and_ends_the_same(self, tmp_path, monkeypatch):
        folder = tmp_path / "blocks"
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder), "0.5"])
        for _ in range(1200):
            if len(list(folder.glob("block-*"))) >= 2:
                break
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(timeout=20) == -signal.SIGKILL
        done = {path: path.stat().st_mtime_ns for path in folder.glob("block-*")}
        assert 2 <= len(done) < 8
        options = {"C": 10.0, "prune": 0.1}
        resumed = LogisticRanker(**options, checkpoint=str(folder)).fit(X, Y)
        assert all(path.stat().st_mtime_ns == written for path, written in done.items())
        assert len(list(folder.glob("block-*"))) == 8
        whole = LogisticRanker(**options).fit(X, Y)
        assert (resumed.coef_ != whole.coef_).nnz == 0
        for name in ("intercept_", "n_iter_", "objective_", "converged_", "prune_effect_"):
            assert_array_equal(getattr(resumed, name), getattr(whole, name))

    def test_dense_coefficients_can_be_kept_too(self, tmp_path):
        options = {"checkpoint": str(tmp_path / "blocks")}
        first = LogisticRanker(**options).fit(X, Y)
        again = LogisticRanker(**options).fit(X, Y)
        assert_array_equal(first.coef_, again.coef_)
        assert_array_equal(first.coef_, LogisticRanker().fit(X, Y).coef_)

    @pytest.mark.parametrize(
        "change",
        [
            {"C": 2.0},
            {"tol": 1e-3},
            {"prune": 0.2},
            {"weight": "uniform"},
            {"positive_cost": 2.0},
            {"penalize_intercept": True},
        ],
    )
    def test_other_parameters_are_refused(self, tmp_path, change):
        options = {"prune": 0.1, "checkpoint": str(tmp_path / "blocks")}
        few = Y[:, :12]
        LogisticRanker(**options).fit(X, few)
        with pytest.raises(ValueError, match="belongs to a fit of other data or other parameters"):
            LogisticRanker(**{**options, **change}).fit(X, few)

    def test_other_data_are_refused(self, tmp_path):
        options = {"prune": 0.1, "checkpoint": str(tmp_path / "blocks")}
        few = Y[:, :12].toarray()
        LogisticRanker(**options).fit(X, few)
        other, marks = X.copy(), few.copy()
        other.data[-1] *= 1.01
        # Of a row that weighs something, and still does.
        row = int(np.flatnonzero((few.sum(axis=1) > 1) & (few.sum(axis=1) < 11))[0])
        marks[row, np.flatnonzero(few[row])[0]] = 0
        counts = np.ones(len(marks))
        counts[row] = 2
        for case in ((other, few), (X, marks), (X, few, counts)):
            with pytest.raises(ValueError, match="other data or other parameters"):
                LogisticRanker(**options).fit(*case)

    def test_a_fit_killed_before_its_first_block_can_start_again(self, tmp_path):
        left = tmp_path / ".fit.json.0123abcd.unfinished"
        left.write_text("{")
        LogisticRanker(prune=0.1, checkpoint=str(tmp_path)).fit(X, Y[:, :12])
        assert not left.exists()

    def test_of_two_fits_that_start_at_once_in_one_folder_one_is_refused(self, tmp_path):
        """One block each, so that whoever is late finds the folder in use or taken."""
        both = [Y[:, :12], Y[:, 12:24]]
        alone = [LogisticRanker().fit(X, few).coef_ for few in both]
        for attempt in range(8):
            folder, together = str(tmp_path / f"{attempt}"), threading.Barrier(2)

            def fit(few, folder=folder, together=together):
                together.wait()
                try:
                    return LogisticRanker(checkpoint=folder).fit(X, few).coef_
                except ValueError as error:
                    return str(error)

            with ThreadPoolExecutor(2) as pool:
                results = list(pool.map(fit, both))
            refused = [result for result in results if isinstance(result, str)]
            assert len(refused) == 1
            assert "is in use by a fit" in refused[0] or "belongs to a fit of other" in refused[0]
            winner = isinstance(results[0], str)
            again = LogisticRanker(checkpoint=folder).fit(X, both[winner])
            assert_array_equal(again.coef_, alone[winner])

    def test_without_locks_the_first_still_owns_the_folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr("deltarank.core.files.fcntl", None)
        with Checkpoint(str(tmp_path), "one"), pytest.raises(ValueError, match="other data"):
            Checkpoint(str(tmp_path), "two").__enter__()

    def test_a_block_of_another_fit_is_refused(self, tmp_path):
        for name, columns in (("a", slice(12)), ("b", slice(12, 24))):
            LogisticRanker(checkpoint=str(tmp_path / name)).fit(X, Y[:, columns])
        block = "block-000000.safetensors"
        (tmp_path / "a" / block).write_bytes((tmp_path / "b" / block).read_bytes())
        with pytest.raises(ValueError, match=f"{block} is of another fit; delete it"):
            LogisticRanker(checkpoint=str(tmp_path / "a")).fit(X, Y[:, :12])

    def test_a_damaged_block_and_a_foreign_folder_are_named(self, tmp_path):
        options = {"prune": 0.1, "checkpoint": str(tmp_path / "blocks")}
        LogisticRanker(**options).fit(X, Y[:, :12])
        block = tmp_path / "blocks" / "block-000000.safetensors"
        content = block.read_bytes()
        name = content.index(b"intercept")  # in the header
        for damaged in (content[:-100], b"", content[:name] + b"x" + content[name + 1 :]):
            block.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"block-000000.safetensors is damaged; delete it"):
                LogisticRanker(**options).fit(X, Y[:, :12])
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "notes.txt").write_text("keep me")
        with pytest.raises(ValueError, match="checkpoint must be a new or empty folder"):
            LogisticRanker(checkpoint=str(tmp_path / "mine")).fit(X, Y[:, :12])


class TestLongTailedData:
    def test_frequencies_follow_power_laws(self):
        rows, marks = long_tailed(20_000, 3000, 500, random_state=1)
        assert rows.shape == (20_000, 3000)
        assert rows.dtype == np.float32
        assert_allclose(rows.multiply(rows).sum(axis=1), 1.0, rtol=1e-5)
        for matrix in (rows, marks):
            counts = np.sort(np.bincount(matrix.indices, minlength=matrix.shape[1]))[::-1]
            ranks = np.arange(1, len(counts) + 1)
            middle = slice(len(counts) // 50, len(counts) // 2)
            slope = np.polyfit(np.log(ranks[middle]), np.log(counts[middle]), 1)[0]
            assert -1.6 < slope < -0.5
        assert set(np.unique(marks.data)) == {1}
        assert 2 < marks.sum() / len(rows.indptr) < 8

    def test_labels_can_be_learned_from_features(self):
        train = long_tailed(2000, 600, 40, random_state=2)
        test = long_tailed(1000, 600, 40, random_state=3, model_state=2)
        ranker = LogisticRanker(C=10.0, tol=1e-3).fit(*train)
        frequencies = np.tile(np.bincount(train[1].indices, minlength=40), (1000, 1))
        learned = rank_loss(test[1], ranker.decision_function(test[0]))
        assert learned < 0.6 * rank_loss(test[1], frequencies)
