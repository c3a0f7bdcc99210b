"""Regret bounds: how small the rank regret must be when the surrogate regret is small."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.choices import choose
from deltarank.core.losses import LOSSES

# Theorem 3.1 of the paper, Eq. (9) and (10).
PAPER_BIPARTITE = {"exponential": math.sqrt(3 / 2), "logistic": math.sqrt(2)}


def strong_properness(loss: str, largest_chance: float = 0.5) -> float:
    """Return the largest lambda with regret >= (lambda / 2) (eta - eta_hat)^2, Eq. (24).

    When neither the true nor the estimated chances exceed `largest_chance` < 1/2, the constant of
    the logistic and exponential losses is larger, and with it the bounds are better.

    Examples
    --------
    >>> strong_properness("logistic")
    4.0
    >>> round(strong_properness("logistic", largest_chance=0.1), 3)
    11.111
    """
    if not 0 < largest_chance <= 0.5:
        raise ValueError(f"largest_chance must be above 0 and at most 1/2; got {largest_chance!r}")
    curvature = choose(LOSSES, loss, "loss").proper_curvature
    if curvature is None:
        raise ValueError(
            f"the {loss} loss is not strictly proper, so no bound holds for it; "
            f"choose one of {', '.join(n for n, f in sorted(LOSSES.items()) if f.proper_curvature)}"
        )
    return float(curvature(largest_chance))


def regret_bound(
    surrogate_regret: Any,
    n_labels: int,
    w_max: float,
    loss: str = "logistic",
    form: str = "sharp",
    largest_chance: float = 0.5,
) -> Any:
    """Bound the rank regret by the univariate surrogate regret, Theorem 3.2 and a sharper form.

    Parameters
    ----------
    surrogate_regret : float or array
        Regret of the scores for the loss of Eq. (11) or (12).
    n_labels : int
        Number of labels m.
    w_max : float
        Largest weight w(y); at a fixed x the mean weight W will do.
    loss : str
        ``"exponential"`` or ``"logistic"``; with the sharp form also ``"squared"`` and
        ``"squared_hinge"``.
    form : {"sharp", "paper"}
        The bound derived in ``docs/theory.md``, Eq. (25), tight for every m; or the paper's,
        Eq. (13) and (14).
    largest_chance : float
        For the sharp form: no weighted chance eta, true or estimated, exceeds this, Eq. (26).

    Examples
    --------
    >>> round(regret_bound(0.01, n_labels=10, w_max=1 / 9, form="paper"), 4)
    0.7454
    >>> round(regret_bound(0.01, n_labels=10, w_max=1 / 9), 4)
    0.4282
    >>> round(regret_bound(0.01, n_labels=10, w_max=1 / 9, largest_chance=0.1), 4)
    0.2569
    """
    regret = _check_regret(surrogate_regret)
    if not isinstance(n_labels, int | np.integer) or n_labels < 2:
        raise ValueError(
            f"n_labels must be an integer of at least 2 (one label has no pair); got {n_labels!r}"
        )
    if not (np.isfinite(w_max) and w_max >= 0):
        raise ValueError(f"w_max must be finite and not negative; got {w_max!r}")
    m = int(n_labels)
    bounds = {
        "paper": lambda: _paper_constant(loss, largest_chance) * m / 2 * math.sqrt(m * w_max),
        "sharp": lambda: math.sqrt(
            2 * m * (m * m - 1) * w_max / (3 * strong_properness(loss, largest_chance))
        ),
    }
    return _times_root(choose(bounds, form, "form")(), regret)


def tree_regret_bound(
    surrogate_regret: Any,
    tree: Sequence[Any],
    w_max: float,
    loss: str = "logistic",
    *,
    certain_root: bool = True,
) -> Any:
    """Bound the rank regret of a label tree by the surrogate regrets of its nodes, Eq. (56).

    Parameters
    ----------
    surrogate_regret : float or array
        Sum over nodes of their regrets for the loss, each counted over the label sets that hold a
        label below its parent, with w(y).
    tree : nested sequences
        The labels below the root: ``[[0, 1], [2, 3, 4]]`` is a root with two groups. One tree of
        several, whose products are averaged: the regret is at most the mean of the trees' bounds.
    w_max : float
        Largest weight w(y), of any kind; at a fixed x the mean weight W will do.
    loss : str
        As for the sharp form of `regret_bound`.
    certain_root : bool
        Whether every label set that weighs something has a label, as under all named weights. The
        root has no problem of its own then.

    Examples
    --------
    A flat tree is a list of labels, and its bound that of `regret_bound`:

    >>> round(tree_regret_bound(0.01, [0, 1, 2, 3], w_max=1 / 3), 6)
    0.182574
    >>> round(regret_bound(0.01, n_labels=4, w_max=1 / 3), 6)
    0.182574
    >>> round(tree_regret_bound(0.01, [[0, 1], [2, 3]], w_max=1 / 3), 6)
    0.316228
    """
    paths = list(_paths(tree, () if certain_root else ("root",)))
    if len({label for label, _ in paths}) < len(paths):
        raise ValueError("tree must hold each label once")
    shared = [[len(a & b) for _, b in paths] for _, a in paths]
    stretch = math.sqrt(float(np.linalg.eigvalsh(np.array(shared, dtype=float))[-1]))
    return stretch * regret_bound(surrogate_regret, len(paths), w_max, loss)


def _paths(node: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, frozenset[Any]]]:
    """Yield the labels of a tree, each with the nodes on its path that have a problem."""
    for place, child in enumerate(node):
        path = (*above, (len(above), place, *above[-1:]))
        if isinstance(child, Sequence) and not isinstance(child, str):
            yield from _paths(child, path)
        else:
            yield child, frozenset(path)


def bipartite_regret_bound(
    surrogate_regret: Any, loss: str = "logistic", form: str = "sharp"
) -> Any:
    """Bound the bipartite rank regret, Theorem 3.1, Eq. (9) and (10), or sharper, Eq. (43).

    Examples
    --------
    >>> round(bipartite_regret_bound(0.01, form="paper"), 4)
    0.1414
    >>> round(bipartite_regret_bound(0.01), 4)
    0.0816
    """
    bounds = {
        "paper": lambda: _paper_constant(loss, 0.5),
        "sharp": lambda: math.sqrt(8 / (3 * strong_properness(loss))),
    }
    return _times_root(choose(bounds, form, "form")(), _check_regret(surrogate_regret))


def _paper_constant(loss: str, largest_chance: float) -> float:
    if largest_chance != 0.5:
        raise ValueError(
            "largest_chance belongs to form='sharp'; the paper's bound has no such form"
        )
    return choose(PAPER_BIPARTITE, loss, "loss")


def _times_root(constant: float, regret: NDArray[np.float64]) -> Any:
    bound = constant * np.sqrt(regret)
    return float(bound) if regret.ndim == 0 else bound


def _check_regret(surrogate_regret: Any) -> NDArray[np.float64]:
    regret = np.asarray(surrogate_regret, dtype=float)
    if not np.all(regret >= 0):
        raise ValueError(f"surrogate_regret must not be negative; got {surrogate_regret!r}")
    return regret
