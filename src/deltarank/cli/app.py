"""Commands; thin: parse, call, show. Heavy imports stay inside them, so that --help is instant."""

from pathlib import Path
from typing import Annotated

import typer

from deltarank import __version__
from deltarank.cli.compare import compare
from deltarank.cli.datasets import app as datasets_app
from deltarank.cli.evaluate import evaluate
from deltarank.cli.explain import explain
from deltarank.cli.fit import fit
from deltarank.cli.rank import rank
from deltarank.experiments import EXPERIMENTS

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: drawing boxes would double the start-up time
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (fit, rank, evaluate, compare, explain):
    app.command()(command)
app.add_typer(datasets_app, name="datasets")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def deltarank(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Rank the labels of an item, most likely relevant first."""


@app.command()
def reproduce(
    experiment: Annotated[
        str, typer.Argument(help=f"Which part of the paper: {', '.join(EXPERIMENTS)}.")
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for the rows (.jsonl) and the figure (.svg).")
    ] = Path("results"),
) -> None:
    """Redo a part of the paper: print its rows, save them and draw its figure."""
    from deltarank.cli.reproduce import reproduce as run_experiment

    run_experiment(experiment, out)


def main() -> None:
    """Run the command; an expected error is one line and exit status 1, not a traceback."""
    try:
        app()
    except (ValueError, OSError, ImportError) as error:
        typer.echo(f"deltarank: {error}", err=True)
        raise SystemExit(1) from None
