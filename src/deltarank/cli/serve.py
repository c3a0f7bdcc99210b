"""The command ``serve``: a model behind HTTP."""

import socket
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from deltarank.cli import options

# Connections that wait while all threads rank; any more are answered at once with status 503.
MOST_CONNECTIONS = 1000
SERVER: dict[str, Any] = {
    "log_level": "error",  # clients could fill a log with warnings
    "timeout_keep_alive": 5,
    "server_header": False,
}


def serve(
    model: options.ModelFile,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any that is free.")
    ] = 8000,
    examples: Annotated[
        Path | None, typer.Option(help="File whose first rows the page offers to try.")
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Most items per request.")] = 1000,
    max_bytes: Annotated[int, typer.Option(min=1, help="Most bytes per request.")] = 1 << 20,
    max_labels: Annotated[
        int, typer.Option(min=1, help="Most labels per answer: items times top.")
    ] = 100_000,
    timeout: Annotated[
        float, typer.Option(min=0.01, help="Most seconds for a request to come, and to be ranked.")
    ] = 10.0,
    threads: options.Threads = None,
) -> None:
    """Serve a model: rankings as JSON for programs, a page for people.

    POST /rank ranks one item or several, GET /model describes the model, /health tells that the
    server is up, /docs documents it. The model is read once: to serve a new file, restart.
    There is no encryption and no password: to be reached from outside, put it behind a proxy.
    Needs the extra: pip install 'deltarank[serve]'.

    \b
    Examples:
      deltarank serve recipes.delta --examples recipes.csv
      curl -d '{"item": [1, 0.5, 3], "top": 3}' -H 'content-type: application/json' \\
        localhost:8000/rank
    """
    try:
        import uvicorn

        from deltarank.serving.app import create_app
        from deltarank.serving.connections import watched_protocol
    except ImportError as error:
        raise ImportError(
            "serving needs FastAPI and uvicorn: pip install 'deltarank[serve]'"
        ) from error
    from deltarank.cli.inputs import note
    from deltarank.serving.examples import read_examples
    from deltarank.serving.service import Limits, Service

    service = Service.load(model, Limits(max_rows, max_bytes, timeout, max_labels))
    if examples is not None:
        service = replace(service, examples=read_examples(examples, service.model.preparation))
    service.warm_up()
    listener = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    note(f"serving {model} at http://{shown}:{listener.getsockname()[1]}")
    most = _most_connections()
    protocol = watched_protocol(timeout, most)
    settings = uvicorn.Config(
        create_app(service),
        http=protocol,
        limit_concurrency=most,
        backlog=most // 8,  # as many are accepted at once, some times before one can be closed
        ws="none",
        **SERVER,
    )
    uvicorn.Server(settings).run(sockets=[listener])


def _most_connections() -> int:
    """Return how many connections there may be: each takes one of the files a process may open."""
    try:
        import resource
    except ImportError:  # not on Windows
        return MOST_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft < 0 else max(8, min(MOST_CONNECTIONS, soft // 2))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Declared as TCP so that asyncio disables Nagle's algorithm: otherwise answers wait 40 ms.
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
