"""Values that estimators hold beside numbers and strings, in terms of those: no code among them."""

from importlib import import_module
from typing import Any

import numpy as np

from deltarank.datasets.text.column import unpacked_vocabulary
from deltarank.datasets.text.vocabulary import Vocabulary
from deltarank.storage.plain import TAGS, Arrays, Unpack, from_plain, to_plain
from deltarank.wrappers.calibration import Calibration

# Functions that features may be selected by.
FUNCTIONS = {
    "chi2": "sklearn.feature_selection",
    "f_classif": "sklearn.feature_selection",
    "f_regression": "sklearn.feature_selection",
    "mutual_info_classif": "sklearn.feature_selection",
}
_TYPES = {np.dtype(kind).type: kind for kind in ("float64", "float32", "int64", "int32", "bool")}


class Parts:
    """Takes values apart, arrays going into `arrays`, and puts them together again.

    Parameters
    ----------
    arrays : dict
        Where arrays go to, or come from: what is used is taken out.
    """

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def to_plain(self, value: Any, what: str) -> Any:
        """Return a value in terms of JSON, or refuse it."""
        return to_plain(value, what, self.arrays, self._pack)

    def from_plain(self, value: Any) -> Any:
        """Return what `to_plain` was given."""
        return from_plain(value, self.arrays, self._unpackers)

    def _pack(self, value: Any, what: str) -> Any:
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, type) and value in _TYPES:
            return {"type": _TYPES[value]}
        if isinstance(value, slice):
            return {"slice": [to_plain(v, what) for v in (value.start, value.stop, value.step)]}
        if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 1:
            return {"objects": [self.to_plain(item, what) for item in value]}
        if isinstance(value, np.ndarray) and value.flags.fnc:  # the order shapes last digits
            return {"turned": self.to_plain(value.T, what)}
        if isinstance(value, Vocabulary):
            return {"vocabulary": self._words(value)}
        if isinstance(value, Calibration):
            return {"calibration": self.to_plain(value.state(), what)}
        if type(value) is dict:
            return self._pack_dict(value, what)
        name = getattr(value, "__name__", "")
        if name in FUNCTIONS and value is getattr(import_module(FUNCTIONS[name]), name):
            return {"function": name}
        return None

    def _pack_dict(self, value: dict[Any, Any], what: str) -> Any:
        """Return words and their columns as arrays, and keys that are no plain names as pairs."""
        if what == "vocabulary_" and sorted(value.values()) == list(range(len(value))):
            words = sorted(value, key=value.__getitem__)
            if all(words) and words:
                return {"columns": self._words(Vocabulary.of(words))}
        if all(type(key) is str for key in value) and not value.keys() & {*TAGS, *self._unpackers}:
            return None
        return {"pairs": [[to_plain(k, what), self.to_plain(v, what)] for k, v in value.items()]}

    def _words(self, words: Vocabulary) -> Any:
        return self.to_plain({"letters": words.letters, "starts": words.starts}, "words")

    @property
    def _unpackers(self) -> Unpack:
        return {
            "dtype": _data_type,
            "type": lambda kind: {name: it for it, name in _TYPES.items()}[kind],
            "slice": lambda ends: slice(*ends),
            "objects": self._objects,
            "turned": lambda array: self.from_plain(array).T,
            "pairs": lambda pairs: {from_plain(k): self.from_plain(v) for k, v in pairs},
            "function": lambda name: getattr(import_module(FUNCTIONS[name]), name),
            "vocabulary": self._vocabulary,
            "columns": lambda words: {
                word: column for column, word in enumerate(self._vocabulary(words).words())
            },
            "calibration": lambda state: Calibration.from_state(self.from_plain(state)),
        }

    def _objects(self, items: Any) -> Any:
        array = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            array[place] = self.from_plain(item)
        return array

    def _vocabulary(self, words: Any) -> Vocabulary:
        return unpacked_vocabulary(**self.from_plain(words))


def _data_type(kind: Any) -> Any:
    """Return a data type of numbers, strings or objects; others could be fields and names."""
    dtype = np.dtype(kind)
    if dtype.kind not in "biufUO":
        raise ValueError(f"no data type of a model file: {kind!r:.40}")
    return dtype
