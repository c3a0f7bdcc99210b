"""A short text that tells one fit from another: of other data, labels, weights or options."""

import hashlib
import json
from typing import Any

import numpy as np

from deltarank.linear.path import Pass
from deltarank.linear.rows.matrices import Array


def fingerprint(data: Pass, blocks: list[Array], start: Any, **options: Any) -> str:
    """Return a checksum of all that decides what blocks of problems are solved to."""
    digest = hashlib.blake2b(digest_size=32)
    digest.update(json.dumps([data.shape, data.C, data.penalize_intercept, options]).encode())
    starts = () if start is None else [np.asarray(part) for part in start]
    for array in (*blocks, *starts):
        digest.update(_bytes(array))
    for array in data.arrays():
        digest.update(json.dumps([array.dtype.str, array.shape]).encode())
        digest.update(_bytes(array))
    return digest.hexdigest()


def _bytes(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
