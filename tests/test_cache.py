"""The cache of readings: never stale, never half, never trusted when damaged."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from deltarank.datasets import read
from deltarank.datasets.readers import sparse_text
from deltarank.datasets.writers import write_libsvm


@pytest.fixture
def parsed(monkeypatch):
    """Count the times a file is parsed."""
    calls = []
    chunks = sparse_text.chunks_of_lines
    monkeypatch.setattr(
        sparse_text,
        "chunks_of_lines",
        lambda path, *n: calls.append(path) or chunks(path, *n),
    )
    return calls


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "data"
    path.write_text("0 1:1\n\n1,2 2:0.5\n")
    return path


def same(a, b):
    return (
        np.array_equal(a.X.toarray(), b.X.toarray())
        and np.array_equal(a.Y.toarray(), b.Y.toarray())
        and (a.X.dtype, a.Y.dtype) == (b.X.dtype, b.Y.dtype)
    )


def test_a_second_reading_parses_nothing_and_gives_the_same(file, tmp_path, parsed):
    folder = tmp_path / "cache"
    readings = [read(file, cache=folder) for _ in range(3)]
    assert len(parsed) == 1
    assert all(same(readings[0], other) for other in readings)
    assert same(readings[0], read(file))


def test_what_comes_from_the_cache_may_be_changed_in_place_and_the_copy_stays(file, tmp_path):
    folder = tmp_path / "cache"
    read(file, cache=folder)
    data = read(file, cache=folder)
    data.X.data *= 3
    assert same(read(file, cache=folder), read(file))


def test_a_changed_file_is_read_anew_even_with_its_old_size_and_time(file, tmp_path):
    before = file.stat()
    assert read(file, cache=tmp_path / "cache").X[0, 0] == 1
    time.sleep(0.02)  # the clock of a file system may be coarse
    file.write_text("0 1:7\n\n1,2 2:0.5\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert read(file, cache=tmp_path / "cache").X[0, 0] == 7


def test_other_options_are_another_reading(file, tmp_path):
    folder = tmp_path / "cache"
    assert read(file, cache=folder).X.shape == (3, 2)
    assert read(file, cache=folder, n_features=9).X.shape == (3, 9)
    file.write_text("2 3 3\n0 0:1\n1 1:1\n")
    assert read(file, cache=folder).X.shape == (2, 3)


def test_rows_without_features_are_kept_too(file, tmp_path):
    file.write_text("0\n1\n")
    for _ in range(2):
        data = read(file, format="libsvm", cache=tmp_path / "cache")
        assert (data.X.shape, data.Y.toarray().tolist()) == ((2, 0), [[1, 0], [0, 1]])


def test_a_damaged_copy_is_read_anew(file, tmp_path):
    folder = tmp_path / "cache"
    expected = read(file, cache=folder)
    (kept,) = folder.iterdir()
    content = kept.read_bytes()
    generator = np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(content)
        damaged[generator.integers(len(content))] ^= int(generator.integers(1, 256))
        kept.write_bytes(bytes(damaged)[: generator.integers(len(content) // 2, 2 * len(content))])
        assert same(read(file, cache=folder), expected)


def test_a_copy_whose_header_seems_shorter_or_longer_is_read_anew(file, tmp_path):
    folder = tmp_path / "cache"
    expected = read(file, cache=folder)
    (kept,) = folder.iterdir()
    content = kept.read_bytes()
    length = int.from_bytes(content[:8], "little")
    for change in (-1, 1, 40):
        kept.write_bytes((length + change).to_bytes(8, "little") + content[8:])
        assert same(read(file, cache=folder), expected)


KILL_WRITERS = """
import os, signal, sys, time
import numpy as np
from deltarank.datasets import write_libsvm

X = np.random.default_rng(0).random((100_000, 20))
for delay in (0.02, 0.1, 0.3):
    child = os.fork()
    if child == 0:
        write_libsvm(sys.argv[1], X, np.ones((len(X), 1), int))
        os._exit(0)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, "it was done too soon"
"""


def test_a_killed_writer_leaves_the_old_file_whole(tmp_path):
    target = tmp_path / "data.svm"
    write_libsvm(target, np.eye(3), np.eye(3, dtype=int))
    old = target.read_bytes()
    result = subprocess.run(
        [sys.executable, "-c", KILL_WRITERS, str(target)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert target.read_bytes() == old
    assert read(target).X.shape == (3, 3)
