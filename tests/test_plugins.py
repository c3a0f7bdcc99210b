"""Modules of one's own that commands import, and losses of one's own over pairs of labels."""

import io
import os
import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from deltarank import PairwiseRanker, load
from deltarank.cli import main, plugins
from deltarank.core import plugins as announced
from deltarank.core.losses import LOSSES
from deltarank.metrics import pairwise_loss
from deltarank.metrics.kernels.pairwise import PAIRWISE
from deltarank.metrics.pairwise import plain_pairs
from deltarank.paper.experiments import table2
from deltarank.paper.experiments.runner import make_row

MINE = textwrap.dedent(
    """
    import numpy as np
    from deltarank import LogisticRanker
    from deltarank.core.losses import LOSSES, Loss
    from deltarank.core.weights import WEIGHTS
    from deltarank.datasets.catalogue import CATALOGUE, DataSet, File
    from deltarank.recipes import RECIPES
    from deltarank.storage.registry import STORED

    class SmoothRanker(LogisticRanker):
        def __init__(self, C=1.0, weight="rank"):
            super().__init__(C=C, weight=weight, loss="smooth")

    def smooth(margin):
        root = np.sqrt(1 + np.square(margin))
        return root - margin, margin / root - 1

    WEIGHTS["root"] = lambda sizes, n_labels: 1 / np.sqrt(sizes)
    LOSSES["smooth"] = Loss(
        smooth,
        lambda t: (1 + np.square(t)) ** -1.5,
        lambda eta: (2 * eta - 1) / (2 * np.sqrt(eta * (1 - eta))),
        lambda t: (1 + t / np.sqrt(1 + np.square(t))) / 2,
        None,
        None,
    )
    RECIPES["smooth"] = RECIPES["logistic"]._replace(
        plain=lambda weight, C, _: SmoothRanker(C=C or 1.0, weight=weight), tuned_by_default=False
    )
    STORED["SmoothRanker"] = STORED["LogisticRanker"].__class__(
        __name__, STORED["LogisticRanker"].arrays, optional=("prune_effect_",),
        maybe_sparse={"coef_": "csc"},
    )
    CATALOGUE["mine"] = DataSet(
        "mine", n_train=60, n_test=40, n_features=3, n_labels=3,
        parts=(File("mine/train.svm"), File("mine/test.svm")), format="libsvm", source="a test",
    )
    """
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with plugins; what they enter is taken out again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(plugins, "_OWN", {})
    monkeypatch.setenv(announced.VARIABLE, "")
    before = {name: dict(table) for name, table in plugins._tables().items()}
    modules = set(sys.modules)
    (tmp_path / "my_parts.py").write_text(MINE)
    yield tmp_path
    for name, table in plugins._tables().items():
        table.clear()
        table.update(before[name])
    for name in set(sys.modules) - modules:
        if name.startswith("my_"):
            del sys.modules[name]


@pytest.fixture
def run(folder, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["deltarank", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code or 0
        return code, *capsys.readouterr()

    return run


def write_set(folder):
    generator = np.random.default_rng(0)
    (folder / "sets" / "mine").mkdir(parents=True)
    for name, n_rows in (("train", 60), ("test", 40)):
        X = generator.normal(size=(n_rows, 3))
        Y = X + generator.logistic(size=X.shape) > 0
        lines = [
            f"{','.join(map(str, np.flatnonzero(y)))} "
            + " ".join(f"{j}:{v:.4f}" for j, v in enumerate(x, start=1))
            for x, y in zip(X, Y, strict=True)
        ]
        (folder / "sets" / "mine" / f"{name}.svm").write_text("\n".join(lines) + "\n")


def test_own_weight_loss_ranker_and_data_set_in_every_command(run, folder, monkeypatch):
    write_set(folder)
    monkeypatch.setenv("DELTARANK_DATA", str(folder / "sets"))
    own = ("--plugin", "my_parts")
    fitted = run("fit", "mine", *own, "--ranker", "smooth", "--weight", "root", "-m", "m.delta")
    assert fitted[0] == 0, fitted[2]
    assert "fitted SmoothRanker to 60 rows, 3 features and 3 labels" in fitted[2]
    model = load("m.delta")
    assert (type(model).__name__, model.weight, model.loss) == ("SmoothRanker", "root", "smooth")
    for command in (
        ("rank", "m.delta", "mine"),
        ("evaluate", "m.delta", "mine", "--draws", "10"),
        ("explain", "m.delta", "mine"),
        ("compare", "mine", "--rankers", "smooth,logistic", "--no-tune"),
        ("datasets", "show", "mine"),
        ("reproduce", "table1", "--datasets", "mine", "--out", "out"),
    ):
        code, out, err = run(*command, *own)
        assert code == 0, err
        assert out
    assert "mine" in (folder / "out" / "table1.csv").read_text()
    assert "--datasets mine" in (folder / "out" / "report.html").read_text()


def test_without_the_plugin_its_names_are_unknown(run, folder):
    code, _, err = run("fit", "x.csv", "--ranker", "smooth", "-m", "m.delta")
    assert code == 2
    assert "'smooth' is not one of 'logistic'" in err.replace("\n", " ")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("my_absent", None, "--plugin my_absent: there is no module of this name"),
        ("my_raising", "x = 1\n1 / 0\n", "my_raising.py, line 2): ZeroDivisionError"),
        ("my_broken", "def\n", "my_broken.py, line 1): SyntaxError"),
        ("my_exit", "raise SystemExit(3)\n", "my_exit.py, line 1): SystemExit: 3"),
        ("my_needy", "import my_other_library\n", "needs my_other_library, which is not"),
        ("my_empty", "x = 1\n", "registers nothing; when it is imported it should"),
    ],
)
def test_a_module_that_is_no_plugin_is_named(run, folder, name, text, words):
    if text is not None:
        (folder / f"{name}.py").write_text(text)
    code, out, err = run("datasets", "--plugin", name)
    assert (code, out) == (1, "")
    assert words in err
    assert "Traceback" not in err


def test_processes_that_a_command_starts_import_plugins_too(run, folder):
    run("datasets", "--plugin", "my_parts")
    assert os.environ[announced.VARIABLE] == "my_parts"
    del sys.modules["my_parts"], LOSSES["smooth"]  # as in a new process
    assert make_row(lambda: {"known": "smooth" in LOSSES}, {})["known"]


def test_a_data_set_that_is_named_must_be_here_and_known(run, folder, monkeypatch):
    monkeypatch.setenv("DELTARANK_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    code, _, err = run("reproduce", "table2", "--datasets", "mine", "--plugin", "my_parts")
    assert code == 1
    assert "--datasets: the files of mine are not here" in err
    assert "unknown data set 'yaest'" in run("reproduce", "table2", "--datasets", "yaest")[2]


class TestTable2OfOwnData:
    def rows(self, name):
        losses = np.linspace(0, 0.4, 41)
        return [
            {"data_set": name, "features": "raw", "split": 0, "algorithm": algorithm,
             "loss": 0.2, "row_losses": losses.tolist(), "chosen": 10, "Cs": [1, 10, 100],
             "rounds": [1, 10, 100]}
            for algorithm in ("WBR-LR", "AB.MR")
        ]  # fmt: skip

    def test_the_note_is_of_what_was_run(self, run, folder):
        run("datasets", "--plugin", "my_parts")
        assert "mediamill" not in table2.note(self.rows("mine"))
        assert "image" not in table2.note(self.rows("mine"))
        assert "5000 on mediamill" in table2.note(self.rows("mediamill"))
        assert "image, without one" in table2.note(self.rows("image"))
        assert table2.findings(self.rows("mine")) == []
        assert table2.tables(self.rows("mine"))[0].rows[0]["WBR-LR"] == "0.2000"

    def test_the_figure_shows_each_loss_with_its_interval(self, folder):
        pytest.importorskip("matplotlib")
        figure = table2.figures(self.rows("emotions"))["table2"]
        (panel,) = [axes for axes in figure.axes if axes.get_title(loc="left")]
        ends = [line.get_xdata() for line in panel.lines if len(line.get_xdata()) == 2]
        half = 1.96 * np.std(np.linspace(0, 0.4, 41)) / np.sqrt(41)
        assert_allclose(ends, [[0.2 - half, 0.2 + half]] * 2, atol=0.004)
        printed = [line.get_xdata()[0] for line in panel.lines if line.get_marker() == "|"]
        assert sorted(map(float, printed)) == [0.1657, 0.1703]


MORE_LOSSES = ("exponential", "squared_hinge")


class TestOwnPairLosses:
    @pytest.mark.parametrize(
        "name",
        ["logistic", "squared", *(pytest.param(n, marks=pytest.mark.slow) for n in MORE_LOSSES)],
    )
    def test_values_at_all_pairs_are_those_of_the_compiled_sums(self, name):
        generator = np.random.default_rng(1)
        scores, weights = generator.normal(size=(6, 5)), generator.random((6, 2)) + 0.5
        labels = np.array([0, 2, 3, 3, 8, 9, 11]), np.array([0, 3, 2, 0, 1, 2, 3, 4, 1, 0, 4])
        found = []
        for kernel in (plain_pairs(LOSSES[name]), PAIRWISE[name]):
            residuals, losses = scores.copy(), np.empty(6)
            kernel(residuals, np.arange(6), weights, labels, losses)
            found.append((residuals, losses))
        assert_allclose(found[0][0], found[1][0], atol=1e-12)
        assert_allclose(found[0][1], found[1][1], atol=1e-12)

    def test_a_registered_loss_is_minimised_over_pairs(self, run, folder):
        run("datasets", "--plugin", "my_parts")
        generator = np.random.default_rng(2)
        X = generator.normal(size=(50, 2))
        Y = (X @ generator.normal(size=(2, 4)) + generator.normal(size=(50, 4)) > 0).astype(int)
        Y = Y[(Y.sum(axis=1) % 4) > 0]
        X = X[: len(Y)]
        ranker = PairwiseRanker(loss="smooth", tol=1e-10, max_iter=3000).fit(X, Y)

        def mean_of_pairs(scores):
            margins = scores[:, :, None] - scores[:, None, :]
            pairs = Y[:, :, None] > Y[:, None, :]
            each = (pairs * (np.sqrt(1 + margins**2) - margins)).sum(axis=(1, 2))
            return each / pairs.sum(axis=(1, 2))

        def objective(point):
            theta = point.reshape(4, 3)
            scores = X @ theta[:, :2].T + theta[:, 2]
            return mean_of_pairs(scores).sum() + np.square(theta[:, :2]).sum() / 2

        peer = minimize(objective, np.zeros(12), method="BFGS", tol=1e-9)
        assert_allclose(ranker.objective_, peer.fun, rtol=1e-6)
        coefficients = peer.x.reshape(4, 3)
        apart = coefficients[:, :2] - ranker.coef_
        assert_allclose(apart, 0, atol=1e-3)
        scores = ranker.decision_function(X)
        own = pairwise_loss(Y, scores, "smooth", per_instance=True)
        assert_allclose(own, mean_of_pairs(scores), rtol=1e-9)

    def test_a_loss_without_a_minimiser_is_refused(self):
        with pytest.raises(ValueError, match="unknown loss 'linear'"):
            PairwiseRanker(loss="linear").fit([[0.0], [1.0]], [[1, 0], [0, 1]])
