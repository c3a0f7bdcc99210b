"""Bytes of a file, plain or compressed, in chunks of whole lines."""

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
# Bytes of a line, and of a packed file once it is unpacked: far beyond what data have, and within
# what a machine bears. A small file can unpack to a thousand times its size.
MOST = {"DELTARANK_MAX_LINE": 1 << 26, "DELTARANK_MAX_UNPACKED": 1 << 36}
_limits: ContextVar[tuple[int, int] | None] = ContextVar("limits", default=None)
_RETURNS_ONLY = (
    "lines must end in a newline, and these end in a carriage return alone; tr '\\r' '\\n' helps"
)
_TOO_LONG = "a line must have at most {} bytes; if it is right, raise max_line= (--max-line)"
_TOO_LARGE = (
    "it unpacks to more than {} bytes; if it is right, raise max_unpacked= (--max-unpacked)"
)


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


@contextmanager
def limited(line: int | None, unpacked: int | None) -> Iterator[None]:
    """Read with other limits on the bytes of a line, and on those that a packed file unpacks to."""
    usual = _line_and_unpacked()
    token = _limits.set((line or usual[0], unpacked or usual[1]))
    try:
        yield
    finally:
        _limits.reset(token)


def _line_and_unpacked() -> tuple[int, int]:
    """Return the limits in force; by default those that the environment names, or our own."""
    line, unpacked = (int(os.environ.get(name, most)) for name, most in MOST.items())
    return _limits.get() or (line, unpacked)


def chunks_of_lines(path: Path, n_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the content in chunks that end in a newline, with progress; refuse endless lines."""
    longest, most = _line_and_unpacked()
    with opened(path) as (content, raw), progress(f"reading {path.name}", _size(path)) as done:
        rest, n_lines, n_read = b"", 0, 0
        while piece := content.read(n_bytes):
            is_first = not n_read
            n_read += len(piece)
            if content is not raw and n_read > most:
                raise DataFileError(path, _TOO_LARGE.format(most))
            if is_first:
                piece = _without_mark(piece)
                if b"\r" in piece.rstrip() and b"\n" not in piece:
                    raise DataFileError(path, _RETURNS_ONLY, line=1)
            done(raw.tell())
            rest += piece
            _check_lines(path, rest, longest, n_lines)
            cut = rest.rfind(b"\n") + 1
            if cut:
                n_lines += rest.count(b"\n")
                yield rest[:cut]
                rest = rest[cut:]
        if rest:
            yield rest + b"\n"


def _check_lines(path: Path, text: bytes, longest: int, n_lines: int) -> None:
    """Refuse a line that is too long."""
    if len(text) <= longest:
        return
    for number, line in enumerate(text.split(b"\n"), start=n_lines + 1):
        if len(line) > longest:
            raise DataFileError(path, _TOO_LONG.format(longest), line=number)


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
