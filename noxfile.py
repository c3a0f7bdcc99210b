"""The steps that a change must pass, each of which can be run alone: ``nox -s tests``.

``nox -l`` lists them. Without ``-s`` all run that ``.ci/run`` runs.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import nox

ROOT = Path(__file__).parent
DATA = ROOT.parent / "shared" / "data"
# One known release of PyTorch; without it the tests of deltarank.torch would be skipped.
TORCH = "torch==2.13.0"

CHECKS = ["style", "layers", "types", "dependencies"]
nox.options.sessions = ["readme", "bare", *CHECKS, "site", "tests"]
nox.options.error_on_missing_interpreters = True


def _run(session: nox.Session, tool: str, *arguments: str) -> None:
    """Run a tool in the environment that has everything, which steps share and is made once."""
    if "DELTARANK_DATA" not in os.environ and DATA.is_dir():
        session.env["DELTARANK_DATA"] = str(DATA)
    session.run(str(_everything() / tool), *arguments, external=True)


@cache
def _everything() -> Path:
    """Return the folder of the tools of that environment, brought up to date."""
    folder = ROOT / ".nox" / "everything"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [str(folder / "bin" / "pip"), "install", "--quiet"]
    subprocess.run([*install, TORCH], check=True)
    everything = ["-e", ".[dev,docs,torch,mlflow,hub]", "torchmetrics"]
    subprocess.run([*install, *everything], check=True, cwd=ROOT)
    return folder / "bin"


@nox.session(venv_backend="none")
def readme(session: nox.Session) -> None:
    """Run README's two commands, word for word, each in a clean clone."""
    session.run("python3", ".ci/readme.py", *session.posargs, external=True)


@nox.session
def bare(session: nox.Session) -> None:
    """Install without extras: what works, and what the rest says."""
    session.install("--quiet", ".")
    session.run("python", ".ci/bare.py")


@nox.session(venv_backend="none")
def style(session: nox.Session) -> None:
    """Check style and layout."""
    _run(session, "ruff", "check", ".")
    _run(session, "ruff", "format", "--check", ".")


@nox.session(venv_backend="none")
def layers(session: nox.Session) -> None:
    """Check that imports point down only."""
    _run(session, "lint-imports")


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    """Check types."""
    _run(session, "mypy")


@nox.session(venv_backend="none")
def dependencies(session: nox.Session) -> None:
    """Check that what is imported is declared, and the reverse."""
    _run(session, "deptry", "src")


@nox.session(venv_backend="none")
def site(session: nox.Session) -> None:
    """Build the site, examples run, warnings being errors."""
    command = "sphinx-build -W --keep-going -b html docs docs/_build/html"
    _run(session, *command.split(), "-q")


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run the everyday tests with everything installed, and measure what they cover."""
    _find_browser(session)
    _run(session, "coverage", "erase")
    _run(session, "pytest", "--cov", "--cov-report=", *session.posargs)
    _run(session, "coverage", "report")


@nox.session(venv_backend="none")
def slow(session: nox.Session) -> None:
    """Run the long tests: faults and abuse, every benchmark in small."""
    _run(session, "pytest", "-m", "slow", *session.posargs)


@nox.session(venv_backend="none")
def gpu(session: nox.Session) -> None:
    """Run the tests of device code on a CUDA device, with the Python that has PyTorch for it."""
    command = ["python3", "-m", "pytest", "-m", "gpu", "-n", "0", "tests/test_gpu.py"]
    session.run(*command, *session.posargs, external=True)


@nox.session(venv_backend="none")
def pythons(session: nox.Session) -> None:
    """Run README's test command with every Python promised and the oldest dependencies."""
    session.run("python3", ".ci/pythons", *session.posargs, external=True)


@nox.session(venv_backend="none")
def guard(session: nox.Session) -> None:
    """Compare the speed of the working tree with a commit: nox -s guard -- main."""
    session.run("python3", "benchmarks/guard.py", *session.posargs, external=True)


def _find_browser(session: nox.Session) -> None:
    """Install a browser for the tests of pages, where one can be had."""
    if shutil.which("chromedriver") or not shutil.which("apt-get") or os.geteuid() != 0:
        return
    for command in (["update"], ["install", "-y", "chromium", "chromium-driver"]):
        session.run("apt-get", *command, external=True, silent=True, success_codes=range(256))
