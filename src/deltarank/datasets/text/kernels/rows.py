"""From counts of n-grams to sorted rows of weights."""

import math

import numpy as np

from deltarank.core.compiling import njit

# Rows of this few entries are sorted before a call to the general sort has begun.
_SHORT = 32


@njit(nogil=True, cache=True)
def arrange(row_starts, ids, counts, columns):
    """Replace numbers of n-grams by columns and sort each row, in place.

    Those whose column is -1 go; counts of one column are added up. Returns where rows start then.
    """
    starts = np.zeros_like(row_starts)
    packed = np.empty(max(1, np.diff(row_starts).max()), np.int64)
    end = 0
    for row in range(row_starts.shape[0] - 1):
        size = 0
        for entry in range(row_starts[row], row_starts[row + 1]):
            column = np.int64(columns[ids[entry]])
            if column >= 0:
                packed[size] = column << 32 | np.int64(counts[entry])
                size += 1
        if size > _SHORT:
            packed[:size].sort()
        else:
            _insertion_sort(packed, size)
        for i in range(size):
            column, count = packed[i] >> 32, packed[i] & 0xFFFFFFFF
            if end > starts[row] and ids[end - 1] == column:
                counts[end - 1] += count
            else:
                ids[end], counts[end] = column, count
                end += 1
        starts[row + 1] = end
    return starts


@njit(nogil=True, cache=True, inline="always")
def _insertion_sort(numbers, size):
    for i in range(1, size):
        number, at = numbers[i], i
        while at > 0 and numbers[at - 1] > number:
            numbers[at] = numbers[at - 1]
            at -= 1
        numbers[at] = number


@njit(nogil=True, cache=True)
def weigh(row_starts, columns, counts, idf, sublinear, norm, values):
    """Write the weights of sorted rows: counts or 1 + log counts, times idf, of length 1.

    `norm` is 1 or 2 for rows whose absolute values or squares sum to 1, and 0 for neither.
    """
    for row in range(row_starts.shape[0] - 1):
        size = 0.0
        for entry in range(row_starts[row], row_starts[row + 1]):
            count = np.float64(counts[entry])
            value = (1 + math.log(count) if sublinear else count) * idf[columns[entry]]
            size += value * value if norm == 2 else abs(value)
            values[entry] = value
        size = math.sqrt(size) if norm == 2 else size
        if norm and size > 0:
            for entry in range(row_starts[row], row_starts[row + 1]):
                values[entry] /= size


@njit(nogil=True, cache=True)
def add_holding(columns, n_holding):
    """Count the rows that hold each column."""
    for entry in range(columns.shape[0]):
        n_holding[columns[entry]] += 1


@njit(nogil=True, cache=True)
def murmur_columns(text, keys, n_columns):
    """Return the column of each key by MurmurHash3, 32 bits, seed 0, as scikit-learn has it."""
    starts, ends = keys
    columns = np.empty(starts.shape[0], np.int32)
    for key in range(starts.shape[0]):
        signed = np.int64(np.int32(_murmur(text, starts[key], ends[key])))
        columns[key] = abs(signed) % n_columns
    return columns


@njit(nogil=True, cache=True)
def _murmur(text, begin, end):
    value, at = np.uint32(0), begin
    while at + 4 <= end:
        value = _rotated(value ^ _scrambled(_little_endian(text, at, 4)), 13)
        value = np.uint32(value * np.uint32(5) + np.uint32(0xE6546B64))
        at += 4
    if at < end:
        value ^= _scrambled(_little_endian(text, at, end - at))
    value ^= np.uint32(end - begin)
    value = np.uint32((value ^ value >> np.uint32(16)) * np.uint32(0x85EBCA6B))
    value = np.uint32((value ^ value >> np.uint32(13)) * np.uint32(0xC2B2AE35))
    return value ^ value >> np.uint32(16)


@njit(nogil=True, cache=True)
def _little_endian(text, at, size):
    value = np.uint32(0)
    for i in range(size):
        value |= np.uint32(text[at + i]) << np.uint32(8 * i)
    return value


@njit(nogil=True, cache=True)
def _scrambled(value):
    value = _rotated(np.uint32(value * np.uint32(0xCC9E2D51)), 15)
    return np.uint32(value * np.uint32(0x1B873593))


@njit(nogil=True, cache=True)
def _rotated(value, bits):
    return np.uint32(value << np.uint32(bits)) | np.uint32(value >> np.uint32(32 - bits))
