"""Small statistics for comparing rankers: paired differences, their errors and significance."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

# Signs of more values than these are drawn, not enumerated.
MOST_ENUMERATED = 16
SIGN_DRAWS = 100_000


class Interval(NamedTuple):
    """A mean and the ends of its interval."""

    mean: float
    low: float
    high: float


class TTest(NamedTuple):
    """A mean, its standard error, the ends of its interval, and the p-value of a mean of 0."""

    mean: float
    error: float
    low: float
    high: float
    p: float


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


def t_test(values: Any, *, overlap: float = 0.0, level: float = 0.95) -> TTest:
    """Return Student's interval and test for the mean of differences.

    Parameters
    ----------
    values : array
        One per independent unit, or one per random split of one sample.
    overlap : float
        0 for independent values. Differences on random splits share rows and are not independent;
        their variance is corrected by the number of test rows over that of training rows (Nadeau
        and Bengio, Machine Learning 52, 2003), which is an approximation.
    level : float

    Examples
    --------
    >>> t_test([1.0, 2.0, 3.0, 4.0]).error.__round__(3)
    0.645
    >>> t_test([1.0, 2.0, 3.0, 4.0], overlap=0.5).error.__round__(3)
    1.118
    """
    values = np.asarray(values, dtype=float)
    mean, n_values = float(values.mean()), len(values)
    if n_values < 2:
        return TTest(mean, *[float("nan")] * 4)
    error = float(values.std(ddof=1) * np.sqrt(1 / n_values + overlap))
    reach = float(stats.t.ppf((1 + level) / 2, n_values - 1)) * error
    p = float(2 * stats.t.sf(abs(mean) / error, n_values - 1)) if error else float(mean == 0)
    return TTest(mean, error, mean - reach, mean + reach, p)


def sign_flip_p(values: Any) -> float:
    """Return the p-value of a symmetric distribution around 0, by flipping signs.

    Exact: the share of all ways to give the values signs in which their sum is as far from 0 as
    theirs. Of more than 16 values, 100,000 ways are drawn.

    Examples
    --------
    >>> sign_flip_p([0.1, 0.2, 0.3])  # all of one sign: 2 of 8 ways
    0.25
    """
    values = np.asarray(values, dtype=float)
    n_values = len(values)
    if n_values <= MOST_ENUMERATED:
        signs = 1 - 2 * (np.arange(2**n_values)[:, None] >> np.arange(n_values) & 1)
    else:
        signs = np.random.default_rng(0).choice([-1, 1], (SIGN_DRAWS, n_values))
        signs[0] = 1  # the values as they are count, so that p is never 0
    # Sums that are equal but for rounding are equal.
    least = abs(values.sum()) - 1e-12 * np.abs(values).sum()
    return float((np.abs(signs @ values) >= least).mean())


def paired_bootstrap(
    first: Any,
    second: Any,
    *,
    level: float = 0.95,
    n_draws: int = 2000,
    random_state: int = 0,
    block: int = 1,
) -> Interval:
    """Return the mean of first - second, one pair per row, and its bootstrap interval.

    With a `block` of more than one, blocks of this many neighbouring rows are drawn together (the
    circular block bootstrap), for rows that are like their neighbours.

    Examples
    --------
    >>> paired_bootstrap([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])
    Interval(mean=2.0, low=2.0, high=2.0)
    """
    difference = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    block = min(block, len(difference))
    sums = _block_sums(difference, block)
    generator = np.random.default_rng(random_state)
    n_blocks = -(-len(difference) // block)
    means = np.array([_resampled_mean(sums, n_blocks, generator) for _ in range(n_draws)]) / block
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(difference.mean()), float(low), float(high))


def _block_sums(values: NDArray[np.float64], block: int) -> NDArray[np.float64]:
    """Return the sum of each value and the block - 1 after it, in a circle."""
    if block == 1:
        return values
    before = np.concatenate([[0.0], np.cumsum(np.concatenate([values, values[: block - 1]]))])
    return np.asarray(before[block:] - before[:-block])


def _resampled_mean(
    values: NDArray[np.float64], n_values: int, generator: np.random.Generator
) -> float:
    return float(values[generator.integers(0, len(values), n_values)].mean())


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
