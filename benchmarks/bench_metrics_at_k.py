"""Each decision rule on every metric at k, on real data, and the time that rules take.

Usage: ``python benchmarks/bench_metrics_at_k.py [quality | sets | speed]``. One `LogisticRanker`
with ``weight="uniform"`` estimates chances of the test rows, its C chosen by precision at 5 in
three folds of up to 5,000 training rows; rules that need more than chances find it on training
rows, held out of three fits.
"""

import time
from functools import partial

import numpy as np
from scipy import sparse

from deltarank import LogisticRanker, LogisticRankerCV, MetricRanker
from deltarank.base.selection import Labelled
from deltarank.base.targets import read_targets
from deltarank.core.labels import label_sets
from deltarank.core.statistics import paired_bootstrap
from deltarank.decisions.batch import decide_batch
from deltarank.decisions.conformal import RISKS, safe_threshold
from deltarank.decisions.f_measure import best_f_sets
from deltarank.decisions.frank_wolfe import HeldOut, frank_wolfe
from deltarank.decisions.kernels.utilities import COVERAGE, F1
from deltarank.decisions.metrics import DECISIONS, Known
from deltarank.decisions.top import first_labels, mark_within_budget
from deltarank.metrics import label_propensities
from deltarank.wrappers.held_out import held_out
from measure import row, run_sections, scaled, seconds, table, timed
from real_data import load, standardized, unit_rows

K = 5
NEVER = -1e30
# How features are scaled: as in the other benchmarks.
SETS = {"mediamill": standardized, "delicious": lambda data: data, "eurlex-4k": unit_rows}
SMALL_SETS = dict.fromkeys(("emotions", "scene", "yeast", "mediamill"), standardized)
CS = (0.1, 1.0, 10.0, 100.0)
CLOSED = ("precision", "propensity-precision", "macro-recall", "balanced-accuracy")


def ratio(part, whole):
    """Divide, 0 where there is nothing to divide by."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


class Outcome:
    """Where a rule's labels hit in the test rows, to be summed up with any weights of rows."""

    def __init__(self, chosen, Y, propensities):
        cells = np.arange(Y.shape[0]).repeat(K), chosen.ravel()
        self.chosen = sparse.csr_array((np.ones(chosen.size), cells), shape=Y.shape)
        self.hits = sparse.csr_array(self.chosen.multiply(Y))
        self.Y, self.worth = Y, 1 / propensities
        ideal = sparse.csr_array(Y.multiply(self.worth[None]))
        rows = np.split(ideal.data, ideal.indptr[1:-1])
        self.attainable = np.array([np.sort(values)[-K:].sum() for values in rows])

    def measure(self, metric, weights):
        """Return the metric of the rows, each as often as its weight."""
        hit, chosen, relevant = weights @ self.hits, weights @ self.chosen, weights @ self.Y
        n_rows = weights.sum()
        return {
            "precision": lambda: hit.sum() / (K * n_rows),
            "propensity-precision": lambda: hit @ self.worth / (weights @ self.attainable),
            "macro-recall": lambda: ratio(hit, relevant).mean(),
            "balanced-accuracy": lambda: (
                (1 + ratio(hit, relevant) - ratio(chosen - hit, n_rows - relevant)).mean() / 2
            ),
            "macro-f1": lambda: ratio(2 * hit, chosen + relevant).mean(),
            "coverage": lambda: (hit > 0).mean(),
        }[metric]()


def best_penalty(data):
    """Return the C of best precision, on some of the training rows."""
    rows = np.random.default_rng(0).permutation(data.X.shape[0])[:5000]
    search = LogisticRankerCV(
        Cs=CS, weight="uniform", scoring="precision_at_5", cv=3, random_state=0
    )
    return search.fit(data.X[rows], data.Y[rows]).C_


def decided(data, C):
    """Return the labels chosen for the test rows by each rule, and the propensities."""
    ranker = LogisticRanker(C=C, weight="uniform")
    targets = read_targets(data.Y)
    propensities = label_propensities(data.Y)
    held = np.empty(data.Y.shape, np.float32)
    ask = LogisticRanker.marginal_weights
    held_out(ranker, Labelled(data.X, data.Y, targets, None), 3, 0, ask, held)
    chances = ranker.fit(data.X, data.Y).marginal_weights(data.X_test)
    shares = np.asarray(data.Y.sum(axis=0)).ravel() / data.Y.shape[0]
    never = np.where(shares > 0, 0.0, NEVER)
    rules = {metric: DECISIONS[metric].rule(Known(shares, propensities)) for metric in CLOSED}
    weights = np.full(len(held), 1 / len(held))
    rules["macro-f1"] = frank_wolfe(HeldOut(held, targets.labels, weights), F1, K, never=NEVER).rule
    scores = {name: slope * chances + offset + never for name, (slope, offset) in rules.items()}
    together = {"macro-f1, batch": F1, "coverage": COVERAGE}
    batches = {name: decide_batch(chances, kind, K).labels for name, kind in together.items()}
    rows = {name: first_labels(values, K) for name, values in scores.items()}
    return rows | batches, propensities


def quality():
    for name, prepare in SETS.items():
        data = prepare(load(name))
        C = best_penalty(data)
        chosen, propensities = decided(data, C)
        Y = sparse.csr_array(data.Y_test).astype(np.float64)
        outcomes = {rule: Outcome(labels, Y, propensities) for rule, labels in chosen.items()}
        head = ["metric at 5", *outcomes, "own rule less the best other"]
        table(f"{name}, C = {C:g}: rules across, metrics down, percent", head)
        for metric in (*CLOSED, "macro-f1", "coverage"):
            compare(metric, outcomes)


def compare(metric, outcomes):
    """Print a metric of every rule, and the interval of its own rule less the best other."""
    values = {
        rule: outcome.measure(metric, np.ones(outcome.Y.shape[0]))
        for rule, outcome in outcomes.items()
    }
    others = [rule for rule in values if rule.split(",")[0] != metric]
    best = max(others, key=values.get)
    low, high = 100 * np.array(interval(metric, outcomes[metric], outcomes[best]))
    gain = 100 * (values[metric] - values[best])
    marks = {rule: "**" if rule == metric else "" for rule in values}
    cells = [f"{marks[rule]}{100 * value:.2f}{marks[rule]}" for rule, value in values.items()]
    row(metric, *cells, f"{gain:+.2f} ({low:+.2f} to {high:+.2f}), {best}")


def interval(metric, own, other):
    """Return the ends of a paired bootstrap interval of 95 %."""
    n_rows, n_labels = own.Y.shape
    generator = np.random.default_rng(0)
    if metric == "coverage":
        # Over labels: to draw rows again leaves rows out, and with them labels that were found.
        found = (own.hits.sum(axis=0) > 0) * 1.0 - (other.hits.sum(axis=0) > 0)
        drawn = generator.integers(0, n_labels, (scaled(500, 20), n_labels))
        return np.quantile(found[drawn].mean(axis=1), [0.025, 0.975])
    differences = []
    for _ in range(scaled(500, 20)):
        weights = np.bincount(generator.integers(0, n_rows, n_rows), minlength=n_rows) * 1.0
        differences.append(own.measure(metric, weights) - other.measure(metric, weights))
    return np.quantile(differences, [0.025, 0.975])


def sets():
    """Print F1 of each row's best set, labels taken as independent or with their number."""
    head = ["data", "C", "independent", "joint", "difference", "targets", "fits"]
    table("F1 of the sets of test rows, percent", head)
    for name, prepare in SMALL_SETS.items():
        data = prepare(load(name))
        C, Y = best_penalty(data), data.Y_test.toarray()
        values, fits = [], []
        for joint in (False, True):
            ranker = MetricRanker(
                LogisticRanker(C=C, weight="uniform"), metric="f-beta", k=None, joint=joint
            )
            spent, fitted = timed(partial(ranker.fit, data.X, data.Y))
            marks = fitted.predict(data.X_test).toarray()
            total = Y.sum(axis=1) + marks.sum(axis=1)
            values.append(np.where(total > 0, ratio(2 * (Y * marks).sum(axis=1), total), 1.0))
            fits.append(spent)
        apart, together = values
        gain = paired_bootstrap(100 * together, 100 * apart, n_draws=scaled(2000, 20))
        row(
            name, f"{C:g}", f"{100 * apart.mean():.2f}", f"{100 * together.mean():.2f}",
            f"{gain.mean:+.2f} ({gain.low:+.2f} to {gain.high:+.2f})",
            len(fitted.pair_labels_) + 1, ", ".join(map(seconds, fits)),
        )  # fmt: skip


def speed():
    n_rows, n_labels = scaled(15_000, 200), scaled(4_000, 50)
    generator = np.random.default_rng(0)
    chances = generator.random((n_rows, n_labels), np.float32)
    np.power(chances, 2000 / n_labels * 100, out=chances)  # a long tail, some five labels a row
    chances *= np.float32(min(1.0, 5 / float(chances.sum(axis=1).mean())))
    Y = sparse.csr_array(generator.random((n_rows, n_labels), np.float32) < chances)
    labels, weights = label_sets(Y.astype(np.int8)), np.full(n_rows, 1 / n_rows)
    rows = HeldOut(chances, labels, weights)
    tasks = {
        "first 5 of slope times chance plus offset": lambda: first_labels(2 * chances - 1, K),
        "budget of 20,000 labels": lambda: mark_within_budget(chances, K, 20_000),
        "macro F1, Frank-Wolfe": lambda: frank_wolfe(rows, F1, K, never=NEVER),
        "macro F1, batch": lambda: decide_batch(chances, F1, K),
        "coverage, batch": lambda: decide_batch(chances, COVERAGE, K),
        "F1 of each row's set": lambda: best_f_sets(chances, 1.0, n_labels),
        "conformal threshold": lambda: safe_threshold(chances, labels, RISKS["missed-share"], 0.1),
    }
    head = ["decision", "time", "of processors"]
    table(f"{n_rows:,} x {n_labels:,} chances, float32", head)
    for name, task in tasks.items():
        task()  # compile
        began = time.process_time()
        task()
        worked = time.process_time() - began
        row(name, seconds(timed(task, 2)[0]), seconds(worked))


if __name__ == "__main__":
    run_sections(quality, sets, speed)
