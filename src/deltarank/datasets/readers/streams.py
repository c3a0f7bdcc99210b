"""Bytes of a file, plain or compressed, in chunks of whole lines."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from deltarank.core.files import whole_file
from deltarank.core.progress import progress
from deltarank.datasets.readers.errors import DataFileError

# Told by the first bytes, whatever the name.
_MAGIC: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
COMPRESSIONS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_CORRUPT = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
_MARK = b"\xef\xbb\xbf"  # some editors begin a UTF-8 file with it
CHUNK_BYTES = 1 << 24


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file to read; give its content, unpacked, and the file as it is on disk."""
    with path.open("rb") as raw:
        beginning = raw.read(6)
        raw.seek(0)
        unpack = next((opener for m, opener in _MAGIC.items() if beginning.startswith(m)), None)
        content = raw if unpack is None else unpack(raw, "rb")
        try:
            yield content, raw
        except _CORRUPT as error:
            raise DataFileError(
                path, f"compressed data is cut short or corrupt ({error})"
            ) from None
        except OSError as error:
            if unpack is None or error.errno is not None:
                raise
            raise DataFileError(path, f"compressed data is corrupt ({error})") from None


def beginning(path: Path, n_bytes: int = 1 << 16) -> bytes:
    """Return the first bytes of the content."""
    with opened(path) as (content, _):
        return _without_mark(content.read(n_bytes))


def chunks_of_lines(path: Path, n_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the content in chunks that end in a newline, with progress."""
    with opened(path) as (content, raw), progress(f"reading {path.name}", _size(path)) as done:
        rest, first = b"", True
        while piece := content.read(n_bytes):
            if first:
                piece, first = _without_mark(piece), False
            done(raw.tell())
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield rest + piece[:cut]
                rest = piece[cut:]
            else:
                rest += piece
        if rest:
            yield rest + b"\n"


def lines(path: Path, n_bytes: int = CHUNK_BYTES) -> Iterator[str]:
    """Yield the lines of a UTF-8 text without their ends; a byte that is none is refused."""
    number = 0
    for chunk in chunks_of_lines(path, n_bytes):
        try:
            text = chunk.decode()
        except UnicodeDecodeError as error:
            before = chunk[: error.start]
            raise DataFileError(
                path,
                f"text must be UTF-8; got the byte 0x{chunk[error.start]:02x}",
                line=number + before.count(b"\n") + 1,
                column=error.start - before.rfind(b"\n"),
            ) from None
        whole_lines = text.split("\n")[:-1]
        number += len(whole_lines)
        for line in whole_lines:
            yield line.removesuffix("\r")


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write, packed as its name says; it appears whole or not at all."""
    packer = COMPRESSIONS.get(path.suffix)
    with whole_file(path) as file:
        if packer is None:
            yield file
        else:
            with packer(file, "wb") as packed:
                yield packed


def _without_mark(piece: bytes) -> bytes:
    return piece.removeprefix(_MARK)


def _size(path: Path) -> int:
    return max(1, path.stat().st_size)
