"""Files that are either whole or not there."""

import errno
import glob
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # not on Windows: there what a killed writer leaves behind stays
    fcntl = None  # type: ignore[assignment]

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.unfinished", re.DOTALL)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write so that a crash, a full disk or a reader never meets half of it.

    What is written goes to a temporary file beside it, is forced to disk, and then takes the name.
    Temporary files of writers of the same name that were killed are removed. A link stays a link to
    the new file, which has the mode of the old one; a device or a pipe is refused.
    """
    path = Path(os.path.realpath(path))
    refuse_device(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(path)
    handle, temporary = _new_file(path)
    try:
        with named_errors(path), os.fdopen(handle, "wb") as file:
            yield file
            _keep_mode(path, temporary)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows renames no open file; elsewhere the lock lasts as long
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def refuse_device(path: Path) -> None:
    """Refuse what no file may take the place of, such as /dev/null.

    Examples
    --------
    >>> refuse_device(Path("/dev/null"))
    Traceback (most recent call last):
    OSError: [Errno 22] Is a device or a pipe, which a file must not replace: '/dev/null'
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        problem = "Is a device or a pipe, which a file must not replace"
        raise OSError(errno.EINVAL, problem, str(path))


def _keep_mode(path: Path, temporary: Path) -> None:
    """Give a new file the mode of the one that it will replace."""
    with suppress(OSError):  # there is none, or somebody else's
        temporary.chmod(stat.S_IMODE(path.stat().st_mode))


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file at once, whole or not at all: see `whole_file`."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_new(path: Path, content: str) -> None:
    """Write a small file, whole, unless there is one of that name: then that one stays.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "owner")
    >>> write_new(path, "first"), write_new(path, "second"), path.read_text()
    (None, None, 'first')
    """
    _remove_unfinished(path)
    handle, temporary = _new_file(path)
    try:
        with named_errors(path), os.fdopen(handle, "wb") as file:
            file.write(content.encode())
            file.flush()
            os.fsync(file.fileno())
            try:
                os.link(temporary, path)
            except FileExistsError:
                return
            except OSError:  # a file system without links
                path.write_text(content)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def locked_folder(folder: Path) -> Iterator[bool]:
    """Hold a folder for this process and thread alone; give whether nobody else holds it.

    The system lets go when the process ends, however it ends. Where there are no locks, as on
    Windows and some network file systems, everybody holds it.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with locked_folder(folder) as first, locked_folder(folder) as second:
    ...     first, second
    (True, False)
    """
    if fcntl is None:
        yield True
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        except OSError:  # no locks here
            yield True
        else:
            yield True
    finally:
        os.close(handle)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Give an error of the system the name of the file, which a failed write does not know.

    Examples
    --------
    >>> with named_errors(Path("rows.jsonl")):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'rows.jsonl'
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def is_unfinished(path: Path) -> bool:
    """Tell whether a file is what a killed writer left behind.

    Examples
    --------
    >>> is_unfinished(Path(".fit.json.0123abcd.unfinished")), is_unfinished(Path("fit.json"))
    (True, False)
    """
    return _UNFINISHED.fullmatch(path.name) is not None


def _new_file(path: Path) -> tuple[int, Path]:
    """Open a new file beside the path, locked as long as it is open."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.unfinished")
        # As readable as any other new file: the system takes the user's mask off.
        with suppress(FileExistsError):
            handle = os.open(temporary, _NEW, 0o666)
            # Somebody who tidies up may have had the lock first, and removed the file.
            if not _lock(handle) or os.fstat(handle).st_nlink:
                return handle, temporary
            os.close(handle)


def _remove_unfinished(path: Path) -> None:
    """Remove temporary files of the path that nobody holds open any more."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.unfinished"):
        if not is_unfinished(leftover):
            continue
        with suppress(OSError):
            handle = os.open(leftover, os.O_RDWR)
            try:
                if _lock(handle, wait=False):
                    leftover.unlink()
            finally:
                os.close(handle)


def _lock(handle: int, *, wait: bool = True) -> bool:
    """Lock an open file; return False where it is locked by another or cannot be."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # some network file systems know no locks
        return False
    return True
