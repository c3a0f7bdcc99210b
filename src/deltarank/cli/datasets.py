"""Commands about data: the catalogue, its files, and conversion."""

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
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
    show_rows(rows, "Data sets; min, ave. and max count relevant labels a training row")


@app.command()
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
def fetch(
    names: Annotated[list[str], typer.Argument(help="Data sets of the catalogue.")],
) -> None:
    """Download data sets where they are not here, verify them, and print where they are."""
    from deltarank.choices import choose
    from deltarank.datasets import CATALOGUE
    from deltarank.datasets.fetch import fetch as fetch_files

    for name in names:
        for path in fetch_files(choose(CATALOGUE, name, "data set")):
            typer.echo(path)


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="File to read, plain or packed.")],
    target: Annotated[Path, typer.Argument(help="File to write: .svm or .txt, or .gz and so on.")],
    source_format: Annotated[
        str | None, typer.Option("--from", help="Format to read; told by the content.")
    ] = None,
    target_format: Annotated[
        str | None, typer.Option("--to", help="Format to write, libsvm or xmc; told by the name.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="Label columns of 0 and 1, joined by commas; for ARFF also their number "
            "(negative: the last ones) or an XML file."
        ),
    ] = None,
    label_list: Annotated[
        str | None, typer.Option(help="Column of a table that holds label lists.")
    ] = None,
    separator: Annotated[str | None, typer.Option(help="Stands between labels of a list.")] = None,
    text: Annotated[list[str] | None, typer.Option(help="Column of text.")] = None,
    categorical: Annotated[list[str] | None, typer.Option(help="Column of categories.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out.")] = None,
) -> None:
    """Turn a file of any format into LIBSVM or XMC text."""
    from deltarank.datasets import read
    from deltarank.datasets.writers import find_writer

    write = find_writer(target, target_format)
    options: dict[str, Any] = {
        "labels": label_list if label_list is not None else label_option(labels),
        "separator": separator,
        "text": text,
        "categorical": categorical,
        "ignore": ignore,
    }
    given = {name: value for name, value in options.items() if value is not None and value != []}
    try:
        data = read(source, format=source_format, **given)
    except TypeError as error:
        raise ValueError(str(error)) from None
    write(target, data.X, data.Y)
    typer.echo(f"wrote {target}: {data!r}", err=True)


def label_option(text: str | None) -> Any:
    """Read what ``--labels`` says: a number, an XML file, or names joined by commas.

    Examples
    --------
    >>> label_option("-6"), label_option("a,b"), label_option("set.xml")
    (-6, ['a', 'b'], 'set.xml')
    """
    if text is None or text.endswith(".xml"):
        return text
    try:
        return int(text)
    except ValueError:
        return text.split(",")
