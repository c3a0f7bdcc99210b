"""Blocks of labels that are done, kept in a folder, so that a killed fit goes on from there."""

import json
from pathlib import Path
from typing import Any

from scipy import sparse

from deltarank.core.arrays import ArrayFileError, join_sparse, read_arrays, write_arrays
from deltarank.core.files import is_unfinished, write_whole

# Raised when blocks come to hold something else.
FORMAT = 3


class Checkpoint:
    """A folder of blocks, each a file that is whole or not there, and what fit they are of.

    Parameters
    ----------
    folder : str
        Made if it is not there.
    fingerprint : str
        Of the data and options; a folder of another fit is refused.
    """

    def __init__(self, folder: str, fingerprint: str) -> None:
        self.folder = Path(folder)
        about = self.folder / "fit.json"
        this_fit = {"format": FORMAT, "fingerprint": fingerprint}
        if not about.exists():
            if self.folder.is_dir() and not all(map(is_unfinished, self.folder.iterdir())):
                raise ValueError(
                    f"checkpoint must be a new or empty folder, or one of this very fit; "
                    f"{folder} holds other files"
                )
            write_whole(about, json.dumps(this_fit))
        elif about.read_text() != json.dumps(this_fit):
            raise ValueError(
                f"checkpoint {folder} belongs to a fit of other data or other parameters; "
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
        for name, shape in json.loads(strings["shapes"]).items():
            arrays[name] = join_sparse(arrays, name, sparse.csr_array, tuple(shape))
        return arrays

    def save(self, number: int, arrays: dict[str, Any]) -> None:
        """Keep a block."""
        shapes = {name: part.shape for name, part in arrays.items() if sparse.issparse(part)}
        write_arrays(self._path(number), arrays, {"shapes": json.dumps(shapes)})

    def _path(self, number: int) -> Path:
        return self.folder / f"block-{number:06}.safetensors"
