"""Save rankers to files, and load them."""

import json
from collections.abc import Iterable
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from deltarank.core.arrays import ArrayFileError, Arrays, join_sparse, read_arrays, write_arrays
from deltarank.storage.checks import check_arrays, check_common, check_numbers
from deltarank.storage.plain import dumps, from_plain, to_plain
from deltarank.storage.registry import REFUSED, STORED, Stored

# Raised when files hold something that older releases would misread.
FORMAT = "1"
_COMMON = ("n_features_in_", "_form")


class ModelFileError(ArrayFileError):
    """A model file that is damaged, or not one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deltarank import load
    >>> path = Path(tempfile.mkdtemp(), "model.delta")
    >>> _ = path.write_bytes(b"PK")
    >>> try:
    ...     load(path)
    ... except ModelFileError as error:
    ...     print(error.path == str(path), error.problem[:16])
    True not a model file
    """

    kind = "model file"


def save(ranker: Any, path: str | PathLike[str], *, extra: Any = None) -> None:
    """Write a fitted ranker to a file, without any code.

    The file is in the safetensors layout and appears whole or not at all: if saving fails or is
    killed, an older file of that name stays as it was.

    Parameters
    ----------
    ranker : fitted ranker
    path : path
    extra : numbers, strings, arrays, lists and dicts of them, optional
        Kept beside the ranker, such as the state of an `Encoder`: see `load_with_extra`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from deltarank import LogisticRanker, load, save
    >>> ranker = LogisticRanker().fit([[0.0], [1.0]], [{"low"}, {"high"}])
    >>> path = pathlib.Path(tempfile.mkdtemp(), "ranker.model")
    >>> save(ranker, path)
    >>> load(path).rank([[0.9]])
    array([['high', 'low']], dtype='<U4')
    """
    name = type(ranker).__name__
    stored = _entry(ranker, name)
    check_is_fitted(ranker)
    arrays = {key: getattr(ranker, key) for key in _present(ranker, stored.arrays, stored)}
    kept = (*_present(ranker, stored.values, stored), *_COMMON)
    values = {key: to_plain(getattr(ranker, key), key) for key in kept}
    names = getattr(ranker, "feature_names_in_", None)
    values["feature_names_in_"] = None if names is None else [str(name) for name in names]
    values["classes_"] = _classes_to_plain(ranker.classes_)
    parameters = ranker.get_params(deep=False)
    extra_arrays: Arrays = {}
    state = {
        "ranker": name,
        "parameters": {key: to_plain(value, key) for key, value in parameters.items()},
        "values": values,
        "extra": to_plain(extra, "extra", extra_arrays),
    }
    arrays.update(extra_arrays)
    write_arrays(Path(path), arrays, {"deltarank_format": FORMAT, "state": dumps(state)})


def load(path: str | PathLike[str], *, mmap: bool = True) -> Any:
    """Read a ranker from a file; its arrays stay on disk, mapped into memory.

    Everything is checked first: a damaged or foreign file is refused with `ModelFileError`.

    Parameters
    ----------
    path : path
    mmap : bool
        Map the arrays, so that processes share them and only what is used is read. A file that is
        then overwritten or cut in place, which `save` never does, changes the ranker or ends the
        process; with False the arrays are the ranker's own.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deltarank import LogisticRanker, load, save
    >>> path = Path(tempfile.mkdtemp(), "weather.delta")
    >>> ranker = LogisticRanker().fit([[30.0], [2.0]], [{"beach"}, {"museum"}])
    >>> save(ranker, path)
    >>> load(path).rank([[25.0]])
    array([['beach', 'museum']], dtype='<U6')
    """
    return load_with_extra(path, mmap=mmap)[0]


def load_with_extra(path: str | PathLike[str], *, mmap: bool = True) -> tuple[Any, Any]:
    """Read a ranker and what was kept beside it; for `mmap` see `load`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deltarank import LogisticRanker, save
    >>> path = Path(tempfile.mkdtemp(), "weather.delta")
    >>> ranker = LogisticRanker().fit([[30.0], [2.0]], [{"beach"}, {"museum"}])
    >>> save(ranker, path, extra={"unit": "degrees"})
    >>> ranker, extra = load_with_extra(path)
    >>> extra
    {'unit': 'degrees'}
    """
    path = Path(path)
    arrays, strings = read_arrays(path, mapped=mmap, error=ModelFileError)
    version = strings.get("deltarank_format")
    if version != FORMAT:
        raise ModelFileError(
            path, f"this release reads model format {FORMAT}; the file has format {version!r}"
        )
    try:
        return _restore(arrays, json.loads(strings["state"]))
    except ValueError as error:
        raise ModelFileError(path, str(error)) from None
    except (LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(path, f"its state is not that of a ranker ({error!r})") from None


def _entry(ranker: Any, name: str) -> Stored:
    if name in REFUSED:
        raise ValueError(f"{name} cannot be saved: {REFUSED[name]}")
    if name not in STORED:
        raise ValueError(f"{name} cannot be saved; rankers that can are {', '.join(STORED)}")
    entry = STORED[name]
    if type(ranker) is not getattr(import_module(entry.home), name):
        raise ValueError(f"{name} cannot be saved: it is another class than {entry.home}.{name}")
    return entry


def _restore(arrays: Arrays, state: dict[str, Any]) -> tuple[Any, Any]:
    name = state["ranker"]
    if name not in STORED:
        raise ValueError(f"unknown ranker {name!r}; known are {', '.join(STORED)}")
    entry = STORED[name]
    extra = from_plain(state["extra"], arrays)
    values = {key: from_plain(value) for key, value in state["values"].items()}
    classes = _classes_from_plain(values.pop("classes_"))
    names = values.pop("feature_names_in_")
    for key, form in entry.maybe_sparse.items():
        if key not in arrays:
            arrays[key] = _to_sparse(key, form, arrays, values["n_features_in_"])
    lacking = ({*entry.values, *_COMMON} ^ set(values)) | (set(entry.arrays) ^ set(arrays))
    if not lacking <= set(entry.optional):
        raise ValueError(f"it does not hold what a {name} consists of")
    check_common(values, classes, names)
    check_arrays(entry, arrays, values, len(classes))
    parameters = {key: from_plain(value) for key, value in state["parameters"].items()}
    ranker = getattr(import_module(entry.home), name)(**parameters)
    check_numbers(ranker, parameters, values)
    for key, value in {**arrays, **values, "classes_": classes}.items():
        setattr(ranker, key, value)
    if names is not None:
        ranker.feature_names_in_ = np.array(names, dtype=object)
    if hasattr(ranker, "_restored"):
        ranker._restored()
    return ranker, extra


def _present(ranker: Any, names: Iterable[str], stored: Stored) -> list[str]:
    """Return the names that this fit has: all but the optional ones it lacks."""
    return [name for name in names if name not in stored.optional or hasattr(ranker, name)]


def _to_sparse(name: str, form: str, arrays: Arrays, n_columns: int) -> Any:
    """Put the three parts of a sparse array together, and see that they fit."""
    if form == "csr":
        kind, shape = sparse.csr_array, (len(arrays[f"{name}.indptr"]) - 1, n_columns)
    else:
        # The file holds no number of rows; the later check of shapes finds a wrong one.
        kind, shape = sparse.csc_array, (int(arrays["intercept_"].shape[0]), n_columns)
    try:
        return join_sparse(arrays, name, kind, shape)
    except ValueError as error:
        raise ValueError(f"{name} is no sparse matrix: {error}") from None


def _classes_to_plain(classes: Any) -> Any:
    """Keep the kind of the names beside them: int32, <U5 and object are not the same."""
    names = np.asarray(classes)
    if names.dtype.kind not in "biufUO":
        raise ValueError(f"classes_ of type {names.dtype} cannot go into a model file")
    return {"kind": names.dtype.str, "names": [to_plain(n, "classes_") for n in names.tolist()]}


def _classes_from_plain(value: Any) -> Any:
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
