"""Numbers of more digits than the kernels hold: Python reads them, exactly."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.datasets.readers.kernels.decimals import NAN_BITS, OFFSET_MASK

_NUMBER = re.compile(rb"[-+.\deE]+")


def read_undecided(text: bytes, values: NDArray[np.float64]) -> int | None:
    """Fill in values left as NaNs by `read_number`; return the offset of one that is infinite."""
    flat = values.reshape(-1)
    for index in np.flatnonzero(np.isnan(flat)):
        bits = int(flat[index : index + 1].view(np.uint64)[0])
        offset = bits & OFFSET_MASK
        if bits & NAN_BITS == NAN_BITS and offset:
            token: Any = _NUMBER.match(text, offset - 1)
            flat[index] = float(token.group())
            if np.isinf(flat[index]):
                return offset - 1
    return None
