"""Bring the n-grams of blocks of texts together in one vocabulary."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.datasets.text.kernels.characters import copy_bytes
from deltarank.datasets.text.kernels.keys import find, part_of, put, with_room


@njit(nogil=True, cache=True)
def merge_keys(known, n_known, text, keys, part, n_parts, codes):
    """Enter those keys of a block that belong to one part of all keys.

    Parameters
    ----------
    known : tuple of arrays
        Slots, text, starts, ends, hashes, texts that hold it and occurrences of the known keys of
        this part; the arrays may have room to spare.
    n_known : int
    text, keys : array, tuple
        From `count_grams`.
    part, n_parts : int
    codes : array of int32
        Gets the code of each key of the part: its number among the known ones times the number of
        parts, plus the part.

    Returns
    -------
    known, n_known
    """
    key_starts, key_ends, key_hashes, key_holding, key_totals = keys
    n_more = n_bytes = 0
    for key in range(key_hashes.shape[0]):
        if part_of(key_hashes[key], n_parts) == part:
            n_more += 1
            n_bytes += key_ends[key] - key_starts[key]
    slots, letters, starts, ends, hashes, n_holding, totals = known
    slots = with_room(slots, hashes, n_known, n_more)
    filled = ends[n_known - 1] if n_known else 0
    letters = longer(letters, filled, n_bytes)
    starts, ends = longer(starts, n_known, n_more), longer(ends, n_known, n_more)
    hashes, n_holding = longer(hashes, n_known, n_more), longer(n_holding, n_known, n_more)
    totals = longer(totals, n_known, n_more)
    for key in range(key_hashes.shape[0]):
        hash = key_hashes[key]
        if part_of(hash, n_parts) != part:
            continue
        begin, end = key_starts[key], key_ends[key]
        same = find(slots, letters, starts, ends, text, begin, end, hash)
        if same < 0:
            put(slots, -1 - same, hash, n_known)
            same = n_known
            n_known += 1
            starts[same] = filled
            filled = copy_bytes(text, begin, end - begin, letters, filled)
            ends[same], hashes[same], n_holding[same], totals[same] = filled, hash, 0, 0
        n_holding[same] += key_holding[key]
        totals[same] += key_totals[key]
        codes[key] = same * n_parts + part
    return (slots, letters, starts, ends, hashes, n_holding, totals), n_known


@njit(nogil=True, cache=True)
def longer(array, filled, n_more):
    """Return an array with room for more numbers after those that are filled."""
    if filled + n_more <= array.shape[0]:
        return array
    larger = np.empty(max(filled + n_more, 2 * array.shape[0]), array.dtype)
    larger[:filled] = array[:filled]
    return larger


@njit(nogil=True, cache=True)
def find_keys(table, text, keys):
    """Return the number of each key in a table, -1 of those that are not there."""
    slots, known_text, known_starts, known_ends = table
    starts, ends, hashes = keys
    numbers = np.empty(hashes.shape[0], np.int32)
    for key in range(hashes.shape[0]):
        begin, end, hash = starts[key], ends[key], hashes[key]
        same = find(slots, known_text, known_starts, known_ends, text, begin, end, hash)
        numbers[key] = max(-1, same)
    return numbers


@njit(nogil=True, cache=True)
def gather(text, starts, ends, chosen, letters, at):
    """Append the bytes of chosen keys to `letters`; return where each of them ends there."""
    letter_ends = np.empty(chosen.shape[0], np.int64)
    for i in range(chosen.shape[0]):
        begin = starts[chosen[i]]
        at = copy_bytes(text, begin, ends[chosen[i]] - begin, letters, at)
        letter_ends[i] = at
    return letter_ends


@njit(nogil=True, cache=True)
def first_bytes(text, starts, ends):
    """Return the first eight bytes of each key as a number that sorts as they do."""
    heads = np.zeros(starts.shape[0], np.uint64)
    for key in range(starts.shape[0]):
        for i in range(8):
            at = starts[key] + i
            byte = np.uint64(text[at]) if at < ends[key] else np.uint64(0)
            heads[key] = heads[key] << np.uint64(8) | byte
    return heads


@njit(nogil=True, cache=True)
def sort_ties(order, heads, text, starts, ends):
    """Sort keys that are in the order of their first bytes by all of their bytes, in place."""
    begin = 0
    while begin < order.shape[0]:
        end = begin + 1
        while end < order.shape[0] and heads[order[end]] == heads[order[begin]]:
            end += 1
        _heap_sort(order[begin:end], text, starts, ends)
        begin = end


@njit(nogil=True, cache=True)
def _heap_sort(order, text, starts, ends):
    n_keys = order.shape[0]
    for step in range(n_keys // 2 + n_keys - 1):
        # First the heap is made, root by root; then its largest key goes to the end, each time.
        root, last = max(0, n_keys // 2 - 1 - step), min(n_keys, n_keys + n_keys // 2 - 1 - step)
        if last < n_keys:
            order[0], order[last] = order[last], order[0]
        while 2 * root + 1 < last:
            child = 2 * root + 1
            if child + 1 < last and precedes(order[child], order[child + 1], text, starts, ends):
                child += 1
            if not precedes(order[root], order[child], text, starts, ends):
                break
            order[root], order[child] = order[child], order[root]
            root = child


@njit(nogil=True, cache=True, inline="always")
def precedes(one, other, text, starts, ends):
    """Tell which of two keys with the same first eight bytes comes first.

    Inlined, as numba would count references to the arrays in each call.
    """
    at, other_at = min(starts[one] + 8, ends[one]), min(starts[other] + 8, ends[other])
    while at < ends[one] and other_at < ends[other] and text[at] == text[other_at]:
        at += 1
        other_at += 1
    if at == ends[one] or other_at == ends[other]:
        return ends[one] - starts[one] < ends[other] - starts[other]
    return text[at] < text[other_at]
