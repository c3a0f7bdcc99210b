"""What Python says about characters, as tables for compiled loops: right by construction."""

import re
import sys
import unicodedata
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.datasets.text.kernels.characters import SPACE, WORD

N_CHARACTERS = sys.maxunicode + 1
# Beyond this one, no character has a lower case or an accent.
_LAST_FOLDED = 0x2FFFF
# Its lower case depends on the letters round it, so Python is asked to lower the whole text.
CAPITAL_SIGMA = "Σ"


class Folding(NamedTuple):
    """What becomes of each character, in UTF-8.

    Attributes
    ----------
    ascii : array of shape (128,), uint8
        What becomes of a byte below 128.
    entry_of : array of shape (n_characters,), int32
        Which entry another character becomes; 0 for one that stays as it is.
    entry_starts, entries : arrays of int64 and uint8
        Bytes of all entries, and where each starts.
    growth : float
        By how much a text can get longer at most.
    """

    ascii: NDArray[np.uint8]
    entry_of: NDArray[np.int32]
    entry_starts: NDArray[np.int64]
    entries: NDArray[np.uint8]
    growth: float


@lru_cache(maxsize=1)
def character_flags() -> NDArray[np.uint8]:
    r"""Return which characters are part of words (``\w``), and which are white space (``\s``).

    Examples
    --------
    >>> flags = character_flags()
    >>> [int(flags[ord(c)]) for c in "aß_8- "]
    [1, 1, 1, 1, 0, 2]
    """
    codes = np.arange(N_CHARACTERS, dtype="<u4")
    characters = codes.tobytes().decode("utf-32-le", "surrogatepass")
    flags = np.zeros(N_CHARACTERS, np.uint8)
    for flag, pattern in ((WORD, r"\w+"), (SPACE, r"\s+")):
        for run in re.finditer(pattern, characters):
            flags[run.start() : run.end()] |= flag
    return flags


@lru_cache
def folding(lowercase: bool, strip_accents: str | None) -> Folding:
    """Return what becomes of each character when case and accents are taken off."""
    entries, growth = [b""], 1.0
    entry_of = np.zeros(N_CHARACTERS, np.int32)
    if strip_accents == "ascii":
        entries.append(b"")
        entry_of[128:] = 1  # unless it has a letter below 128 in it, which is found below
    for code in range(128, _LAST_FOLDED + 1):
        character = chr(code)
        folded = _fold(character, lowercase, strip_accents)
        if folded != character and (folded or not entry_of[code]):
            entry = folded.encode("utf-8", "surrogatepass")
            entry_of[code] = len(entries)
            entries.append(entry)
            growth = max(growth, len(entry) / len(character.encode("utf-8", "surrogatepass")))
    below = bytes(range(128)).decode()
    return Folding(
        np.frombuffer((below.lower() if lowercase else below).encode(), np.uint8),
        entry_of,
        np.concatenate(([0], np.cumsum([len(entry) for entry in entries]))),
        np.frombuffer(b"".join(entries), np.uint8),
        growth,
    )


def _fold(text: str, lowercase: bool, strip_accents: str | None) -> str:
    """Take case and accents off, in scikit-learn's order."""
    if lowercase:
        text = text.lower()
    if strip_accents is None:
        return text
    parts = unicodedata.normalize("NFKD", text)
    if strip_accents == "ascii":
        return parts.encode("ascii", "ignore").decode()
    return "".join(part for part in parts if not unicodedata.combining(part))
