"""Small statistics for comparing rankers: paired differences, their errors and significance."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats


class Interval(NamedTuple):
    """A mean and the ends of its interval."""

    mean: float
    low: float
    high: float


def standard_error(values: Any) -> float:
    """Return the standard error of the mean.

    Examples
    --------
    >>> round(standard_error([1.0, 2.0, 3.0, 4.0]), 6) == round((5 / 3) ** 0.5 / 2, 6)
    True
    """
    return float(stats.sem(values)) if len(values) > 1 else float("nan")


def clustered_error(values: Any, groups: Any) -> float:
    """Return the standard error of the mean of values that come in groups.

    Values of a group (training sets from one model) are not independent of each other; the means
    of groups are.

    Examples
    --------
    >>> clustered_error([1.0, 3.0, 5.0, 7.0], ["a", "a", "b", "b"])
    2.0
    """
    values, groups = np.asarray(values, dtype=float), np.asarray(groups)
    return standard_error([values[groups == group].mean() for group in np.unique(groups)])


def paired_bootstrap(
    first: Any, second: Any, *, level: float = 0.95, n_draws: int = 2000, random_state: int = 0
) -> Interval:
    """Return the mean of first - second, one pair per row, and its bootstrap interval.

    Examples
    --------
    >>> paired_bootstrap([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])
    Interval(mean=2.0, low=2.0, high=2.0)
    """
    difference = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    generator = np.random.default_rng(random_state)
    means = np.array([_resampled_mean(difference, generator) for _ in range(n_draws)])
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(difference.mean()), float(low), float(high))


def _resampled_mean(values: NDArray[np.float64], generator: np.random.Generator) -> float:
    return float(values[generator.integers(0, len(values), len(values))].mean())


def wilcoxon_p(first: Any, second: Any) -> float:
    """Return the p-value of Wilcoxon's signed-rank test of paired values; 1 if all are equal.

    Examples
    --------
    >>> wilcoxon_p([1.0, 2.0], [1.0, 2.0])
    1.0
    """
    difference = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    if not difference.any():
        return 1.0
    return float(stats.wilcoxon(difference).pvalue)
