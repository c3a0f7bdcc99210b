"""Names of labels, whose kind matters: int32, <U5 and object are not the same."""

from typing import Any

import numpy as np

from deltarank.storage.plain import to_plain


def names_to_plain(classes: Any) -> Any:
    """Return names with their kind beside them."""
    names = np.asarray(classes)
    if names.dtype.kind not in "biufUO":
        raise ValueError(f"classes_ of type {names.dtype} cannot go into a model file")
    return {"kind": names.dtype.str, "names": [to_plain(n, "classes_") for n in names.tolist()]}


def names_from_plain(value: Any) -> Any:
    """Return what `names_to_plain` was given."""
    kind = np.dtype(value["kind"])
    if kind.kind not in "biufUO":
        raise TypeError(f"classes_ of type {kind}")
    # The width of strings is that of the names, whatever the file says: it may say anything.
    names = np.empty(len(value["names"]), dtype=object)
    for place, name in enumerate(value["names"]):  # tuples stay names, not rows
        names[place] = name
    return (
        names if kind.kind == "O" else np.array(names.tolist(), str if kind.kind == "U" else kind)
    )
