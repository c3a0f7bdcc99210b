"""What a fit will take, and a shorter way to C where a search would take too long."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.cli.inputs import note
from deltarank.cli.options import RankerName
from deltarank.cli.training import Settings, is_tuned, make
from deltarank.core import memory
from deltarank.linear.logistic_cv import DEFAULT_CS
from deltarank.linear.rows.costs import SHARE_OF_VALIDATION, fit_seconds
from deltarank.linear.rows.numpy_place import MatrixPlace
from deltarank.rankers import LogisticRanker
from deltarank.recipes import BALANCES, Recipe, Tuning

# Seconds of one core that a search may take unless it was asked for.
LONGEST_SEARCH = 240
# From this many seconds of one core on, the command says what a fit will take, measured on this
# many labels.
WORTH_SAYING, SAMPLED_LABELS = 10, 64
# Labels beyond which a tree is fitted unless another ranker was asked for.
MOST_WITHOUT_TREE = 5_000
# Where coefficients of sparse rows would take more bytes, those below this over the mean length of
# a row are left out. On questions to librarians, 569 and 4,247 tags, that kept 2 to 22 % of the
# coefficients and moved no measure on held-out rows by more than .002.
WORTH_PRUNING, PRUNE = 2**24, 0.05
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
    prune = chosen_prune(settings, X.shape[1], Y.shape[1], lambda: mean_length_of(X))
    n_stored = X.nnz if sparse.issparse(X) else None
    fit = fit_seconds(X.shape, n_stored, Y.shape[1], settings.C or np.median(DEFAULT_CS))
    if not is_tuned(recipe, settings):
        _say_what_it_takes(fit, 1.0, settings.C, prune, X, Y)
        return make(recipe, settings).set_params(prune=prune)
    # Two more balances than one, and neighbours of the best.
    n_tried = len(DEFAULT_CS) + len(BALANCES) + 1
    fits = 1 + SHARE_OF_VALIDATION * n_tried * (Tuning().folds - 1)
    if settings.tune or fits * fit <= LONGEST_SEARCH:
        _say_what_it_takes(fits * fit, fits, max(DEFAULT_CS), prune, X, Y)
        return make(recipe, settings).set_params(prune=prune)
    rows, labels = part(Y, settings.seed)
    chosen = chosen_on_part(recipe, settings, X[rows], Y[rows][:, labels]).set_params(prune=prune)
    _say_what_it_takes(fit, 1.0, chosen.C, prune, X, Y)
    return chosen


def part(Y: Any, seed: int) -> tuple[Any, Any]:
    """Return some rows and the most frequent labels, each in order: what C is chosen on."""
    rows = np.random.default_rng(seed).permutation(Y.shape[0])[:MOST_ROWS]
    frequencies = np.asarray(Y.sum(axis=0)).reshape(-1)
    labels = np.argsort(-frequencies, kind="stable")[:MOST_LABELS]
    return np.sort(rows), np.sort(labels)


def chosen_on_part(recipe: Recipe, settings: Settings, X: Any, Y: Any) -> Any:
    """Return the ranker for all of the data whose C was chosen on a part."""
    n_rows, n_labels = Y.shape
    note(
        f"C is chosen on {n_rows} rows and the {n_labels} most frequent labels (--tune takes all, "
        "which takes long; --C 1 chooses nothing)"
    )
    searched = make(recipe, settings).fit(X, Y)
    chosen = recipe.plain(settings.weight, searched.C_, settings.tuning())
    return chosen.set_params(balance=searched.balance_)


def mean_length_of(X: Any) -> float | None:
    """Return the length of a row in the quadratic mean, None where rows are dense."""
    return float(np.linalg.norm(X.data / np.sqrt(X.shape[0]))) if sparse.issparse(X) else None


def chosen_prune(
    settings: Settings, n_features: int, n_labels: int, mean_length: Callable[[], float | None]
) -> float | None:
    """Return the size below which coefficients are left out, and say so where nobody chose it."""
    if settings.prune is not None:
        return settings.prune or None
    n_bytes = n_labels * n_features * np.dtype(np.float64).itemsize
    if n_bytes < WORTH_PRUNING:
        return None
    length = mean_length()
    if length is None:
        return None
    prune = float(f"{PRUNE / length:.2g}") if length > 0 else PRUNE
    note(
        f"coefficients below {prune:g} are left out, as all would take {memory.in_words(n_bytes)} "
        "(deltarank fit --prune 0 keeps them)"
    )
    return prune


def note_end_of_grid(ranker: Any) -> None:
    """Say if the best C is the largest or the smallest that was tried."""
    if not hasattr(ranker, "cv_results_") or not hasattr(ranker, "C_"):
        return
    Cs = np.unique(ranker.cv_results_["param_C"])
    for end, value, beyond in (("largest", Cs[-1], 10.0), ("smallest", Cs[0], 0.1)):
        if len(Cs) > 1 and value == ranker.C_:
            further = f"deltarank fit --C {value * beyond:g}"
            note(f"C = {value:g} is the {end} value tried; a further one may be better ({further})")


def _say_what_it_takes(
    core_seconds: float, fits: float, C: float | None, prune: float | None, X: Any, Y: Any
) -> None:
    """Say what this many fits will take, if it is much by what fits usually take."""
    if core_seconds < WORTH_SAYING:
        return
    (n_rows, n_features), n_labels = X.shape, Y.shape[1]
    seconds, model = _measured(X, Y, C or LogisticRanker().C, prune)
    working = min(MatrixPlace.bytes_per_block, memory.budget())
    held = memory.in_use() + 2 * model + working  # coefficients are held twice while joined
    if fits > 1:  # a search holds the scores of all rows by all labels, at each C
        held += min(8 * len(DEFAULT_CS) * n_rows * n_labels, memory.budget())
    note(
        f"{n_rows} rows, {n_features} features, {n_labels} labels: this will take about "
        f"{_in_words(fits * seconds)} and {memory.in_words(held)} of memory"
    )


def _measured(X: Any, Y: Any, C: float, prune: float | None) -> tuple[float, float]:
    """Return the seconds and the bytes of a fit, by one of some labels, frequent and rare ones."""
    by_frequency = np.argsort(-np.asarray(Y.sum(axis=0)).reshape(-1), kind="stable")
    positions = np.linspace(0, len(by_frequency) - 1, min(SAMPLED_LABELS, len(by_frequency)))
    sample = np.sort(by_frequency[positions.astype(int)])
    # A row without any of these labels counts too, as it does in the fit of all labels.
    ranker = LogisticRanker(C=C, weight=_alike, prune=prune)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LogisticRanker(C=C, weight=_alike, max_iter=1).fit(X, Y[:, sample])  # compiled and loaded
        began = time.perf_counter()
        ranker.fit(X, Y[:, sample])
    more = len(by_frequency) / len(sample)
    return more * (time.perf_counter() - began), _bytes_of(ranker.coef_, more)


def _bytes_of(coef: Any, more: float = 1.0) -> float:
    """Return what the coefficients of this many times the labels take, dense or sparse."""
    if sparse.issparse(coef):
        return more * (coef.data.nbytes + coef.indices.nbytes) + coef.indptr.nbytes
    return more * coef.nbytes


def _alike(Y: Any) -> Any:
    return np.ones(Y.shape[0])


def _in_words(seconds: float) -> str:
    """Return a time for people.

    Examples
    --------
    >>> _in_words(42.3), _in_words(400), _in_words(10_000)
    ('42 seconds', '7 minutes', '2.8 hours')
    """
    if seconds < 100:
        return f"{max(seconds, 1):.0f} seconds"
    minutes = seconds / 60
    return f"{minutes / 60:.1f} hours" if minutes > 90 else f"{minutes:.0f} minutes"
