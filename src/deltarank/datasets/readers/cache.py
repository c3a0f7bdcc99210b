"""What was read, kept on disk: a second reading costs no parsing."""

import hashlib
import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from scipy import sparse

from deltarank.core.arrays import ArrayFileError, join_sparse, read_arrays, write_arrays
from deltarank.datasets.data import Data

# Raised when readers or this file format change.
VERSION = 3


def cached(
    path: Path,
    folder: str | PathLike[str] | None,
    options: dict[str, Any],
    read: Callable[[], Data],
) -> Data:
    """Return what was kept of a file if that has not changed since, else read and keep it.

    Kept are the matrices of a reading, without names. A damaged copy is read anew.
    """
    if folder is None:
        return read()
    name = json.dumps([VERSION, str(path.resolve()), options], sort_keys=True)
    kept = Path(folder) / f"{path.name}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    state = path.stat()
    stamp = json.dumps([state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino])
    data = _load(kept, stamp)
    if data is None:
        data = read()
        _save(kept, stamp, data)
    return data


def _save(kept: Path, stamp: str, data: Data) -> None:
    shapes = json.dumps([data.X.shape, data.Y.shape])
    write_arrays(kept, {"X": data.X, "Y": data.Y}, {"stamp": stamp, "shapes": shapes})


def _load(kept: Path, stamp: str) -> Data | None:
    try:
        # Not mapped: whoever reads data may change it in place.
        arrays, strings = read_arrays(kept, mapped=False)
        if strings["stamp"] != stamp:
            return None
        shapes = zip("XY", json.loads(strings["shapes"]), strict=True)
        # A checksum can be forged, so the parts are checked as well.
        return Data(*(join_sparse(arrays, name, sparse.csr_array, tuple(n)) for name, n in shapes))
    except (FileNotFoundError, ArrayFileError, KeyError, TypeError, ValueError):
        return None
