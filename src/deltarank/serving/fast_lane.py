"""The short way for the usual request: one item, no reasons, a model that ranks in no time.

Whatever else comes, or goes wrong, takes the usual way, with the request as it was: there is one
place for checks and errors.
"""

import json
from typing import Any

from fastapi import HTTPException

from deltarank.serving.items import ItemError
from deltarank.serving.metrics import Metrics
from deltarank.serving.service import Service

# Longer texts would keep others waiting.
MOST_BYTES = 1 << 14
MOST_LABELS = 1000
_KEYS = frozenset({"item", "items", "top", "explain", "sets"})
_JSON = b"application/json"


class FastLane:
    """Answers requests for one item where they come in, without a thread and without models."""

    def __init__(self, app: Any, service: Service, metrics: Metrics, is_open: bool) -> None:
        self._app, self._service, self._metrics = app, service, metrics
        self._open = is_open

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request as ASGI has it."""
        if not self._open or not _is_rank(scope):
            await self._app(scope, receive, send)
            return
        messages: list[Any] = []
        body = b""
        while not messages or messages[-1].get("more_body", False):
            try:
                messages.append(await receive())
            except HTTPException as error:  # too large or too late: for the usual way to tell
                messages.append(error)
                break
            body += messages[-1].get("body", b"")
        answer = self._answer(body) if not isinstance(messages[-1], HTTPException) else None
        if answer is None:
            await self._app(scope, _again(messages, receive), send)
            return
        self._metrics.n_items += 1
        headers = [(b"content-length", b"%d" % len(answer)), (b"content-type", _JSON)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _answer(self, body: bytes) -> bytes | None:
        """Return the answer to the usual request, None for any other and for mistakes."""
        if len(body) > MOST_BYTES:
            return None
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            return None
        if not isinstance(asked, dict) or not asked.keys() <= _KEYS or asked.get("explain", False):
            return None
        items = asked.get("items") if asked.get("item") is None else [asked["item"]]
        top = asked.get("top", 5)
        if (
            not isinstance(items, list)
            or len(items) != 1
            or (asked.get("item") is not None and asked.get("items") is not None)
            or type(top) is not int
            or not 1 <= top <= MOST_LABELS
        ):
            return None
        try:
            return self._service.rank_to_json(items, top, False, asked.get("sets"))
        except ItemError:
            return None


def _is_rank(scope: Any) -> bool:
    if scope["type"] != "http" or scope["path"] != "/rank" or scope["method"] != "POST":
        return False
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    return kinds == [_JSON]


def _again(messages: list[Any], receive: Any) -> Any:
    """Return a `receive` that gives what has come already, then whatever comes."""
    coming = iter(messages)

    async def replayed() -> Any:
        message = next(coming, None)
        if message is None:
            return await receive()
        if isinstance(message, HTTPException):
            raise message
        return message

    return replayed
