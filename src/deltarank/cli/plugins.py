"""The option ``--plugin``, which every command has: modules that enter parts into our tables."""

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Annotated, Any

import typer

from deltarank.core.plugins import VARIABLE, announce

# What plugins have entered into each table, which options then take too.
_OWN: dict[str, list[str]] = {}


def load_plugins(names: list[str] | None) -> list[str]:
    """Import modules, each of which must enter something into a table; announce them to others."""
    names, folder = names or [], os.getcwd()
    if names and folder not in sys.path:
        sys.path.append(folder)  # last, so that a file here cannot stand in for a library
    for name in names:
        _load(name)
    if names:
        announce(names)
    return names


def _load(name: str) -> None:
    before, is_new = _entries(), name not in sys.modules
    _import(name)
    after = _entries()
    if is_new and after == before:
        raise ValueError(
            f"--plugin {name}: the module registers nothing; when it is imported it should enter "
            f"its parts into tables, such as {', '.join(after)} (docs/extending.md)"
        )
    for table, entries in after.items():
        _OWN.setdefault(table, []).extend(entries.keys() - before[table].keys())


def own_names(table: str) -> list[str]:
    """Return the names that plugins have entered into a table."""
    return _OWN.get(table, [])


Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        callback=load_plugins,
        is_eager=True,  # other options choose among what plugins register
        envvar=VARIABLE,
        show_envvar=False,
        metavar="MODULE",
        help="Python module that registers own weights, losses, rankers or data sets; its code is "
        "run. Can be given more than once.",
    ),
]


def with_plugins(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has ``--plugin``, too."""

    @wraps(command)
    def run(*arguments: Any, plugin: Any, **options: Any) -> None:
        command(*arguments, **options)

    signature = inspect.signature(command)
    last = inspect.Parameter(
        "plugin", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Plugins
    )
    parameters = [*signature.parameters.values(), last]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, "plugin": Plugins}
    return run


def _import(name: str) -> None:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise ImportError(f"--plugin {name}: the module needs {error.name}, which is not "
                              "installed") from error  # fmt: skip
        raise ImportError(
            f"--plugin {name}: there is no module of this name, installed, on PYTHONPATH or in "
            "this folder; give its name as in `import`, such as mine for mine.py"
        ) from error
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise ImportError(f"--plugin {name}: its import failed{_place(error)}: {reason}") from error


def _place(error: BaseException) -> str:
    """Return the file and line where a module raised, where it is not in the importing itself."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<") and file != __file__ and "importlib" not in file:
            place = f" ({file}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place


def _tables() -> dict[str, Mapping[str, Any]]:
    """Return the tables that parts are entered in."""
    from deltarank.core.losses import LOSSES
    from deltarank.core.weights import WEIGHTS
    from deltarank.datasets import CATALOGUE
    from deltarank.datasets.readers.formats import FORMATS
    from deltarank.metrics.table import METRICS
    from deltarank.pairs.objective import PAIR_LOSSES
    from deltarank.paper.experiments import EXPERIMENTS
    from deltarank.recipes import RECIPES
    from deltarank.storage.registry import STORED
    from deltarank.theory.surrogates import SURROGATES

    return {
        "WEIGHTS": WEIGHTS,
        "LOSSES": LOSSES,
        "RECIPES": RECIPES,
        "STORED": STORED,
        "CATALOGUE": CATALOGUE,
        "FORMATS": FORMATS,
        "METRICS": METRICS,
        "EXPERIMENTS": EXPERIMENTS,
        "SURROGATES": SURROGATES,
        "PAIR_LOSSES": PAIR_LOSSES,
    }


def _entries() -> dict[str, dict[str, int]]:
    """Return what the tables hold, by identity: an entry that was replaced is a new one."""
    return {
        name: {key: id(it) for key, it in entries.items()} for name, entries in _tables().items()
    }
