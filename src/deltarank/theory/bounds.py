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
    w_max: float | None = None,
    loss: str = "logistic",
    form: str = "sharp",
    largest_chance: float = 0.5,
    *,
    mean_weight: float | None = None,
) -> Any:
    """Bound the rank regret by the univariate surrogate regret, Theorem 3.2 and sharper forms.

    Parameters
    ----------
    surrogate_regret : float or array
        Regret of the scores for the loss of Eq. (11) or (12).
    n_labels : int
        Number of labels m.
    w_max : float, optional
        Largest weight w(y); at a fixed x the mean weight W will do. For all forms but "mean".
    loss : str
        ``"exponential"`` or ``"logistic"``; except with the paper's form also ``"squared"`` and
        ``"squared_hinge"``.
    form : {"sharp", "mean", "paper"}
        The bound derived in ``docs/theory.md``, Eq. (25), tight for every m; the same with the mean
        weight in place of the largest, Eq. (57), never larger; or the paper's, Eq. (13) and (14).
    largest_chance : float
        Not for the paper's form: no weighted chance eta, true or estimated, exceeds this, Eq. (26).
    mean_weight : float, optional
        For the form "mean": E[w(Y)] over all rows, those of weight 0 included.

    Examples
    --------
    >>> round(regret_bound(0.01, n_labels=10, w_max=1 / 9, form="paper"), 4)
    0.7454
    >>> round(regret_bound(0.01, n_labels=10, w_max=1 / 9), 4)
    0.4282
    >>> round(regret_bound(0.01, n_labels=10, w_max=1 / 9, largest_chance=0.1), 4)
    0.2569
    >>> round(regret_bound(0.01, n_labels=10, form="mean", mean_weight=1 / 25), 4)
    0.2569
    """
    regret = _check_regret(surrogate_regret)
    m = _check_n_labels(n_labels)

    def sharp(weight: float) -> float:
        return math.sqrt(
            2 * m * (m * m - 1) * weight / (3 * strong_properness(loss, largest_chance))
        )

    def paper(weight: float) -> float:
        return _paper_constant(loss, largest_chance) * m / 2 * math.sqrt(m * weight)

    constant = choose({"paper": paper, "sharp": sharp, "mean": sharp}, form, "form")
    if form == "mean":
        return _times_root(constant(_check_weight(mean_weight, "mean_weight")), regret)
    return _times_root(constant(_check_weight(w_max, "w_max")), regret)


def low_noise_regret_bound(
    surrogate_regret: Any,
    n_labels: int,
    mean_weight: float,
    *,
    exponent: float,
    gap: float,
    loss: str = "logistic",
) -> Any:
    """Bound the rank regret where few pairs of labels are close, Eq. (58) under Eq. (59).

    The more labels are set apart, the closer the rank regret is to being proportional to the
    surrogate regret instead of its root.

    Parameters
    ----------
    surrogate_regret : float or array
        Regret of the scores for the loss of Eq. (11) or (12).
    n_labels : int
        Number of labels m.
    mean_weight : float
        E[w(Y)].
    exponent, gap : float
        Of all pairs of labels, weighted by w(y), at most the share (t / gap)^exponent has chances
        eta that differ, but by no more than t; for every t > 0. With ``exponent=math.inf`` no pair
        differs by less than `gap`; with 0 nothing is assumed.
    loss : str
        As for the sharp form of `regret_bound`.

    Examples
    --------
    >>> import math
    >>> def bound(surrogate, exponent):
    ...     return low_noise_regret_bound(surrogate, 10, 1 / 9, exponent=exponent, gap=0.2)
    >>> [round(bound(surrogate, 1.0), 4) for surrogate in (1e-4, 1e-6)]  # 100^(2/3) = 21.5
    [0.0292, 0.0014]
    >>> [round(bound(surrogate, math.inf), 6) for surrogate in (1e-4, 1e-6)]
    [0.0025, 2.5e-05]
    """
    regret, m = _check_regret(surrogate_regret), _check_n_labels(n_labels)
    weight = _check_weight(mean_weight, "mean_weight")
    if not exponent >= 0:
        raise ValueError(f"exponent must be at least 0 (or infinite); got {exponent!r}")
    if not (np.isfinite(gap) and gap > 0):
        raise ValueError(f"gap must be above 0 and finite; got {gap!r}")
    squares = 2 * m * regret / strong_properness(loss)
    if math.isinf(exponent):
        return _plain(squares / gap)
    power = 1 / (2 + exponent)
    # ((1 + a) / a)^a, which is 1 at a = 0.
    share = (1 + 1 / exponent) ** exponent if exponent > 0 else 1.0
    constant = share * (1 + exponent) * weight * m * (m - 1) / 2
    return _plain(constant**power * squares ** (1 - power) * gap ** (-exponent * power))


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
            "largest_chance belongs to form='sharp' and 'mean'; the paper's bound has no such form"
        )
    return choose(PAPER_BIPARTITE, loss, "loss")


def _times_root(constant: float, regret: NDArray[np.float64]) -> Any:
    return _plain(constant * np.sqrt(regret))


def _plain(bound: Any) -> Any:
    """Return an array, or a single number as a float."""
    return float(bound) if np.ndim(bound) == 0 else bound


def _check_regret(surrogate_regret: Any) -> NDArray[np.float64]:
    regret = np.asarray(surrogate_regret, dtype=float)
    if not np.all(regret >= 0):
        raise ValueError(f"surrogate_regret must not be negative; got {surrogate_regret!r}")
    return regret


def _check_n_labels(n_labels: Any) -> int:
    if not isinstance(n_labels, int | np.integer) or n_labels < 2:
        raise ValueError(
            f"n_labels must be an integer of at least 2 (one label has no pair); got {n_labels!r}"
        )
    return int(n_labels)


def _check_weight(weight: Any, argument: str) -> float:
    if weight is None:
        other = {"w_max": "mean_weight", "mean_weight": "w_max"}[argument]
        forms = {"w_max": "'sharp' and 'paper'", "mean_weight": "'mean'"}
        raise ValueError(
            f"{argument} must be given for form={forms[argument]}; {other} is for {forms[other]}"
        )
    if not (np.isfinite(weight) and weight >= 0):
        raise ValueError(f"{argument} must be finite and not negative; got {weight!r}")
    return float(weight)
