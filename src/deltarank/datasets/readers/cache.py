"""What was read, kept on disk: a second reading costs no parsing."""

import hashlib
import json
import zlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.core.files import whole_file
from deltarank.datasets.data import Data

# Changes when readers come to read something differently.
VERSION = 2
# Of a checksum of all that follows, and of the length of the JSON text before the arrays.
_WORD_BYTES = 4
_ALIGNMENT = 8
_PARTS = ("data", "indices", "indptr")


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
    stamp = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
    found = _load(kept, stamp)
    if found is None:
        found = read()
        _save(kept, stamp, (found.X, found.Y))
    return found


def _save(kept: Path, stamp: list[int], matrices: tuple[Any, Any]) -> None:
    arrays = [getattr(matrix, part) for matrix in matrices for part in _PARTS]
    shapes = [matrix.shape for matrix in matrices]
    kinds = [(array.dtype.str, len(array)) for array in arrays]
    text = json.dumps({"stamp": stamp, "shapes": shapes, "arrays": kinds}).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    pieces: list[bytes | memoryview] = [text]
    for array in arrays:
        pieces += [array.view(np.uint8).data, bytes(-array.nbytes % _ALIGNMENT)]
    length = len(text).to_bytes(_WORD_BYTES, "little")
    checksum = zlib.crc32(length)
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
    with whole_file(kept) as file:
        file.write(checksum.to_bytes(_WORD_BYTES, "little") + length)
        file.writelines(pieces)


def _load(kept: Path, stamp: list[int]) -> Data | None:
    try:
        content = np.fromfile(kept, np.uint8)
    except FileNotFoundError:
        return None
    if len(content) < 2 * _WORD_BYTES:
        return None
    checksum, length = content[: 2 * _WORD_BYTES].view("<u4").tolist()
    if zlib.crc32(content[_WORD_BYTES:].data) != checksum:
        return None
    rest = content[2 * _WORD_BYTES :]
    header = json.loads(rest[:length].tobytes())
    if header["stamp"] != stamp:
        return None
    arrays, at = [], length
    for kind, count in header["arrays"]:
        end = at + np.dtype(kind).itemsize * count
        arrays.append(rest[at:end].view(kind))
        at = end + -end % _ALIGNMENT
    X, Y = (
        sparse.csr_array(tuple(arrays[i : i + 3]), shape=tuple(shape))
        for i, shape in zip((0, 3), header["shapes"], strict=True)
    )
    return Data(X, Y)
