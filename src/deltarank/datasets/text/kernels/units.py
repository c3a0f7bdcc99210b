"""Texts cut into the units of n-grams: words, or characters.

Each function returns the units of many texts, one text after the other:

text : bytes in which every n-gram is one piece, whatever stood between its words before
starts, ends : where each unit starts and ends in it
segments : the first unit of each segment, which n-grams do not cross; and the end
row_segments : the first segment of each text; and the end
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.datasets.text.kernels.characters import FIRST_WIDE, SPACE, WORD, copy_bytes, decode
from deltarank.datasets.text.kernels.keys import is_key

_BLANK = np.uint8(32)


@njit(nogil=True, cache=True)
def words(text, row_starts, flags, stop_words):
    """Cut into words of two or more characters, without stop words, a blank between them."""
    n_rows = row_starts.shape[0] - 1
    most = text.shape[0] // 2 + 1
    starts, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    segments = np.zeros(n_rows + 1, np.int64)
    clean = np.empty(text.shape[0] + n_rows + 4, np.uint8)  # also of what is then dropped
    any_stop_words = stop_words[2].shape[0] > 0
    at = end = n_units = 0
    for row in range(n_rows):
        begin, n_characters, row_end = end, 0, row_starts[row + 1]
        while at < row_end:
            if text[at] < FIRST_WIDE:  # by far the most frequent
                size, is_part = 1, flags[text[at]] & WORD != 0
                clean[end] = text[at]
            else:
                character, size = decode(text, at)
                is_part = flags[character] & WORD != 0
                copy_bytes(text, at, size, clean, end)
            at += size
            if is_part:
                end += size
                n_characters += 1
            if is_part and at < row_end:
                continue
            if n_characters < 2 or (any_stop_words and is_key(stop_words, clean, begin, end)):
                end = begin
            else:
                starts[n_units], ends[n_units] = begin, end
                n_units += 1
                clean[end] = _BLANK
                end += 1
            begin, n_characters = end, 0
        segments[row + 1] = n_units
    return clean[:end], starts[:n_units], ends[:n_units], segments, np.arange(n_rows + 1)


@njit(nogil=True, cache=True)
def characters(text, row_starts, flags):
    """Cut into characters; white space of two or more characters becomes one blank."""
    n_rows = row_starts.shape[0] - 1
    starts, ends = np.empty(text.shape[0], np.int64), np.empty(text.shape[0], np.int64)
    segments = np.zeros(n_rows + 1, np.int64)
    clean = np.empty(text.shape[0], np.uint8)
    at = end = n_units = 0
    for row in range(n_rows):
        n_spaces = 0
        while at < row_starts[row + 1]:
            character, size = decode(text, at)
            n_spaces = n_spaces + 1 if flags[character] & SPACE else 0
            if n_spaces < 2:
                starts[n_units] = end
                end = copy_bytes(text, at, size, clean, end)
                n_units += 1
            elif n_spaces == 2:  # the first of them was kept as it is
                end = starts[n_units - 1] + 1
                clean[end - 1] = _BLANK
            ends[n_units - 1] = end
            at += size
        segments[row + 1] = n_units
    return clean[:end], starts[:n_units], ends[:n_units], segments, np.arange(n_rows + 1)


@njit(nogil=True, cache=True)
def padded_words(text, row_starts, flags):
    """Cut into the characters of what white space separates, with a blank at both ends."""
    n_rows = row_starts.shape[0] - 1
    most = 2 * (text.shape[0] + n_rows)  # a word of one character has three, and a space is lost
    starts, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    segments = np.zeros(text.shape[0] + 1, np.int64)
    row_segments = np.zeros(n_rows + 1, np.int64)
    clean = np.empty(most, np.uint8)
    at = end = n_units = n_segments = 0
    for row in range(n_rows):
        is_open = False
        while at < row_starts[row + 1]:
            character, size = decode(text, at)
            if (flags[character] & SPACE != 0) == is_open:  # a word begins, or has ended
                end, n_units = _add_unit(_BLANKS, 0, 1, clean, end, starts, ends, n_units)
                n_segments += is_open
                segments[n_segments] = n_units if is_open else segments[n_segments]
                is_open = not is_open
            if is_open:
                end, n_units = _add_unit(text, at, size, clean, end, starts, ends, n_units)
            at += size
        if is_open:
            end, n_units = _add_unit(_BLANKS, 0, 1, clean, end, starts, ends, n_units)
            n_segments += 1
            segments[n_segments] = n_units
        row_segments[row + 1] = n_segments
    return clean[:end], starts[:n_units], ends[:n_units], segments[: n_segments + 1], row_segments


_BLANKS = np.array([_BLANK])


@njit(nogil=True, cache=True, inline="always")
def _add_unit(source, at, size, clean, end, starts, ends, n_units):
    starts[n_units] = end
    ends[n_units] = copy_bytes(source, at, size, clean, end)
    return ends[n_units], n_units + 1
