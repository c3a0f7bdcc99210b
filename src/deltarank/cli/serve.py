"""The command ``serve``: a model behind HTTP."""

import os
import socket
import sys
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deltarank.cli import options
from deltarank.core.extras import install

if TYPE_CHECKING:
    from deltarank.serving.request_log import RequestLog

TOKEN_VARIABLE = "DELTARANK_TOKEN"
_LONGEST_TOKEN = 8192
# Connections that wait while all threads rank; any more are answered at once with status 503.
MOST_CONNECTIONS = 1000
SERVER: dict[str, Any] = {
    "log_level": "error",  # clients could fill a log with warnings
    "timeout_keep_alive": 5,
    "server_header": False,
}

Host = Annotated[str, typer.Option(help="Address to listen at.")]
Port = Annotated[
    int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any that is free.")
]
Examples = Annotated[
    Path | None, typer.Option(help="File whose first rows the page offers to try.")
]
SubjectsFile = Annotated[
    Path | None,
    typer.Option(
        help="Addresses and names of subjects for Annif: SKOS (.ttl, .nt, .rdf, .xml), or "
        "lines of <address>, tab, name."
    ),
]
MaxRows = Annotated[int, typer.Option(min=1, help="Most items per request.")]
MaxBytes = Annotated[int, typer.Option(min=1, help="Most bytes per request.")]
MaxAnswers = Annotated[int, typer.Option(min=1, help="Most labels per answer: items times top.")]
Timeout = Annotated[
    float, typer.Option(min=0.01, help="Most seconds for a request to come, and to be ranked.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        help="Name by which clients may address the server, beside localhost and --host; * for any."
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        help="What clients must send; seen by all who list processes, unlike --token-file and "
        f"the variable {TOKEN_VARIABLE}."
    ),
]
TokenFile = Annotated[Path | None, typer.Option(help="File that holds the token.")]
LogFile = Annotated[
    Path | None,
    typer.Option(help="File to append a line of JSON to for each request; - for output."),
]


def serve(
    model: options.ModelFile,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    examples: Examples = None,
    vocabulary: SubjectsFile = None,
    max_rows: MaxRows = 1000,
    max_bytes: MaxBytes = 1 << 20,
    max_labels: MaxAnswers = 100_000,
    timeout: Timeout = 10.0,
    allow_host: AllowHost = None,
    token: Token = None,
    token_file: TokenFile = None,
    request_log: LogFile = None,
    threads: options.Threads = None,
) -> None:
    """Serve a model: rankings as JSON for programs, a page for people.

    POST /rank ranks one item or several, GET /model describes the model, /health tells that the
    server is up, /metrics counts for Prometheus, /docs documents it; Annif asks /annif/suggest. The
    model is read once: to serve a new file, restart. There is no encryption: to be reached from
    outside, put it behind a proxy that has it. Needs the extra: pip install 'deltarank[serve]'.

    \b
    Examples:
      deltarank serve recipes.delta --examples recipes.csv
      curl -d '{"item": [1, 0.5, 3], "top": 3}' -H 'content-type: application/json' \\
        localhost:8000/rank
    """
    try:
        import uvicorn

        from deltarank.serving.access import LOOPBACK, Access
        from deltarank.serving.annif import Vocabulary
        from deltarank.serving.app import create_app
        from deltarank.serving.connections import watched_protocol
    except ImportError as error:
        raise ImportError(f"serving needs FastAPI and uvicorn: {install('serve')}") from error
    from deltarank.cli.inputs import note
    from deltarank.serving.examples import read_examples, read_truths
    from deltarank.serving.service import Limits, Service

    access = Access((*LOOPBACK, host, *(allow_host or ())), _read_token(token, token_file))
    log = None if request_log is None else _open_log(request_log)
    most = _most_connections()
    service = Service.load(model, Limits(max_rows, max_bytes, timeout, max_labels, most))
    if examples is not None:
        preparation = service.model.preparation
        items = read_examples(examples, preparation)
        service = replace(service, examples=items, truths=read_truths(examples, preparation))
    subjects = None if vocabulary is None else Vocabulary.read(vocabulary)
    service.warm_up()
    listener = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    note(f"serving {model} at http://{shown}:{listener.getsockname()[1]}")
    if access.token is None and not _is_loopback(listener):
        note("anybody who reaches this address is answered: --token asks for a token")
    settings = uvicorn.Config(
        create_app(service, access, log, Vocabulary() if subjects is None else subjects),
        http=watched_protocol(timeout, most),
        backlog=most // 8,  # as many are accepted at once, some times before one can be closed
        ws="none",
        **SERVER,
    )
    uvicorn.Server(settings).run(sockets=[listener])


def _read_token(given: str | None, path: Path | None) -> str | None:
    """Return the token, if there is one; an empty one is refused where it is checked."""
    if given is not None and path is not None:
        raise typer.BadParameter("--token and --token-file exclude each other")
    if path is not None:
        with path.open(encoding="ascii", errors="replace") as file:
            return file.read(_LONGEST_TOKEN).strip()
    return os.environ.get(TOKEN_VARIABLE) if given is None else given


def _open_log(path: Path) -> "RequestLog":
    from deltarank.cli.inputs import STDIN, note
    from deltarank.serving.request_log import RequestLog

    if str(path) == STDIN:
        return RequestLog(sys.stdout.fileno(), note)
    return RequestLog.open(path, note)


def _is_loopback(listener: socket.socket) -> bool:
    return ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


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
