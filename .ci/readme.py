"""Run the commands that README.md gives a newcomer, word for word, each in a clean clone.

    python3 .ci/readme.py [reproduce] [test] [--python PYTHON] [--constraint FILE]

The commands are read out of README.md. Each gets a fresh clone of the last commit, a new virtual
environment (the command makes it) and none of the settings of this shell. Needs Python and git.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What a shell may hold that a newcomer's does not.
SETTINGS = ("DELTARANK_", "VIRTUAL_ENV", "PYTHON", "PYTEST_", "COV", "NUMBA_", "COLUMNS")


def commands() -> dict[str, str]:
    """Return the two commands of README.md by what they are for."""
    readme = (ROOT / "README.md").read_text()
    given = re.findall(r"^\$ (python3 -m venv .+)$", readme, re.M)
    found = {
        "reproduce": [command for command in given if command.endswith("deltarank reproduce")],
        "test": [command for command in given if command.endswith("pytest")],
    }
    if len(given) != 2 or any(len(fitting) != 1 for fitting in found.values()):
        raise SystemExit(f"README.md should give one command to reproduce and one to test: {given}")
    return {name: fitting[0] for name, fitting in found.items()}


def newcomer(folder: Path, python: str, constraint: Path | None) -> dict[str, str]:
    """Return the environment of a shell in which `python3` is a given interpreter."""
    settings = {name: v for name, v in os.environ.items() if not name.startswith(SETTINGS)}
    folder.mkdir()
    launcher = folder / "python3"
    launcher.write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
    launcher.chmod(0o755)
    settings["PATH"] = f"{folder}{os.pathsep}{settings['PATH']}"
    if constraint is not None:
        settings["PIP_CONSTRAINT"] = str(constraint.resolve())
    return settings


def run(name: str, command: str, python: str, constraint: Path | None) -> int:
    """Run a command in a clean clone; return its exit status."""
    with tempfile.TemporaryDirectory(prefix="deltarank-") as folder:
        clone = Path(folder) / "deltarank"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        settings = newcomer(Path(folder) / "bin", python, constraint)
        print(f"== README, {name}: {command}", flush=True)
        began = time.monotonic()
        status = subprocess.run(command, shell=True, cwd=clone, env=settings).returncode
        print(f"== exit {status} after {time.monotonic() - began:.0f} s", flush=True)
    return status


def main() -> int:
    """Run the commands asked for; the exit status is 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="reproduce|test", help="both by default")
    parser.add_argument("--python", default=sys.executable, help="interpreter to stand for python3")
    parser.add_argument("--constraint", type=Path, help="file of versions that pip must keep to")
    options = parser.parse_args()
    given = commands()
    unknown = sorted(set(options.names) - set(given))
    if unknown:
        parser.error(f"unknown command {', '.join(unknown)}; choose from {', '.join(given)}")
    python = shutil.which(options.python)
    if python is None:
        parser.error(f"--python {options.python} is not there")
    names = options.names or list(given)
    statuses = [run(name, given[name], python, options.constraint) for name in names]
    return int(any(statuses))


if __name__ == "__main__":
    raise SystemExit(main())
