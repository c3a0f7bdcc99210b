"""Save rankers to files, and load them."""

import json
import warnings
from os import PathLike
from pathlib import Path
from typing import Any

import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from deltarank.base.ranker import Ranker
from deltarank.core.arrays import ArrayFileError, Arrays, read_arrays, write_arrays
from deltarank.storage.estimators import last_step, pack, unpack
from deltarank.storage.plain import dumps, from_plain, to_plain
from deltarank.storage.registry import STORED

# Raised when files hold something that older releases would misread.
FORMAT = "1"


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
    ranker : fitted ranker, or Pipeline that ends in one
        Also rankers round rankers, such as `CalibratedRanker`. Before it in a pipeline: scalers,
        imputers, one-hot and ordinal encoders, text vectorizers, PCA, truncated SVD, selections
        of features, ColumnTransformer and FeatureUnion of scikit-learn; see ``docs/models.md``.
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
    arrays: Arrays = {}
    _require_ranker(ranker)
    node = pack(ranker, arrays)
    extra_arrays: Arrays = {}
    state = {**node, "extra": to_plain(extra, "extra", extra_arrays)}
    if "estimator" in node:
        state["scikit_learn"] = sklearn.__version__
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
        state = json.loads(strings["state"])
        extra = from_plain(state.pop("extra"), arrays)
        version = state.pop("scikit_learn", sklearn.__version__)
        estimator = unpack(state, arrays)
    except ValueError as error:
        raise ModelFileError(path, str(error)) from None
    except (LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(path, f"its state is not that of a ranker ({error!r})") from None
    if version != sklearn.__version__:
        _warn_of_release(estimator, str(version))
    return estimator, extra


def _require_ranker(ranker: Any) -> None:
    """Refuse what ranks nothing."""
    last = last_step(ranker)
    if not isinstance(last, Ranker):
        raise ValueError(
            f"{type(last).__name__} cannot be saved; rankers that can are "
            f"{', '.join(STORED)}, those round them, and pipelines that end in one"
        )


def _warn_of_release(estimator: Any, version: str) -> None:
    """Say that scikit-learn keeps no promise about parts fitted by another release of it."""
    warnings.warn(
        InconsistentVersionWarning(
            estimator_name=type(estimator).__name__,
            current_sklearn_version=sklearn.__version__,
            original_sklearn_version=version,
        ),
        stacklevel=3,
    )
