"""Blocks of labels that are done, kept in a folder, so that a killed fit goes on from there."""

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.core.files import is_unfinished, write_whole

# Rises when blocks come to hold something else.
FORMAT = 2
_CHECKSUM_BYTES = 32
_CSR_PARTS = ("data", "indices", "indptr", "shape")


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
        mine = {"format": FORMAT, "fingerprint": fingerprint}
        if not about.exists():
            if self.folder.is_dir() and not all(map(is_unfinished, self.folder.iterdir())):
                raise ValueError(
                    f"checkpoint must be a new or empty folder, or one of this very fit; "
                    f"{folder} holds other files"
                )
            write_whole(about, json.dumps(mine))
        elif about.read_text() != json.dumps(mine):
            raise ValueError(
                f"checkpoint {folder} belongs to a fit of other data or other parameters; "
                "choose another folder, or delete this one"
            )

    def load(self, number: int) -> dict[str, Any] | None:
        """Return a block that is done, or None."""
        path = self._path(number)
        if not path.exists():
            return None
        content = path.read_bytes()
        content, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
        if hashlib.sha256(content).digest() != checksum:
            raise ValueError(
                f"checkpoint file {path} is damaged; delete it, and its labels are fitted again"
            )
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = dict(arrays)
        if "coef.indptr" in found:
            *parts, shape = (found.pop(f"coef.{part}") for part in _CSR_PARTS)
            found["coef"] = sparse.csr_array(tuple(parts), shape=tuple(shape))
        return found

    def save(self, number: int, arrays: dict[str, Any]) -> None:
        """Keep a block."""
        plain = dict(arrays)
        if sparse.issparse(arrays.get("coef")):
            coef = plain.pop("coef")
            plain |= {f"coef.{part}": np.asarray(getattr(coef, part)) for part in _CSR_PARTS}
        content = io.BytesIO()
        np.savez(content, **plain)
        write_whole(
            self._path(number), content.getvalue() + hashlib.sha256(content.getbuffer()).digest()
        )

    def _path(self, number: int) -> Path:
        return self.folder / f"block-{number:06}.npz"
