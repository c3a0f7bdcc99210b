"""A checksum of an array at the speed of reading it."""

import numpy as np
from numba import njit

# Odd numbers whose bits look random.
OF_ROWS, OF_COLUMNS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
HALF = np.uint64(32)


@njit(nogil=True, cache=True)
def checksum(words, first_row):
    """Return the sum of all unsigned integers of a matrix, each scrambled with its place.

    Parameters
    ----------
    words : ndarray of unsigned integers, shape (n, d)
    first_row : int
        Number of the first row: sums of parts add up to that of the whole.
    """
    total = np.uint64(0)
    for i in range(words.shape[0]):
        place = np.uint64(first_row + i) * OF_ROWS
        for j in range(words.shape[1]):
            place += OF_COLUMNS
            mixed = (np.uint64(words[i, j]) ^ place) * FIRST
            total += (mixed ^ (mixed >> HALF)) * SECOND
    return total
