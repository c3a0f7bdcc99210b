"""Named arrays and strings in one file that is whole or not there, and checked when it is read.

The layout is that of safetensors: the length of a JSON header in eight bytes, the header, and the
arrays one after the other. A checksum over all names, kinds, shapes, strings and bytes is one of
the strings. Models, copies of what was parsed and checkpoints are such files.
"""

import errno
import hashlib
import json
import math
import mmap
import os
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.files import whole_file

Arrays = dict[str, NDArray[Any]]
Strings = dict[str, str]
_KINDS = {
    "F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _KINDS.items()}
_LENGTH_BYTES = 8
_LARGEST_HEADER = 100_000_000  # that of the safetensors library
_SPARSE_PARTS = ("data", "indices", "indptr")


class ArrayFileError(ValueError):
    """A file of arrays that is damaged, or not one."""

    kind = "file of arrays"

    def __init__(self, path: str | PathLike[str], problem: str) -> None:
        self.path, self.problem = fspath(path), problem
        super().__init__(f"{self.path}: {problem}")


def write_arrays(path: Path, arrays: Mapping[str, Any], strings: Strings) -> None:
    """Write arrays and strings; the file appears whole or not at all.

    A sparse matrix becomes three arrays, such as ``coef.data``, ``coef.indices`` and
    ``coef.indptr``; its shape is the caller's to keep.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "numbers")
    >>> write_arrays(path, {"a": np.arange(3), "b": sparse.eye_array(2, format="csr")}, {"of": "x"})
    >>> arrays, strings = read_arrays(path)
    >>> arrays["a"], strings
    (array([0, 1, 2]), {'of': 'x'})
    >>> join_sparse(arrays, "b", sparse.csr_array, (2, 2)).toarray()
    array([[1., 0.],
           [0., 1.]])
    """
    dense = {name: part for key, value in arrays.items() for name, part in _dense(key, value)}
    # Wide numbers first, so that all of them lie where memory likes them.
    names = sorted(dense, key=lambda name: (-dense[name].itemsize, name))
    plain = {name: _little_endian(dense[name]) for name in names}
    header: dict[str, Any] = {"__metadata__": {**strings, "checksum": _checksum(plain, strings)}}
    at = 0
    for name, array in plain.items():
        end = at + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, end],
        }
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)
    with whole_file(path) as file:
        file.write(len(text).to_bytes(_LENGTH_BYTES, "little") + text)
        for array in plain.values():
            file.write(_bytes(array))


def read_arrays(
    path: Path, *, mapped: bool = True, error: type[ArrayFileError] = ArrayFileError
) -> tuple[Arrays, Strings]:
    """Read a file; refuse it unless every byte is as it was written.

    Parameters
    ----------
    path : path
    mapped : bool
        Map the file into memory: its arrays are read only, and cost memory only while in use.
        Without, they are the caller's own, and what becomes of the file changes nothing.
    error : type of ArrayFileError
        What to raise for a file that is refused.
    """
    # A pipe would be waited for, and a device may have no end.
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise error(path, f"not a {error.kind}: a pipe or a device, not a file on a disk")
    content = _content(path, mapped)
    try:
        return _parse(content, error.kind)
    except ValueError as problem:
        raise error(path, str(problem)) from None


def join_sparse(arrays: Arrays, name: str, kind: Any, shape: tuple[int, int]) -> Any:
    """Take the three parts of a sparse matrix out of the arrays, and put them together.

    Raises ValueError where they are the parts of no such matrix.
    """
    parts = [arrays.pop(f"{name}.{part}") for part in _SPARSE_PARTS]
    _, indices, starts = parts
    # SciPy's own check trusts these.
    if not all(part.dtype.kind in "iu" for part in parts[1:]) or starts[-1:].tolist() != [
        len(indices)
    ]:
        raise ValueError(f"{name} must have places that are integers, as many as its starts say")
    matrix = kind(tuple(parts), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def with_narrow_places(matrix: Any) -> Any:
    """Return a compressed sparse matrix whose places are int32 if they fit: a third smaller.

    Examples
    --------
    >>> starts = np.array([0, 1, 2], dtype=np.int64)
    >>> wide = sparse.csr_array((np.ones(2), np.array([0, 1]), starts), shape=(2, 2))
    >>> with_narrow_places(wide).indices.dtype
    dtype('int32')
    """
    if max(matrix.nnz, *matrix.shape) > np.iinfo(np.int32).max:
        return matrix
    structure = (part.astype(np.int32, copy=False) for part in (matrix.indices, matrix.indptr))
    return type(matrix)((matrix.data, *structure), shape=matrix.shape)


def _dense(name: str, value: Any) -> list[tuple[str, NDArray[Any]]]:
    """Return an array under its name; a sparse one as its three parts."""
    if not sparse.issparse(value):
        return [(name, np.asarray(value))]
    value = with_narrow_places(value)
    return [(f"{name}.{part}", getattr(value, part)) for part in _SPARSE_PARTS]


def _content(path: Path, mapped: bool) -> Any:
    """Return the bytes of a file, to be cut and to be seen as arrays."""
    with path.open("rb") as file:
        if not mapped or not os.fstat(file.fileno()).st_size:  # nothing cannot be mapped
            return np.fromfile(file, np.uint8).data
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            raise MemoryError(f"{path} does not fit into the memory that is left") from None


def _parse(content: Any, kind: str) -> tuple[Arrays, Strings]:
    """Return what the bytes hold, or raise ValueError with what is wrong."""
    header, begin = _read_header(content, kind)
    strings = header.pop("__metadata__", None)
    if not isinstance(strings, dict) or not all(isinstance(v, str) for v in strings.values()):
        raise ValueError("the header is damaged: its strings are missing")
    arrays: Arrays = {}
    at = begin
    for name, entry in header.items():
        arrays[name] = _view(content, name, entry, at, begin)
        at += arrays[name].nbytes
    if at != len(content):
        raise ValueError(f"the file should have {at} bytes; got {len(content)}")
    if strings.pop("checksum", None) != _checksum(arrays, strings):
        raise ValueError("the checksum is wrong: the file is damaged")
    return arrays, strings


def _read_header(content: Any, kind: str) -> tuple[dict[str, Any], int]:
    if len(content) <= _LENGTH_BYTES:
        raise ValueError(f"not a {kind}: too short")
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    begin = _LENGTH_BYTES + length
    if begin > len(content) or length > _LARGEST_HEADER:
        raise ValueError(f"not a {kind}, or cut short: its header is not all there")
    try:
        header = json.loads(bytes(content[_LENGTH_BYTES:begin]).decode())
    except (ValueError, RecursionError):
        raise ValueError(f"not a {kind}: its header is not JSON") from None
    if not isinstance(header, dict):
        raise ValueError(f"not a {kind}: its header is no JSON object")
    return header, begin


def _view(content: Any, name: str, entry: Any, at: int, begin: int) -> NDArray[Any]:
    """Return the array of an entry, which must start where the one before it ended."""
    problem = f"the header is damaged: array {name!r}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(problem)
    shape, kind = entry["shape"], entry["dtype"]
    if (
        not isinstance(kind, str)
        or kind not in _KINDS
        or not isinstance(shape, list)
        or not all(type(n) is int and 0 <= n < 2**48 for n in shape)
        or len(shape) > 8
    ):
        raise ValueError(problem)
    count = math.prod(shape)
    end = at + count * np.dtype(_KINDS[kind]).itemsize
    if entry["data_offsets"] != [at - begin, end - begin] or end > len(content):
        raise ValueError(f"{problem} is not where it should be")
    if count == 0:
        return np.empty(shape, _KINDS[kind])
    return np.frombuffer(content, _KINDS[kind], count, at).reshape(shape)


def _checksum(arrays: Arrays, strings: Strings) -> str:
    digest = hashlib.sha256(json.dumps(strings, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.str, list(array.shape)]).encode())
        digest.update(_bytes(array))
    return digest.hexdigest()


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    wanted = np.dtype(array.dtype).newbyteorder("<")
    if wanted not in _NAMES:
        raise ValueError(f"a file of arrays cannot hold numbers of type {array.dtype}")
    return np.ascontiguousarray(array, dtype=wanted).reshape(array.shape)
