"""How long a fit will take, and a shorter way to C where a search would take too long."""

from typing import Any

import numpy as np
from scipy import sparse

from deltarank.cli.inputs import note
from deltarank.cli.options import RankerName
from deltarank.cli.training import Settings, is_tuned, make
from deltarank.core.threads import n_threads
from deltarank.linear.logistic_cv import DEFAULT_CS
from deltarank.linear.rows.costs import SHARE_OF_VALIDATION, fit_seconds
from deltarank.recipes import BALANCES, Recipe, Tuning

# Seconds of one core that a search may take unless it was asked for.
LONGEST_SEARCH = 900
# Seconds from which on it is said how long a fit will take.
WORTH_SAYING = 60
# Labels beyond which a tree is fitted unless another ranker was asked for.
MOST_WITHOUT_TREE = 5_000
# What a shorter search looks at.
MOST_ROWS, MOST_LABELS = 10_000, 1_000


def default_ranker(n_labels: int) -> RankerName:
    """Return the ranker to fit where none was asked for, and say so where it is a tree."""
    if n_labels <= MOST_WITHOUT_TREE:
        return "logistic"
    note(
        f"fitting a label tree, as there are {n_labels} labels: one regression per label would "
        "take long (--ranker logistic does that)"
    )
    return "label-tree"


def planned(name: str, recipe: Recipe, settings: Settings, X: Any, Y: Any) -> Any:
    """Return what is to be fitted; C is chosen on a part of the data where all would take long.

    What is decided depends on the data alone, so that the same file gives the same model anywhere.
    """
    if name != "logistic":
        return make(recipe, settings)
    n_stored = X.nnz if sparse.issparse(X) else None
    fit = fit_seconds(X.shape, n_stored, Y.shape[1], settings.C or np.median(DEFAULT_CS))
    if not is_tuned(recipe, settings):
        _say(fit)
        return make(recipe, settings)
    folds = Tuning().folds
    # Two more balances than one, and neighbours of the best.
    n_tried = len(DEFAULT_CS) + len(BALANCES) + 1
    search = fit * (1 + SHARE_OF_VALIDATION * n_tried * (folds - 1))
    if settings.tune or search <= LONGEST_SEARCH:
        _say(search)
        return make(recipe, settings)
    rows, labels = _part(Y, settings.seed)
    note(
        f"choosing C on all rows and labels would take about {_in_words(search)}: it is chosen on "
        f"{len(rows)} rows and the {len(labels)} most frequent labels (--tune takes all)"
    )
    found = make(recipe, settings).fit(X[rows], Y[rows][:, labels])
    _say(fit)
    chosen = recipe.plain(settings.weight, found.C_, Tuning(seed=settings.seed))
    return chosen.set_params(balance=found.balance_)


def note_end_of_grid(ranker: Any) -> None:
    """Say if the best C is the largest or the smallest that was tried."""
    if not hasattr(ranker, "cv_results_") or not hasattr(ranker, "C_"):
        return
    Cs = ranker.cv_results_["param_C"]
    for end, value, beyond in (("largest", Cs[-1], 10.0), ("smallest", Cs[0], 0.1)):
        if len(Cs) > 1 and value == ranker.C_:
            note(f"C = {value:g} is the {end} value tried; --C {value * beyond:g} may be better")


def _part(Y: Any, seed: int) -> tuple[Any, Any]:
    """Return some rows and the most frequent labels, each in order."""
    rows = np.random.default_rng(seed).permutation(Y.shape[0])[:MOST_ROWS]
    frequencies = np.asarray(Y.sum(axis=0)).reshape(-1)
    labels = np.argsort(-frequencies, kind="stable")[:MOST_LABELS]
    return np.sort(rows), np.sort(labels)


def _say(core_seconds: float) -> None:
    if core_seconds / n_threads() > WORTH_SAYING:
        note(f"this will take about {_in_words(core_seconds)}")


def _in_words(core_seconds: float) -> str:
    """Return a time on all threads for people."""
    minutes = core_seconds / n_threads() / 60
    return f"{minutes / 60:.1f} hours" if minutes > 90 else f"{max(minutes, 1):.0f} minutes"
