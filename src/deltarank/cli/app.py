"""Commands; thin: parse, call, show. Heavy imports stay inside them, so that --help is instant."""

import os
import sys
from pathlib import Path
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
from deltarank.cli.options import numbers
from deltarank.cli.rank import rank
from deltarank.cli.serve import serve
from deltarank.paper.experiments import EXPERIMENTS

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: drawing boxes would double the start-up time
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (fit, rank, evaluate, compare, explain, export, serve):
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
    experiments: Annotated[
        list[str] | None,
        typer.Argument(help=f"Parts of the paper, all by default: {', '.join(EXPERIMENTS)}."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the report, rows (.jsonl), tables and figures.")
    ] = Path("results"),
    full: Annotated[
        bool, typer.Option("--full", help="The paper's own sizes: hours in place of minutes.")
    ] = False,
    labels: Annotated[
        int | None, typer.Option(min=2, help="Labels of the models of Figure 1.")
    ] = None,
    noise: Annotated[float | None, typer.Option(help="Their noise, a standard deviation.")] = None,
    models: Annotated[int | None, typer.Option(min=1, help="How many models.")] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Rows of their training sets, joined by commas.")
    ] = None,
    rounds: Annotated[
        str | None,
        typer.Option(help="Grid of rounds of AB.MR and AB.MH, and of updates of LLLR."),
    ] = None,
    stumps: Annotated[str | None, typer.Option(help="Grid of stumps a label of WBR-AB.")] = None,
    penalties: Annotated[
        str | None, typer.Option("--Cs", help="Grid of C of WBR-LR and BR.")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Folds of the cross-validation that tunes.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of everything random.")] = None,
) -> None:
    """Redo the paper: run its experiments, print what they say and write a report.

    Rows are saved as they come. Interrupted, the same command goes on where it stopped.
    """
    from deltarank.cli.reproduce import reproduce as run_experiments

    run_experiments(
        experiments or [],
        out,
        full=full,
        n_labels=labels,
        noise=noise,
        n_models=models,
        sizes=numbers(sizes, "--sizes", int),
        rounds=numbers(rounds, "--rounds", int),
        stumps=numbers(stumps, "--stumps", int),
        Cs=numbers(penalties, "--Cs", float),
        folds=folds,
        seed=seed,
    )


def main() -> None:
    """Run the command; an expected error is one line and exit status 1, not a traceback."""
    # Told only when the error, and with it all that its traceback held in memory, is forgotten.
    problem = _run()
    typer.echo(f"deltarank: {problem}", err=True)
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
    """Write out what is left; the interpreter, at its end, would fail with a traceback."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OSError(error.errno, error.strerror, "standard output") from None
