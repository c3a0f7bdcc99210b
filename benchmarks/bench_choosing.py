"""Every ranker on five data sets: rank loss of test rows against the time of the fit.

Usage: ``python benchmarks/bench_choosing.py``; it needs the real data sets in DELTARANK_DATA, and
writes what it measured to benchmarks/choosing.csv, from which docs/choosing.md draws its picture.
Rankers are those of ``deltarank fit``, with its defaults: parameters that it chooses are chosen by
cross-validation in training rows, which the time includes. The time of all cores hardly depends on
what else runs beside it. Rankers that want features on one scale get them so.
"""

import csv
import time
from pathlib import Path

import numpy as np

import real_data
from deltarank import rank_loss
from deltarank.recipes import RECIPES, Tuning
from measure import SCALE, row, run_sections, seconds, table, timed

SETS = ("emotions", "image", "scene", "yeast", "mediamill")
MEASURED = Path(__file__).with_name("choosing.csv")
COLUMNS = ("set", "ranker", "seconds", "cpu_seconds", "rank_loss")
# Rows of the fit that compiles before anything is timed.
FEW_ROWS = 200


def made(name):
    """Return a ranker as the command makes it, a staged one with its default number of rounds."""
    recipe, tuning = RECIPES[name], Tuning()
    tuned = recipe.tuned_by_default and recipe.parameter == "C"
    return recipe.tuned("rank", tuning) if tuned else recipe.plain("rank", None, tuning)


def measured(ranker, name):
    """Return the seconds of a fit, compiled before, those of all cores, and the rank loss."""
    data = real_data.load(name)
    if RECIPES[ranker].scale:
        data = real_data.standardized(data)
    made(ranker).fit(data.X[:FEW_ROWS], data.Y[:FEW_ROWS])
    began = time.process_time()
    spent, fitted = timed(lambda: made(ranker).fit(data.X, data.Y))
    of_cores = time.process_time() - began
    return (
        spent,
        of_cores,
        float(np.mean(rank_loss(data.Y_test, fitted.decision_function(data.X_test)))),
    )


def sets():
    """Fit every ranker to every set."""
    found = []
    for name in SETS:
        head = ["ranker", "time", "time of all cores", "rank loss"]
        table(f"{name}: rankers as `deltarank fit` makes them", head)
        for ranker in RECIPES:
            spent, of_cores, loss = measured(ranker, name)
            found.append((name, ranker, f"{spent:.3g}", f"{of_cores:.3g}", f"{loss:.4f}"))
            row(ranker, seconds(spent), seconds(of_cores), f"{loss:.4f}")
    if SCALE == 1:
        with MEASURED.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *found])


if __name__ == "__main__":
    run_sections(sets)
