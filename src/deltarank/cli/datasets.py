"""Commands about data: the catalogue, its files, and conversion."""

from pathlib import Path
from typing import Annotated

import typer

from deltarank.cli import options
from deltarank.cli.plugins import with_plugins

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
@with_plugins
def datasets(context: typer.Context) -> None:
    """List the data sets of the catalogue, or show, fetch or convert data."""
    if context.invoked_subcommand is not None:
        return
    from deltarank.cli.show import show as show_rows
    from deltarank.datasets.catalogue import CATALOGUE, table1_row
    from deltarank.datasets.fetch import is_here

    rows = []
    for entry in CATALOGUE.values():
        n_rows = entry.n_train if entry.split == "original" else entry.n_train + entry.n_test
        relevant = entry.relevant[0] if entry.relevant else None
        row = table1_row(entry, relevant, n_rows)
        rows.append({**row, "split": entry.split, "here": is_here(entry)})
    show_rows(rows, "Data sets; min, ave. and max count relevant labels per training row")


@app.command()
@with_plugins
def show(
    names: Annotated[list[str], typer.Argument(help="Data sets of the catalogue.")],
) -> None:
    """Count a data set from its files, and tell where it comes from."""
    from deltarank.cli.show import show as show_rows
    from deltarank.datasets import CATALOGUE, statistics

    rows = []
    for name in names:
        counted = statistics(name)
        entry = CATALOGUE[name]
        rows.append(
            {**counted, "split": entry.split, "source": entry.source, "licence": entry.licence}
        )
    show_rows(rows, "As counted from the files")


@app.command()
@with_plugins
def fetch(
    names: Annotated[list[str], typer.Argument(help="Data sets of the catalogue.")],
) -> None:
    """Download data sets that are not here yet, verify them, and print their paths."""
    from deltarank.core.choices import choose
    from deltarank.datasets import CATALOGUE
    from deltarank.datasets.fetch import fetch as fetch_files

    for name in names:
        for path in fetch_files(choose(CATALOGUE, name, "data set")):
            typer.echo(path)


@app.command()
@with_plugins
def convert(
    source: Annotated[Path, typer.Argument(help="File to read, plain or packed.")],
    target: Annotated[Path, typer.Argument(help="File to write: .svm or .txt, or .gz and so on.")],
    source_format: options.Format = None,
    target_format: Annotated[
        str | None,
        typer.Option("--to", help="Format to write, libsvm or xmc; told by the name by default."),
    ] = None,
    labels: options.Labels = None,
    label_list: options.LabelList = None,
    separator: options.Separator = None,
    text: options.Text = None,
    categorical: options.Categorical = None,
    ignore: options.Ignore = None,
) -> None:
    """Turn a file of any format into LIBSVM or XMC text."""
    from deltarank.cli.inputs import note, read_file
    from deltarank.datasets.writers import find_writer

    write = find_writer(target, target_format)
    reading = options.Reading(
        source_format, labels, label_list, separator, text, categorical, ignore
    )
    data = read_file(source, reading)
    write(target, data.X, data.Y)
    note(f"wrote {target}: {data!r}")


@app.command()
@with_plugins
def example(
    rows: Annotated[int, typer.Option(min=1, help="How many rows.")] = 400,
    seed: options.Seed = 0,
) -> None:
    """Write a made-up table of recipes with tags as CSV, to try the commands on."""
    import csv
    import sys

    from deltarank.datasets.example import example_rows

    made = example_rows(rows, seed)
    writer = csv.DictWriter(sys.stdout, list(made[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(made)
