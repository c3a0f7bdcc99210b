"""Expected weights of label sets that are the signs of a shifted point set."""

import numpy as np

from deltarank.core.compiling import njit


@njit(nogil=True, cache=True)
def expected_weights(shifts, noise, weight_of_size, marginal, pair_mass):
    """Average over the noise, for each shift, the weights of the label sets that it makes.

    Label l is relevant when ``shifts[i, l] + noise[l, k] > 0``. Write to ``marginal[i, l]`` the
    mean over k of w(y) y_l, and to ``pair_mass[i]`` that of w(y) s (m - s).
    """
    n_points, m = shifts.shape
    n_draws = noise.shape[1]
    sizes = np.empty(n_draws, np.int32)
    weights = np.empty(n_draws, np.float32)
    for i in range(n_points):
        sizes[:] = 0
        for label in range(m):
            bound = -shifts[i, label]
            draws = noise[label]
            for k in range(n_draws):
                sizes[k] += np.int32(draws[k] > bound)
        mass = 0.0
        for k in range(n_draws):
            size = sizes[k]
            weights[k] = weight_of_size[size]
            mass += weight_of_size[size] * size * (m - size)
        pair_mass[i] = mass / n_draws
        for label in range(m):
            marginal[i, label] = (
                _sum_where_above(noise[label], -shifts[i, label], weights) / n_draws
            )


# Reordering the sum lets it be vectorised.
@njit(nogil=True, cache=True, fastmath={"reassoc"})
def _sum_where_above(draws, bound, weights):
    # Partial sums of 1,024 keep the rounding of float32 at one part in a million or less.
    total = 0.0
    for start in range(0, draws.shape[0], 1024):
        part = np.float32(0.0)
        for k in range(start, min(start + 1024, draws.shape[0])):
            part += weights[k] if draws[k] > bound else np.float32(0.0)
        total += part
    return total


@njit(nogil=True, cache=True)
def independent_weights(chances, weight_of_size, marginal, pair_mass):
    """Compute the same for independent labels with the given chances, exactly, Eq. (39).

    A Poisson-binomial recursion gives the distribution of s; taking label l out of it, upwards or
    downwards, whichever divides by the larger chance, gives that of s without l.
    """
    n_points, m = chances.shape
    sizes = np.empty(m + 1)
    without = np.empty(m)
    for i in range(n_points):
        sizes[:] = 0.0
        sizes[0] = 1.0
        for label in range(m):
            p = chances[i, label]
            for s in range(label + 1, 0, -1):
                sizes[s] = sizes[s] * (1 - p) + sizes[s - 1] * p
            sizes[0] *= 1 - p
        mass = 0.0
        for s in range(1, m):
            mass += sizes[s] * weight_of_size[s] * s * (m - s)
        pair_mass[i] = mass
        for label in range(m):
            p = chances[i, label]
            if p <= 0.5:
                without[0] = sizes[0] / (1 - p)
                for s in range(1, m):
                    without[s] = (sizes[s] - p * without[s - 1]) / (1 - p)
            else:
                without[m - 1] = sizes[m] / p
                for s in range(m - 1, 0, -1):
                    without[s - 1] = (sizes[s] - (1 - p) * without[s]) / p
            total = 0.0
            for s in range(m):
                total += without[s] * weight_of_size[s + 1]
            marginal[i, label] = p * total
