"""Start the server, or say in a line why not."""

import socket
from dataclasses import replace
from pathlib import Path

from deltarank.cli.inputs import note
from deltarank.serving.examples import read_examples
from deltarank.serving.service import Limits, Service

# Connections that wait while all threads rank; more are sent away at once with 503.
MOST_CONNECTIONS = 1000
KEEP_ALIVE_S = 5


def run_server(path: Path, host: str, port: int, examples: Path | None, limits: Limits) -> None:
    """Serve a model until interrupted."""
    try:
        import uvicorn

        from deltarank.serving.app import create_app
    except ImportError as error:
        raise ImportError(
            "serving needs FastAPI and uvicorn: pip install 'deltarank[serve]'"
        ) from error
    service = Service.load(path, limits)
    if examples is not None:
        service = replace(service, examples=read_examples(examples, service.model.preparation))
    service.warm_up()
    listener = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    note(f"serving {path} at http://{shown}:{listener.getsockname()[1]}")
    config = uvicorn.Config(
        create_app(service),
        log_level="warning",
        timeout_keep_alive=KEEP_ALIVE_S,
        limit_concurrency=MOST_CONNECTIONS,
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Known to be TCP, so that asyncio sends answers at once: without, each waits 40 ms for its end.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(MOST_CONNECTIONS)
    except OSError as error:
        listener.close()
        problem = error.strerror or error
        raise ValueError(f"cannot listen at --host {host} --port {port}: {problem}") from None
    return listener
