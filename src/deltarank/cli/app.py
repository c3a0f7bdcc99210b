"""The commands: parse, call, show. Heavy imports stay inside them, so that --help is instant."""

import os
import sys
from typing import Annotated

import typer

from deltarank import __version__
from deltarank.cli.bars import bars
from deltarank.cli.compare import compare
from deltarank.cli.datasets import app as datasets_app
from deltarank.cli.evaluate import evaluate
from deltarank.cli.explain import explain
from deltarank.cli.export import export
from deltarank.cli.fit import fit
from deltarank.cli.plugins import with_plugins
from deltarank.cli.rank import rank
from deltarank.cli.reproduce import reproduce
from deltarank.cli.serve import serve
from deltarank.cli.split import split
from deltarank.core.text import visible

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: drawing boxes would double the start-up time
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (fit, rank, evaluate, compare, explain, split, export, serve, reproduce):
    app.command()(with_plugins(command))
app.add_typer(datasets_app, name="datasets")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


def _set_limit(context: typer.Context, option: typer.CallbackParam, value: int | None) -> None:
    """Hand a limit to the readers, also those of processes that a command starts."""
    if value is not None:
        os.environ[f"DELTARANK_{str(option.name).upper()}"] = str(value)


@app.callback()
def deltarank(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    max_line: Annotated[
        int | None,
        typer.Option(min=1, callback=_set_limit, help="Most bytes of a line read; 64 MB."),
    ] = None,
    max_unpacked: Annotated[
        int | None,
        typer.Option(
            min=1, callback=_set_limit, help="Most bytes a packed text unpacks to; 64 GB."
        ),
    ] = None,
) -> None:
    """Rank the labels of an item, most likely relevant first."""


def main() -> None:
    """Run the command; an expected error is one line and exit status 1, not a traceback."""
    # Printed only after the error is freed, and with it all the memory its traceback held.
    problem = _run()
    typer.echo(visible(f"deltarank: {problem}"), err=True)
    raise SystemExit(1)


def _run() -> str:
    """Run the command, which exits; return what went wrong if it does not."""
    try:
        try:
            with bars():
                app()
        finally:
            _flush()
    except OSError as error:
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except MemoryError as error:
        return f"not enough memory ({error})" if str(error) else "not enough memory"
    except (ValueError, ImportError) as error:
        return str(error)
    raise SystemExit


def _flush() -> None:
    """Flush standard output here: if the interpreter fails to at exit, it prints a traceback."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # a reader that has seen enough is no error
            raise SystemExit(1) from None
        raise OSError(error.errno, error.strerror, "standard output") from None
