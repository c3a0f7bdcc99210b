"""UTF-8 by hand: decoding characters, and folding case and accents."""

import numpy as np

from deltarank.core.compiling import njit

WORD, SPACE = np.uint8(1), np.uint8(2)
FIRST_WIDE = 128  # bytes from here on are parts of wider characters


# Functions that take arrays are inlined: numba counts references to them in every call, which would
# take longer than what these do.
@njit(nogil=True, cache=True, inline="always")
def decode(text, at):
    """Return the character that starts here and its number of bytes; the text must be UTF-8."""
    character, size = np.int64(text[at]), 1
    if character >= FIRST_WIDE:
        size = 2 if character < 0xE0 else (3 if character < 0xF0 else 4)
        character &= 0x7F >> size
        for i in range(1, size):
            character = character << 6 | np.int64(text[at + i]) & 0x3F
    return character, size


@njit(nogil=True, cache=True, inline="always")
def copy_bytes(source, at, size, target, end):
    """Append bytes to the target; return its new end."""
    for i in range(size):
        target[end + i] = source[at + i]
    return end + size


@njit(nogil=True, cache=True)
def byte_starts(text, starts):
    """Return the first byte of each text, given its first character."""
    first_bytes = np.empty_like(starts)
    at = n_characters = 0
    for row in range(starts.shape[0]):
        while n_characters < starts[row]:
            at += 1
            while at < text.shape[0] and text[at] & 0xC0 == 0x80:  # not the first of a character
                at += 1
            n_characters += 1
        first_bytes[row] = at
    return first_bytes


@njit(nogil=True, cache=True)
def fold(text, starts, folding):
    """Return the texts with each character replaced by its entry, and where they start then."""
    ascii, entry_of, entry_starts, entries, growth = folding
    folded = np.empty(np.int64(text.shape[0] * growth) + 1, np.uint8)
    folded_starts = np.zeros_like(starts)
    at = end = 0
    for row in range(starts.shape[0] - 1):
        while at < starts[row + 1]:
            if text[at] < FIRST_WIDE:
                folded[end] = ascii[text[at]]
                end += 1
                at += 1
                continue
            character, size = decode(text, at)
            entry = entry_of[character]
            if entry == 0:
                end = copy_bytes(text, at, size, folded, end)
            else:
                begin = entry_starts[entry]
                end = copy_bytes(entries, begin, entry_starts[entry + 1] - begin, folded, end)
            at += size
        folded_starts[row + 1] = end
    return folded[:end], folded_starts
