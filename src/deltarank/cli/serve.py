"""The command ``serve``: a model behind HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from deltarank.cli import options


def serve(
    model: options.ModelFile,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any that is free.")
    ] = 8000,
    examples: Annotated[
        Path | None, typer.Option(help="File whose first rows the page offers to try.")
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Most items a request.")] = 1000,
    max_bytes: Annotated[int, typer.Option(min=1, help="Most bytes a request.")] = 1 << 20,
    timeout: Annotated[
        float, typer.Option(min=0.01, help="Most seconds for a request to come, and to be ranked.")
    ] = 10.0,
    threads: options.Threads = None,
) -> None:
    """Serve a model: rankings as JSON for programs, a page for people.

    POST /rank ranks an item or several, GET /model describes the model, /health answers, /docs
    documents. The model is read once: a file that is replaced later is served after a restart.
    There is no encryption and no password: to be reached from outside, put it behind a proxy.
    Needs the extra: pip install 'deltarank[serve]'.

    \b
    Examples:
      deltarank serve recipes.delta --examples recipes.csv
      curl -d '{"item": [1, 0.5, 3], "top": 3}' -H 'content-type: application/json' \\
        localhost:8000/rank
    """
    from deltarank.cli.serving import run_server
    from deltarank.serving.service import Limits

    run_server(model, host, port, examples, Limits(max_rows, max_bytes, timeout))
