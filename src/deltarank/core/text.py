"""Text of others on its way to a terminal."""

import re

# Controls other than the end of a line and the tab, and what changes the direction of writing.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""Return text with control characters written out, so that names cannot command a terminal.

    Examples
    --------
    >>> visible("red\x1b[2Jtape")
    'red\\x1b[2Jtape'
    """
    return _HIDDEN.sub(lambda match: ascii(match[0])[1:-1], text)
