"""Blocks of labels that are done, kept in a folder, so that a killed fit goes on from there."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from scipy import sparse

from deltarank.core.arrays import ArrayFileError, join_sparse, read_arrays, write_arrays
from deltarank.core.files import is_unfinished, locked_folder, write_new

# Raised when blocks come to hold something else.
FORMAT = 4


class Checkpoint:
    """A folder of blocks, each a file that is whole or not there, and what fit they are of.

    It is entered (``with``) by one fit at a time: two that start at once would mix their blocks.

    Parameters
    ----------
    folder : str
        Made if it is not there.
    fingerprint : str
        Of the data and options; a folder of another fit is refused.
    """

    def __init__(self, folder: str, fingerprint: str) -> None:
        self.folder, self.fingerprint = Path(folder), fingerprint
        self._held: ExitStack | None = None

    def __enter__(self) -> "Checkpoint":
        with ExitStack() as held:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not held.enter_context(locked_folder(self.folder)):
                raise ValueError(
                    f"checkpoint {self.folder} is in use by a fit that still runs; wait for it, or "
                    "choose another folder"
                )
            self._claim()
            self._held = held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._held is not None, "a checkpoint is entered before it is left"
        self._held.close()

    def _claim(self) -> None:
        """Enter this fit into an empty folder, or refuse a folder of another one."""
        about = self.folder / "fit.json"
        this_fit = json.dumps({"format": FORMAT, "fingerprint": self.fingerprint})
        if not about.exists():
            if not all(map(is_unfinished, self.folder.iterdir())):
                raise ValueError(
                    f"checkpoint must be a new or empty folder, or one of this very fit; "
                    f"{self.folder} holds other files"
                )
            write_new(about, this_fit)
        # Read in any case: where there are no locks, another fit may have been the first.
        if about.read_text() != this_fit:
            raise ValueError(
                f"checkpoint {self.folder} belongs to a fit of other data or other parameters; "
                "choose another folder, or delete this one"
            )

    def load(self, number: int) -> dict[str, Any] | None:
        """Return a block that is done, or None."""
        path = self._path(number)
        if not path.exists():
            return None
        try:
            arrays, strings = read_arrays(path, mapped=False)
        except ArrayFileError:
            raise ValueError(
                f"checkpoint file {path} is damaged; delete it, and its labels are fitted again"
            ) from None
        if strings.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"checkpoint file {path} is of another fit; delete it, and its labels are fitted "
                "again"
            )
        for name, shape in json.loads(strings["shapes"]).items():
            arrays[name] = join_sparse(arrays, name, sparse.csr_array, tuple(shape))
        return arrays

    def save(self, number: int, arrays: dict[str, Any]) -> None:
        """Keep a block."""
        shapes = {name: part.shape for name, part in arrays.items() if sparse.issparse(part)}
        strings = {"fingerprint": self.fingerprint, "shapes": json.dumps(shapes)}
        write_arrays(self._path(number), arrays, strings)

    def _path(self, number: int) -> Path:
        return self.folder / f"block-{number:06}.safetensors"
