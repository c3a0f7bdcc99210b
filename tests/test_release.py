"""What is released: archives with the sources, all of them, and nothing else."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 500_000


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Both archives, built from the tracked files as a release would be."""
    pytest.importorskip("hatchling", reason="needs the build backend")
    folder = tmp_path_factory.mktemp("release")
    tracked = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, tracked.stdout.split("\n")):
        if (ROOT / name).exists():
            target = folder / "tree" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist")]
    subprocess.run(command, cwd=folder / "tree", check=True, capture_output=True)
    (sdist,), (wheel,) = ((folder / "dist").glob(kind) for kind in ("*.tar.gz", "*.whl"))
    return set(filter(None, tracked.stdout.split("\n"))), sdist, wheel


def test_the_source_archive_holds_the_tracked_files_and_no_data(archives):
    tracked, sdist, _ = archives
    with tarfile.open(sdist) as archive:
        members = {m.name.split("/", 1)[1]: m.size for m in archive.getmembers() if m.isfile()}
    assert set(members) - tracked == {"PKG-INFO"}
    assert {"LICENSE", "README.md", "CITATION.cff", "pyproject.toml"} <= set(members)
    assert not {name for name, size in members.items() if size > LARGEST}
    kinds = {".arff", ".svm", ".gz", ".xz", ".bz2", ".parquet", ".npz", ".pkl", ".delta"}
    # Rows of experiments are results, and models that old releases wrote are tests: not data.
    rows = {name for name in members if name.startswith(("docs/results/", "tests/models/"))}
    assert not {name for name in set(members) - rows if Path(name).suffix in kinds}


def test_the_wheel_holds_the_package_and_its_types(archives):
    tracked, _, wheel = archives
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert package == {name.removeprefix("src/") for name in tracked if name.startswith("src/")}
    assert "deltarank/py.typed" in package
    assert any(name.endswith("entry_points.txt") for name in names)
