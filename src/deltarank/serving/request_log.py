"""A line of JSON per request."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class RequestLog:
    r"""One JSON object per line and request; without bodies, queries and tokens.

    A log that can no longer be written, as on a full disk, ends; the server goes on.

    Parameters
    ----------
    descriptor : int
        Of an open file.
    complain : callable
        Is told, in a line, when the log ends.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "requests.jsonl")
    >>> log = RequestLog.open(path, print)
    >>> log.write(path="/rank", status=200)
    >>> path.read_text()[-32:]
    '"path": "/rank", "status": 200}\n'
    """

    def __init__(self, descriptor: int, complain: Callable[[str], None]) -> None:
        self._descriptor: int | None = descriptor
        self._complain = complain

    @classmethod
    def open(cls, path: Path, complain: Callable[[str], None]) -> "RequestLog":
        """Append to a file, which may be a pipe that somebody reads."""
        # A pipe that nobody reads is an error then; it would keep the server from starting.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, flags, 0o666)
        os.set_blocking(descriptor, True)
        return cls(descriptor, complain)

    def write(self, **fields: Any) -> None:
        """Add a line, with the time at its beginning."""
        if self._descriptor is None:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, **fields}) + "\n"
        try:
            os.write(self._descriptor, line.encode("ascii"))
        except OSError as error:
            self._descriptor = None
            self._complain(f"requests are no longer logged: {error.strerror or error}")
