"""Count the n-grams of texts."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.datasets.text.kernels.keys import (
    find,
    first_hash,
    mixed,
    new_slots,
    next_hash,
    put,
    with_room,
)


@njit(nogil=True, cache=True)
def count_grams(units, shortest, longest, once_if_short):
    """Count n-grams text by text.

    Parameters
    ----------
    units : tuple
        From a function of `units`.
    shortest, longest : int
        Lengths of n-grams in units.
    once_if_short : bool
        A segment with fewer units than the shortest n-gram counts once, as it is.

    Returns
    -------
    keys : tuple of arrays
        The n-grams: where each first occurs in the text, its hash, how many texts hold it, and how
        often it occurs.
    rows : tuple of arrays
        Where each text starts, and its n-grams, in the order in which they come, with their counts.
    """
    text, starts, ends, segments, row_segments = units
    most = _most_grams(segments, shortest, longest)
    key_starts, key_ends = np.empty(most, np.int64), np.empty(most, np.int64)
    hashes, n_holding = np.empty(most, np.uint64), np.zeros(most, np.int64)
    # The entry that last counted a key: of this text, if not before the text's first entry.
    entry_of, slots = np.empty(most, np.int64), new_slots(most // 4)
    ids, counts = np.empty(most, np.int32), np.empty(most, np.int32)
    row_starts = np.zeros(row_segments.shape[0], np.int64)
    n_keys = n_entries = 0
    for row in range(row_segments.shape[0] - 1):
        for segment in range(row_segments[row], row_segments[row + 1]):
            first, last = segments[segment], segments[segment + 1]
            least = min(shortest, last - first) if once_if_short else shortest
            for unit in range(first, last - least + 1):
                begin, at, value = starts[unit], starts[unit], first_hash()
                for n in range(1, min(longest, last - unit) + 1):
                    while at < ends[unit + n - 1]:
                        value = next_hash(value, text[at])
                        at += 1
                    if n < least:
                        continue
                    hash = mixed(value)
                    key = find(slots, text, key_starts, key_ends, text, begin, at, hash)
                    if key < 0:
                        put(slots, -1 - key, hash, n_keys)
                        key = n_keys
                        key_starts[key], key_ends[key], hashes[key] = begin, at, hash
                        entry_of[key] = -1
                        n_keys += 1
                        if 2 * n_keys >= slots.shape[0]:
                            slots = with_room(slots, hashes, n_keys, n_keys)
                    if entry_of[key] < row_starts[row]:
                        entry_of[key] = n_entries
                        ids[n_entries], counts[n_entries] = key, 0
                        n_holding[key] += 1
                        n_entries += 1
                    counts[entry_of[key]] += 1
        row_starts[row + 1] = n_entries
    # Copies, so that the room that was not needed is free again.
    ids, counts = ids[:n_entries].copy(), counts[:n_entries].copy()
    keys = (
        key_starts[:n_keys].copy(), key_ends[:n_keys].copy(), hashes[:n_keys].copy(),
        n_holding[:n_keys].copy(), _totals(ids, counts, n_keys),
    )  # fmt: skip
    return keys, (row_starts, ids, counts)


@njit(nogil=True, cache=True)
def _most_grams(segments, shortest, longest):
    """Return how many n-grams there are at most."""
    most = 1
    for segment in range(segments.shape[0] - 1):
        n_units = segments[segment + 1] - segments[segment]
        for n in range(shortest, longest + 1):
            most += max(0, n_units - n + 1)
        most += n_units < shortest
    return most


@njit(nogil=True, cache=True)
def _totals(ids, counts, n_keys):
    totals = np.zeros(n_keys, np.int64)
    for entry in range(ids.shape[0]):
        totals[ids[entry]] += counts[entry]
    return totals
