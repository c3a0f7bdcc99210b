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

from deltarank.base.targets import PREDICTIONS
from deltarank.core.arrays import ArrayFileError, Arrays, join_sparse, read_arrays, write_arrays
from deltarank.storage.plain import dumps, from_plain, to_plain
from deltarank.storage.registry import REFUSED, STORED, Stored

# Raised when files hold something that older releases would misread.
FORMAT = "1"
_KINDS = {"f": "floats", "i": "integers", "b": "true or false"}
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
    extra : numbers, strings, lists and dicts of them, optional
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
    state = {
        "ranker": name,
        "parameters": {key: to_plain(value, key) for key, value in parameters.items()},
        "values": values,
        "extra": to_plain(extra, "extra"),
    }
    write_arrays(Path(path), arrays, {"deltarank_format": FORMAT, "state": dumps(state)})


def load(path: str | PathLike[str]) -> Any:
    """Read a ranker from a file; its arrays stay on disk, mapped into memory.

    Everything is checked first: a damaged or foreign file is refused with `ModelFileError`.

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
    return load_with_extra(path)[0]


def load_with_extra(path: str | PathLike[str]) -> tuple[Any, Any]:
    """Read a ranker and what was kept beside it.

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
    arrays, strings = read_arrays(path, error=ModelFileError)
    version = strings.get("deltarank_format")
    if version != FORMAT:
        raise ModelFileError(
            path, f"this release reads model format {FORMAT}; the file has format {version!r}"
        )
    try:
        return _restore(path, arrays, json.loads(strings["state"]))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
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


def _restore(path: Path, arrays: Arrays, state: dict[str, Any]) -> tuple[Any, Any]:
    name = state["ranker"]
    if name not in STORED:
        raise ModelFileError(path, f"unknown ranker {name!r}; known are {', '.join(STORED)}")
    entry = STORED[name]
    values = {key: from_plain(value) for key, value in state["values"].items()}
    classes = _classes_from_plain(values.pop("classes_"))
    names = values.pop("feature_names_in_")
    for key, form in entry.maybe_sparse.items():
        if key not in arrays:
            arrays[key] = _to_sparse(path, key, form, arrays, values["n_features_in_"])
    lacking = ({*entry.values, *_COMMON} ^ set(values)) | (set(entry.arrays) ^ set(arrays))
    if not lacking <= set(entry.optional):
        raise ModelFileError(path, f"it does not hold what a {name} consists of")
    _check_common(path, values, classes, names)
    _check_arrays(path, entry, arrays, values, len(classes))
    parameters = {key: from_plain(value) for key, value in state["parameters"].items()}
    ranker = getattr(import_module(entry.home), name)(**parameters)
    for key, value in {**arrays, **values, "classes_": classes}.items():
        setattr(ranker, key, value)
    if names is not None:
        ranker.feature_names_in_ = np.array(names, dtype=object)
    return ranker, from_plain(state["extra"])


def _check_common(path: Path, values: dict[str, Any], classes: Any, names: Any) -> None:
    n_features = values["n_features_in_"]
    if type(n_features) is not int or n_features < 1:
        raise ModelFileError(path, f"n_features_in_ must be a positive integer; got {n_features!r}")
    if values["_form"] not in PREDICTIONS:
        raise ModelFileError(path, f"the form of labels is unknown: {values['_form']!r}")
    if names is not None and (len(names) != n_features or not all(type(n) is str for n in names)):
        raise ModelFileError(path, f"feature_names_in_ must be {n_features} strings")
    if classes.ndim != 1 or len(classes) == 0:
        raise ModelFileError(path, "classes_ must be the names of the labels")


def _check_arrays(
    path: Path, entry: Stored, arrays: Arrays, values: dict[str, Any], n_classes: int
) -> None:
    """Check that arrays have the kinds and dimensions of the entry, and finite numbers."""
    n_labels = 1 if values["_form"] == "binary" else n_classes
    sizes = {"m": n_labels, "d": values["n_features_in_"], "b": 3}
    for name, array in arrays.items():
        kind, dimensions = entry.arrays[name].split()
        if array.dtype.kind != kind:
            raise ModelFileError(path, f"{name} must be {_KINDS[kind]}; got {array.dtype}")
        wanted = tuple(
            sizes.setdefault(letter, n) for letter, n in zip(dimensions, array.shape, strict=False)
        )
        if len(array.shape) != len(dimensions) or array.shape != wanted:
            raise ModelFileError(
                path, f"{name} must have shape {_named_shape(dimensions, sizes)}; got {array.shape}"
            )
        numbers = array.data if sparse.issparse(array) else array
        if name not in entry.not_finite and not np.isfinite(numbers).all():
            raise ModelFileError(path, f"{name} must be finite; got NaN or infinity")
        if name in entry.feature_numbers and not ((array >= 0) & (array < sizes["d"])).all():
            raise ModelFileError(path, f"{name} must be numbers of features, below {sizes['d']}")


def _present(ranker: Any, names: Iterable[str], stored: Stored) -> list[str]:
    """Return the names that this fit has: all but the optional ones it lacks."""
    return [name for name in names if name not in stored.optional or hasattr(ranker, name)]


def _to_sparse(path: Path, name: str, form: str, arrays: Arrays, n_columns: int) -> Any:
    """Put the three parts of a sparse array together, and see that they fit."""
    if form == "csr":
        kind, shape = sparse.csr_array, (len(arrays[f"{name}.indptr"]) - 1, n_columns)
    else:
        # The file holds no number of rows; the later check of shapes finds a wrong one.
        kind, shape = sparse.csc_array, (int(arrays["intercept_"].shape[0]), n_columns)
    try:
        return join_sparse(arrays, name, kind, shape)
    except ValueError as error:
        raise ModelFileError(path, f"{name} is no sparse matrix: {error}") from None


def _named_shape(dimensions: str, sizes: dict[str, int]) -> str:
    return "(" + ", ".join(str(sizes.get(letter, letter)) for letter in dimensions) + ")"


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
    return np.array(value["names"], dtype=str if kind.kind == "U" else kind)
