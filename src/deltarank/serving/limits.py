"""Refuse requests that are too large or too slow before they are parsed."""

import asyncio
import time
from typing import Any

from fastapi import HTTPException
from fastapi.responses import JSONResponse

from deltarank.serving.service import Limits


class BodyLimit:
    """Counts the bytes of a request as they arrive, and limits the time until all are there.

    A request that declares too large a size is refused before it is read; one that declares none,
    or lies, as soon as it has sent too much.
    """

    def __init__(self, app: Any, limits: Limits) -> None:
        self._app, self._limits = app, limits

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if said.isdigit() and int(said) > self._limits.bytes:
            answer = JSONResponse({"detail": self._too_large()}, 413, {"connection": "close"})
            await answer(scope, receive, send)
            return
        await self._app(scope, self._limited(receive), send)

    def _limited(self, receive: Any) -> Any:
        n_bytes, ends = 0, time.monotonic() + self._limits.seconds
        whole = False

        async def limited() -> Any:
            nonlocal n_bytes, whole
            if whole:  # the server may wait here for the client to leave, as long as it likes
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, ends - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                problem = f"the request did not come within {self._limits.seconds:g} s"
                raise HTTPException(408, problem, {"connection": "close"}) from None
            n_bytes += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if n_bytes > self._limits.bytes:
                raise HTTPException(413, self._too_large(), {"connection": "close"})
            return message

        return limited

    def _too_large(self) -> str:
        return f"a request must have at most {self._limits.bytes} bytes; send fewer items at a time"
