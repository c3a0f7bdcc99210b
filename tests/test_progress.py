"""Long steps tell how far they are, to whoever listens, and nobody else pays for it."""

import os
import pty
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from deltarank import LogisticRanker, datasets
from deltarank.cli.training import Settings, make
from deltarank.core.progress import listening, progress
from deltarank.recipes import RECIPES

COMMAND = str(Path(sys.executable).parent / "deltarank")


@pytest.fixture
def heard():
    """Collect (title, share) of all that is told in the test."""
    told = []

    @contextmanager
    def hear(title):
        yield lambda share: told.append((title, share))

    with listening(hear):
        yield told


@pytest.fixture(scope="module")
def sample():
    # Too large for Newton's method, so that L-BFGS is what is heard of.
    generator = np.random.default_rng(0)
    X = generator.normal(size=(2000, 40))
    noisy = X @ generator.normal(size=(40, 8)) + 4 * generator.normal(size=(2000, 8))
    return X, (noisy > 3).astype(int)


def test_steps_inside_fill_in_their_part_of_the_outermost(heard):
    with progress("outer", 10) as done:
        done(2)
        done.each = 4
        for _ in range(2):
            with progress("inner", 100) as inner:
                inner(50)
                inner.each = 50
                with progress("innermost", 1) as deepest:
                    deepest(0.5)
    assert {title for title, _ in heard} == {"outer"}
    shares = [0.2, 0.4, 0.5, 0.6, 0.6, 0.8, 0.9, 1.0, 1.0]
    np.testing.assert_allclose([share for _, share in heard], shares)


def test_a_step_that_fails_leaves_nothing_behind(heard):
    def fail():
        with progress("first", 2) as done:
            done(1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with progress("second", 4) as done:
        done(1)
    assert heard == [("first", 0.5), ("second", 0.25)]


def test_another_thread_is_not_heard(heard):
    thread = threading.Thread(target=lambda: LogisticRanker().fit(np.eye(3), np.eye(3, dtype=int)))
    thread.start()
    thread.join()
    assert heard == []


@pytest.mark.parametrize("tune", [False, True], ids=["plain", "tuned"])
@pytest.mark.parametrize("name", RECIPES)
def test_every_ranker_tells_how_far_its_fit_is(heard, sample, name, tune):
    if name == "kernel" and not tune:
        pytest.skip("always tuned")
    recipe = RECIPES[name]
    settings = Settings(tune=tune, **({} if tune or recipe.parameter == "C" else {"rounds": 20}))
    with progress("fitting", 1.0) as done:
        done.each = 1.0
        ranker = make(recipe, settings)
        if tune and recipe.parameter == "rounds":
            ranker.set_params(rounds=[2, 5, 40], cv=3)
        if name == "label-tree" and not tune:
            ranker.set_params(leaf_size=2, n_trees=16)  # of many families of nodes
        ranker.fit(*sample)
    shares = np.array([share for _, share in heard])
    assert {title for title, _ in heard} == {"fitting"}
    assert len(np.unique(shares.round(6))) >= 4
    assert (np.diff(shares) >= -1e-9).all(), "time left would jump about"
    assert shares[-1] == pytest.approx(1.0)
    assert np.diff(shares).max() < 0.75


def test_the_share_of_an_l_bfgs_fit_is_about_that_of_its_passes(heard, sample):
    n_passes, at = [0], []

    @contextmanager
    def counting(title):
        yield lambda share: at.append((share, n_passes[0]))

    from deltarank.linear.rows.local import LocalRows

    evaluate = LocalRows.evaluate

    def counted(self, coef, offset, problems, precision):
        n_passes[0] += len(problems)
        return evaluate(self, coef, offset, problems, precision)

    with pytest.MonkeyPatch.context() as patch, listening(counting):
        patch.setattr(LocalRows, "evaluate", counted)
        LogisticRanker(C=10).fit(*sample)
    shares, work = np.array(at).T
    assert np.abs(shares - work / work[-1]).max() < 0.4


def test_a_fit_needs_no_terminal_library():
    code = (
        "import sys, numpy as np; sys.modules['rich'] = None;"
        "from deltarank import LogisticRanker;"
        "LogisticRanker().fit(np.eye(3), np.eye(3, dtype=int))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_sees_the_time_left_of_a_fit_and_a_pipe_does_not(tmp_path):
    rows = datasets.example_rows(400)
    lines = [",".join(rows[0])] + [",".join(f'"{cell}"' for cell in row.values()) for row in rows]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    command = [COMMAND, "fit", "rows.csv", "--ranker", "adaboost-mh", "--rounds", "2500", "-m", "m"]
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
    process = subprocess.Popen(command, cwd=tmp_path, stdout=writer, stderr=writer, env=environment)
    os.close(writer)
    seen = b""
    try:
        while chunk := os.read(reader, 4096):
            seen += chunk
    except OSError:  # the terminal is gone when the process ends
        pass
    assert process.wait(timeout=60) == 0
    times = re.findall(
        r"fitting adaboost-mh \S+ *(\d+)% \d:\d\d:\d\d \d:\d\d:\d\d left", seen.decode()
    )
    assert len(times) >= 2
    assert sorted(map(int, times)) == list(map(int, times))
    command[command.index("2500")] = "20"
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert piped.stdout == ""
    told = [line.split()[0] for line in piped.stderr.splitlines()]
    assert list(dict.fromkeys(told)) == ["column", "fitted", "wrote"]
