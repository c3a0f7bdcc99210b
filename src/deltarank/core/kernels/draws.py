"""Random numbers inside kernels: one stream per seed, the same on every machine (xorshift)."""

import numpy as np

from deltarank.core.compiling import njit


@njit(inline="always")
def seeded(seed):
    """Return the state of a stream, which `draw` changes."""
    return np.array([seed], np.uint64) * np.uint64(2654435761) + np.uint64(88172645463325252)


@njit(inline="always")
def draw(random, n):
    """Return one of the first `n` whole numbers."""
    random[0] ^= random[0] << np.uint64(13)
    random[0] ^= random[0] >> np.uint64(7)
    random[0] ^= random[0] << np.uint64(17)
    return np.int64((random[0] >> np.uint64(32)) * np.uint64(n) >> np.uint64(32))


@njit(inline="always")
def draw_next(random, order, p, n):
    """Return one of ``order[p:n]``, put at `p`: with p = 0, 1, ... the order is shuffled."""
    q = p + draw(random, n - p)
    order[p], order[q] = order[q], order[p]
    return order[p]
