"""Find the files of a data set, or get them, and make sure that they are the right ones."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deltarank.core.extras import install
from deltarank.core.progress import progress
from deltarank.datasets.catalogue import DataSet, File
from deltarank.datasets.readers.errors import DataFileError
from deltarank.datasets.readers.streams import COMPRESSIONS

VARIABLE = "DELTARANK_DATA"


def folders() -> list[Path]:
    """Return where files are looked for: the folder in DELTARANK_DATA, then the user's cache.

    A user without a home has no cache but one among temporary files.
    """
    named = os.environ.get(VARIABLE)
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        cache = Path(home).expanduser() / "deltarank"
    except RuntimeError:
        cache = Path(tempfile.gettempdir(), "deltarank")
    return [Path(named), cache] if named else [cache]


def find(file: File) -> Path | None:
    """Return the path of a file that is there, whatever it holds; None if it is not."""
    endings = ["", *COMPRESSIONS] if file.sha256 is None else [""]
    for folder in folders():
        for ending in endings:
            path = folder / f"{file.name}{ending}"
            if path.is_file():
                return path
    return None


def is_here(entry: DataSet) -> bool:
    """Tell whether all the files of a data set are there."""
    return all(find(file) is not None for file in entry.files)


def fetch(entry: DataSet) -> list[Path]:
    """Return the files of a data set, downloaded if need be, and checked."""
    paths = []
    for file in entry.files:
        path = find(file)
        if path is None:
            path = _download(entry, file)
        elif file.sha256 is not None and _sha256(path) != file.sha256:
            raise DataFileError(
                path,
                f"not the file of {entry.name} that is wanted: its SHA-256 should be "
                f"{file.sha256}; delete it to have it downloaded again",
            )
        paths.append(path)
    return paths


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(entry: DataSet, file: File) -> Path:
    target = folders()[-1] / file.name
    if file.url is None:
        raise FileNotFoundError(_where_to_put(entry, file, "no address of a single file is known"))
    try:
        import pooch
    except ImportError:
        why = f"downloading needs pooch: {install('download')}"
        raise FileNotFoundError(_where_to_put(entry, file, why)) from None
    pooch.get_logger().setLevel("ERROR")
    try:
        with _bar(target.name) as bar:
            pooch.retrieve(
                file.url,
                known_hash=f"sha256:{file.sha256}",
                fname=target.name,
                path=target.parent,
                downloader=pooch.HTTPDownloader(progressbar=bar, timeout=30),
            )
    except (OSError, ValueError) as error:
        why = f"downloading {file.url} failed ({type(error).__name__}: {str(error)[:60]}...)"
        raise FileNotFoundError(_where_to_put(entry, file, why)) from None
    return target


def _where_to_put(entry: DataSet, file: File, why: str) -> str:
    ending = "" if file.sha256 else " (or .gz, .bz2, .xz)"
    paths = " or ".join(str(folder / file.name) for folder in folders())
    unset = "" if os.environ.get(VARIABLE) else f"; {VARIABLE} may name another folder"
    return (
        f"data set {entry.name!r} is not here, and {why}: get it from {entry.source} and put it "
        f"at {paths}{ending}{unset}"
    )


class _Bar:
    """Our progress bar, in the form that pooch calls."""

    def __init__(self, title: str) -> None:
        self.title, self.total, self.count = title, 0, 0
        self._context: Any = None
        self._done: Any = None

    def update(self, amount: int) -> None:
        if self._context is None:
            self._context = progress(f"downloading {self.title}", max(1, self.total))
            self._done = self._context.__enter__()
        self.count += amount
        self._done(self.count)

    def reset(self) -> None:
        self.count = 0

    def close(self) -> None:
        if self._context is not None:
            self._context.__exit__(None, None, None)
            self._context = None


@contextmanager
def _bar(title: str) -> Iterator[_Bar]:
    bar = _Bar(title)
    try:
        yield bar
    finally:
        bar.close()
