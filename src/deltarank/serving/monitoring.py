"""What every answer has in common: the headers of the policy, a count, a line in the log."""

import time
from typing import Any

from fastapi.responses import JSONResponse

from deltarank.serving.metrics import Metrics
from deltarank.serving.request_log import RequestLog

# On every answer, unless it has its own: nothing is a page to frame, to guess at, or to keep.
POLICY = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_POLICY = [(name.encode(), value.encode()) for name, value in POLICY.items()]
METHODS = frozenset({"GET", "HEAD", "POST"})
# Clients choose what else they ask for; counts by names of theirs would grow without end.
OTHER = "other"
_PATH_LOGGED = 200


class Monitor:
    """Puts the policy on every answer, counts and logs it, and refuses what would be too many."""

    def __init__(
        self, app: Any, metrics: Metrics, log: RequestLog | None, paths: frozenset[str], most: int
    ) -> None:
        self._app, self._metrics, self._log = app, metrics, log
        self._paths, self._most = paths, most

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status, n_bytes = 500, 0  # which is what becomes of an answer that is never begun

        async def noted(message: Any) -> None:
            nonlocal status, n_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": with_policy(message.get("headers", []))}
            n_bytes += len(message.get("body", b""))
            await send(message)

        self._metrics.n_running += 1
        try:
            await self._limited(scope, receive, noted)
        finally:
            self._metrics.n_running -= 1
            self._note(scope, status, n_bytes, time.perf_counter() - begun)

    async def _limited(self, scope: Any, receive: Any, send: Any) -> None:
        app = self._app
        if self._metrics.n_running > self._most:
            problem = f"{self._most} requests are being answered; try again later"
            app = JSONResponse({"detail": problem}, 503, {"connection": "close"})
        await app(scope, receive, send)

    def _note(self, scope: Any, status: int, n_bytes: int, seconds: float) -> None:
        method, path = scope["method"], scope["path"]
        self._metrics.add(
            method if method in METHODS else OTHER,
            path if path in self._paths else OTHER,
            status,
            seconds,
        )
        if self._log is not None:
            self._log.write(
                client=scope["client"][0] if scope.get("client") else None,
                method=method,
                path=path[:_PATH_LOGGED],
                status=status,
                bytes=n_bytes,
                seconds=round(seconds, 6),
            )


def with_policy(headers: Any) -> list[tuple[bytes, bytes]]:
    """Return headers, and those of the policy that are not among them."""
    names = {name.lower() for name, _ in headers}
    return [*headers, *(pair for pair in _POLICY if pair[0] not in names)]
