"""Arrays and strings in one file, in the safetensors layout, mapped into memory when read.

The layout is the length of a JSON header in eight bytes, the header, and the arrays one after the
other. A checksum over all names, kinds, shapes, strings and bytes is one of the strings.
"""

import errno
import hashlib
import json
import math
import mmap
import os
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


class ModelFileError(ValueError):
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

    def __init__(self, path: str | PathLike[str], problem: str) -> None:
        self.path, self.problem = fspath(path), problem
        super().__init__(f"{self.path}: {problem}")


def write_tensors(path: Path, arrays: Arrays, strings: Strings) -> None:
    """Write arrays and strings; the file appears whole or not at all."""
    # Wide numbers first, so that all of them lie where memory likes them.
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    plain = {name: _little_endian(arrays[name]) for name in names}
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


def read_tensors(path: Path) -> tuple[Arrays, Strings]:
    """Map a file into memory; refuse it unless every byte is as it was written."""
    content = _mapped(path)
    header, begin = _read_header(path, content)
    strings = header.pop("__metadata__", None)
    if not isinstance(strings, dict) or not all(isinstance(v, str) for v in strings.values()):
        raise ModelFileError(path, "the header is damaged: its strings are missing")
    arrays: Arrays = {}
    at = begin
    for name, entry in header.items():
        array = _view(path, content, name, entry, at, begin)
        arrays[name] = array
        at += array.nbytes
    if at != len(content):
        raise ModelFileError(path, f"the file should have {at} bytes; got {len(content)}")
    if strings.pop("checksum", None) != _checksum(arrays, strings):
        raise ModelFileError(path, "the checksum is wrong: the file is damaged")
    return arrays, strings


def _mapped(path: Path) -> Any:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size <= _LENGTH_BYTES:
            raise ModelFileError(path, "not a model file: too short")
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            raise MemoryError(f"{path} does not fit into the memory that is left") from None


def _read_header(path: Path, content: Any) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    begin = _LENGTH_BYTES + length
    if begin > len(content) or length > _LARGEST_HEADER:
        raise ModelFileError(path, "not a model file, or cut short: its header is not all there")
    try:
        header = json.loads(content[_LENGTH_BYTES:begin].decode())
    except (ValueError, RecursionError):
        raise ModelFileError(path, "not a model file: its header is not JSON") from None
    if not isinstance(header, dict):
        raise ModelFileError(path, "not a model file: its header is no JSON object")
    return header, begin


def _view(path: Path, content: Any, name: str, entry: Any, at: int, begin: int) -> NDArray[Any]:
    """Return the array of an entry, which must start where the one before it ended."""
    problem = f"the header is damaged: array {name!r}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(path, problem)
    shape, kind = entry["shape"], entry["dtype"]
    if (
        not isinstance(kind, str)
        or kind not in _KINDS
        or not isinstance(shape, list)
        or not all(type(n) is int and 0 <= n < 2**48 for n in shape)
        or len(shape) > 8
    ):
        raise ModelFileError(path, problem)
    count = math.prod(shape)
    end = at + count * np.dtype(_KINDS[kind]).itemsize
    if entry["data_offsets"] != [at - begin, end - begin] or end > len(content):
        raise ModelFileError(path, f"{problem} is not where it should be")
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
        raise ValueError(f"a model file cannot hold an array of type {array.dtype}")
    return np.ascontiguousarray(array, dtype=wanted).reshape(array.shape)
