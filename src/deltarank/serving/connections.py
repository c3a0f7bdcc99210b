"""Connections that wait: none for long, and never so many that a new one finds no room."""

from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from deltarank.serving.monitoring import with_policy


def watched_protocol(seconds: float, most: int) -> type[H11Protocol]:
    """Return uvicorn's protocol with a deadline for requests, and room for newcomers.

    Parameters
    ----------
    seconds : float
        Within which the head of a request must come, the first as well as any later one.
    most : int
        With this many connections, the one that has waited longest without a request is closed for
        a new one: idle connections cannot keep others out, nor use up the files of the process.
    """
    waiting: dict[Any, None] = {}

    class Watched(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) >= most and waiting:
                next(iter(waiting)).leave()
            self.wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self.stop_waiting()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            super().handle_events()
            if self.cycle is not None and not self.cycle.response_complete:
                self.stop_waiting()

        def on_response_complete(self) -> None:
            self.wait()
            super().on_response_complete()  # which may begin with the next request

        def send_400_response(self, msg: str) -> None:
            """Answer what is not HTTP, and so reaches no application."""
            plain = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
            lines = [name + b": " + value for name, value in with_policy(plain)]
            head = [b"HTTP/1.1 400 Bad Request", *lines, b"", msg.encode("ascii")]
            self.transport.write(b"\r\n".join(head))
            self.transport.close()

        def wait(self) -> None:
            waiting[self] = None
            self.deadline = self.loop.call_later(seconds, self.leave)

        def stop_waiting(self) -> None:
            waiting.pop(self, None)
            self.deadline.cancel()

        def leave(self) -> None:
            self.stop_waiting()
            self.connections.discard(self)
            self.transport.abort()

    return Watched
