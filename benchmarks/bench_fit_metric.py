"""What ``deltarank fit --metric M`` gains by M on held-out rows over the command's default.

Usage: ``python benchmarks/bench_fit_metric.py [gains]``. Every model is what the command fits:
features scaled, C (and for the default the balance) chosen by cross-validation on training rows, by
the metric or by rank loss, and for macro F1 a rule found on rows held out of fits. Intervals are
paired, by bootstraps of 95 % over test rows.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from bench_metrics_at_k import Outcome
from bench_metrics_at_k import interval as interval_of_means
from bench_text import features
from deltarank.cli.training import Settings, find_recipe, fit_prepared, prepare
from deltarank.core.statistics import paired_bootstrap
from deltarank.datasets import Data
from deltarank.decisions.top import first_labels
from deltarank.metrics import ndcg_at_k, precision_at_k
from measure import row, run_sections, scaled, seconds, table
from real_data import DataSet, load

METRICS = ("ndcg@5", "precision@3", "macro-f1@5")


class Ranked(NamedTuple):
    """Scores of the test rows by a model of the command, what it chose, and the seconds it took."""

    scores: object
    chosen: str
    spent: float


def librarian():
    _, X, Y, X_test, Y_test = features()
    return DataSet(X, Y, X_test, Y_test)


SETS = {"yeast": load, "mediamill": load, "delicious": load, "librarian": lambda name: librarian()}


def ranked(data, metric=None, weight="rank"):
    """Fit as the command does, and score the test rows."""
    settings = Settings(weight=weight).made_for(metric)
    recipe = find_recipe("logistic", settings)
    train = Data(data.X, data.Y)
    preparation = prepare(train, recipe.scale, 0)
    model, spent = fit_prepared(train, preparation, "logistic", recipe, settings)
    inner = getattr(model.ranker, "ranker_", model.ranker)
    chosen = f"C = {getattr(inner, 'C_', None) or inner.C:g}"
    if getattr(inner, "balance_", 0):
        chosen += f", balance {inner.balance_:g}"
    return Ranked(model.all_scores(preparation.transform(data.X_test)), chosen, spent)


def compared(metric, Y, own, other):
    """Return the metric of both, and the ends of the interval of the difference."""
    if metric == "macro-f1@5":
        ours, theirs = (Outcome(first_labels(s, 5), Y, np.ones(Y.shape[1])) for s in (own, other))
        even = np.ones(Y.shape[0])
        values = ours.measure("macro-f1", even), theirs.measure("macro-f1", even)
        return (*values, *interval_of_means("macro-f1", ours, theirs))
    function, k = {"ndcg@5": (ndcg_at_k, 5), "precision@3": (precision_at_k, 3)}[metric]
    ours, theirs = (function(Y, s, k=k, per_instance=True) for s in (own, other))
    _, low, high = paired_bootstrap(ours, theirs, n_draws=scaled(2000, 20))
    return ours.mean(), theirs.mean(), low, high


def gains():
    """Print the metric of both on test rows, and the interval of the difference."""
    head = ["data", "metric", "default", "--metric", "gain, points", "chosen: default, --metric",
            "fits"]  # fmt: skip
    table("Held-out rows, percent", head)
    for name, read in SETS.items():
        data = read(name)
        Y = sparse.csr_array(data.Y_test).astype(np.float64)
        default = ranked(data)
        for metric in METRICS:
            own = ranked(data, metric)
            value, before, low, high = 100 * np.array(
                compared(metric, Y, own.scores, default.scores)
            )
            row(
                name, metric, f"{before:.2f}", f"{value:.2f}",
                f"{value - before:+.2f} ({low:+.2f} to {high:+.2f})",
                f"{default.chosen}; {own.chosen}",
                f"{seconds(default.spent)}, {seconds(own.spent)}",
            )  # fmt: skip


if __name__ == "__main__":
    run_sections(gains)
