"""Keys that are pieces of text, in tables with open addresses.

A slot of a table holds the upper half of a key's hash and, in its lower half, one more than the
number of the key; zero is an empty slot. The bytes of a key are compared whenever hashes agree.
"""

import numpy as np

from deltarank.core.compiling import njit

_BASIS, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a
_MIX = np.uint64(0x9E3779B97F4A7C15)
_UPPER, _LOWER = np.uint64(0xFFFFFFFF00000000), np.uint64(0xFFFFFFFF)
_EMPTY, _ONE = np.uint64(0), np.uint64(1)
_FEWEST_SLOTS = 1 << 10


@njit(nogil=True, cache=True)
def first_hash():
    """Return the hash to start from."""
    return _BASIS


@njit(nogil=True, cache=True)
def next_hash(value, byte):
    """Return the hash of a text that is longer by one byte; `mixed` before use."""
    return (value ^ np.uint64(byte)) * _PRIME


@njit(nogil=True, cache=True)
def mixed(value):
    """Spread what a hash tells over all of its bits."""
    value = (value ^ (value >> np.uint64(32))) * _MIX
    return value ^ (value >> np.uint64(29))


@njit(nogil=True, cache=True, inline="always")
def hash_bytes(text, begin, end):
    """Return the hash of a piece of text."""
    value = first_hash()
    for i in range(begin, end):
        value = next_hash(value, text[i])
    return mixed(value)


@njit(nogil=True, cache=True)
def part_of(hash, n_parts):
    """Return the part of all keys, a power of two of them, that a key belongs to."""
    return np.int64(hash >> np.uint64(40)) & (n_parts - 1)


@njit(nogil=True, cache=True)
def new_slots(n_keys):
    """Return an empty table that is to hold this many keys."""
    size = _FEWEST_SLOTS
    while size < 2 * n_keys:
        size *= 2
    return np.zeros(size, np.uint64)


@njit(nogil=True, cache=True)
def with_room(slots, hashes, n_keys, n_more):
    """Return a table with room for more keys, the same one where it has."""
    if 2 * (n_keys + n_more) <= slots.shape[0]:
        return slots
    larger = new_slots(2 * (n_keys + n_more))
    for key in range(n_keys):
        put(larger, free_slot(larger, hashes[key]), hashes[key], key)
    return larger


@njit(nogil=True, cache=True, inline="always")
def free_slot(slots, hash):
    """Return where a key goes that is not in the table."""
    last = slots.shape[0] - 1
    slot = np.int64(hash & _LOWER) & last
    while slots[slot] != _EMPTY:
        slot = (slot + 1) & last
    return slot


@njit(nogil=True, cache=True, inline="always")
def put(slots, slot, hash, key):
    """Enter the number of a key."""
    slots[slot] = (hash & _UPPER) | np.uint64(key + 1)


@njit(nogil=True, cache=True, inline="always")
def find(slots, key_text, key_starts, key_ends, text, begin, end, hash):
    """Return the number of a key, or -1 - slot where it would go.

    Keys are pieces of `key_text`, and the one to find is a piece of `text`. Inlined, since numba
    would count references to six arrays in every call.
    """
    size, last = end - begin, slots.shape[0] - 1
    slot = np.int64(hash & _LOWER) & last
    matching = np.int64(-1)
    while slots[slot] != _EMPTY:
        if (slots[slot] ^ hash) & _UPPER == _EMPTY:
            key = np.int64((slots[slot] & _LOWER) - _ONE)
            at, same = key_starts[key], 0
            if key_ends[key] - at == size:
                while same < size and key_text[at + same] == text[begin + same]:
                    same += 1
                if same == size:
                    matching = key
                    break
        slot = (slot + 1) & last
    return matching if matching >= 0 else -1 - slot


@njit(nogil=True, cache=True)
def is_key(table, text, begin, end):
    """Tell whether a piece of text is a key."""
    slots, key_text, starts, ends = table
    hash = hash_bytes(text, begin, end)
    return find(slots, key_text, starts, ends, text, begin, end, hash) >= 0


@njit(nogil=True, cache=True)
def index_keys(text, starts, ends):
    """Return the slots of keys that are there."""
    slots = new_slots(starts.shape[0])
    for key in range(starts.shape[0]):
        hash = hash_bytes(text, starts[key], ends[key])
        put(slots, free_slot(slots, hash), hash, key)
    return slots
