"""Damaged model files, checkpoints and caches are refused, or give exactly what was kept."""

import random

import numpy as np
import pytest
from mutation import BINARY, damaged
from scipy import sparse

from deltarank import LogisticRanker, load, save
from deltarank.datasets import Encoder, read
from deltarank.storage import ModelFileError, load_with_extra
from deltarank.storage.registry import STORED
from test_storage import NAMES, X, fitted

pytestmark = pytest.mark.slow
N_MODELS = 2000
N_BLOCKS = 1000
N_COPIES = 1000


def identity(value):
    """Return all there is to a value, comparable to the last bit."""
    if sparse.issparse(value):
        return identity((value.data, value.indices, value.indptr, value.shape))
    if isinstance(value, np.ndarray):
        content = value.tolist() if value.dtype == object else value.tobytes()
        return value.dtype.str, value.shape, content
    if isinstance(value, dict):
        return {key: identity(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [identity(part) for part in value]
    return repr(value)


def whole(path):
    ranker, extra = load_with_extra(path)
    return type(ranker), identity(vars(ranker)), identity(extra)


@pytest.mark.parametrize("name", STORED)
def test_a_damaged_model_is_refused_or_the_same(tally, tmp_path, name):
    counts = tally("model files", name)
    path = tmp_path / "ranker.model"
    encoder = Encoder.fit({"a": [1, 2], "t": ["red hat", "hat"]}, {"t": "text"})
    ranker = fitted(name, "sets")
    save(ranker, path, extra={"encoder": encoder.to_json(), "names": NAMES})
    expected, content = whole(path), path.read_bytes()
    rng = random.Random(name)
    for _ in range(N_MODELS):
        path.write_bytes(damaged(content, rng, BINARY))
        try:
            found = whole(path)
        except ModelFileError:
            counts.refused()
        except Exception as error:
            counts.lost(repr(error))
        else:
            counts.judge(found == expected, "another model")
    path.write_bytes(content)
    assert np.array_equal(load(path).rank(X), ranker.rank(X))
    assert counts.counts["refused"] > 0.9 * N_MODELS


@pytest.mark.parametrize("prune", [None, 0.1])
def test_a_damaged_checkpoint_is_refused_or_the_same(tally, tmp_path, prune):
    counts = tally("model files", f"checkpoint, {'sparse' if prune else 'dense'}")
    Y = (X[:, :3] > 0).astype(int)
    ranker = LogisticRanker(prune=prune, checkpoint=str(tmp_path / "blocks"))
    expected = identity(vars(ranker.fit(X, Y)))
    files = [path for path in (tmp_path / "blocks").iterdir() if path.suffix == ".safetensors"]
    (block,) = files
    content = block.read_bytes()
    rng = random.Random(0)
    for _ in range(N_BLOCKS):
        block.write_bytes(damaged(content, rng, BINARY))
        try:
            found = identity(vars(ranker.fit(X, Y)))
        except ValueError as error:
            if str(block) in str(error):
                counts.refused()
            else:
                counts.lost(f"the error names no file: {error!r}")
        except Exception as error:
            counts.lost(repr(error))
        else:
            counts.judge(found == expected, "other coefficients")


def test_a_damaged_cache_is_read_anew(tally, tmp_path):
    counts = tally("model files", "cache of readings")
    source = tmp_path / "data.svm"
    source.write_text("".join(f"{i % 3},5 1:{i} {2 + i % 4}:{i / 7:.3f}\n" for i in range(40)))
    expected = read(source)
    read(source, cache=tmp_path / "cache")
    (kept,) = (tmp_path / "cache").iterdir()
    content = kept.read_bytes()
    rng = random.Random(0)
    for _ in range(N_COPIES):
        kept.write_bytes(damaged(content, rng, BINARY))
        try:
            found = read(source, cache=tmp_path / "cache")
        except Exception as error:
            counts.lost(repr(error))
        else:
            same = identity((found.X, found.Y)) == identity((expected.X, expected.Y))
            counts.judge(same, "other rows")
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
