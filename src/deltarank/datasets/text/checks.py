"""Checks of what users give to `TextVectorizer`."""

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def is_count(value: Any) -> bool:
    """Tell whether a value is a positive integer."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def is_share(value: Any) -> bool:
    """Tell whether a value is a real number from 0 to 1, and no integer."""
    return isinstance(value, Real) and not isinstance(value, Integral) and 0 <= float(value) <= 1


def strings(documents: Any) -> Iterable[Any]:
    """Refuse what would give letters, or names of columns."""
    if isinstance(documents, str | bytes) or not isinstance(documents, Iterable):
        raise ValueError(
            f"raw_documents must be an iterable of strings; got {repr(documents)[:40]}"
        )
    if getattr(documents, "ndim", 1) != 1:
        raise ValueError(
            "raw_documents must be one column of strings; got a table of "
            f"{documents.ndim} dimensions"  # type: ignore[attr-defined]
        )
    return documents


def checked_range(ngram_range: Any) -> tuple[int, int]:
    """Return the shortest and the longest n-gram."""
    try:
        shortest, longest = ngram_range
        is_valid = is_count(shortest) and is_count(longest) and shortest <= longest
    except (TypeError, ValueError):
        is_valid = False
    if not is_valid:
        raise ValueError(
            "ngram_range must be two integers, the shortest n-gram (1 or more) and the longest; "
            f"got {ngram_range!r}"
        )
    return int(shortest), int(longest)


def listed_stop_words(given: Any) -> list[str]:
    """Return the words to leave out, once each."""
    if given is None:
        return []
    if isinstance(given, str):
        if given != "english":
            raise ValueError(
                f"stop_words must be None, 'english' or a collection of words; got {given!r}"
            )
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return sorted(ENGLISH_STOP_WORDS)
    return sorted(set(given))
