"""Gaps between row numbers: what they stand for, how short they are, and forged ones."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from deltarank import LabelTreeRanker, load, save
from deltarank.core.arrays import read_arrays, write_arrays
from deltarank.core.gaps import join_gaps, split_gaps
from deltarank.datasets import long_tailed
from deltarank.storage import ModelFileError


def rows_from(starts, gaps):
    """Return the rows of each column from what gaps are said to mean, by a plain loop."""
    most, numbers = np.iinfo(gaps.dtype).max, iter(gaps.tolist())
    columns = []
    for count in np.diff(starts):
        column, row = [], 0
        for _ in range(count):
            while (number := next(numbers)) == most:
                row += most
            column.append(row + number)
            row += number + 1
        columns.append(column)
    assert next(numbers, None) is None
    return columns


@pytest.mark.parametrize(
    ("shape", "density", "kind"),
    [
        ((3000, 40), 0.2, np.uint8),
        ((3000, 40), 0.0, np.uint8),
        ((200_000, 9), 0.0002, np.uint16),
        ((0, 3), 0.0, np.uint8),
    ],
)
def test_gaps_stand_for_the_rows_of_each_column(shape, density, kind):
    matrix = sparse.random_array(shape, density=density, format="csc", rng=0, dtype=np.float32)
    values, starts, gaps = split_gaps(matrix.tocsr())
    assert gaps.dtype == kind
    wanted = np.split(matrix.indices, matrix.indptr[1:-1])
    assert rows_from(starts, gaps) == [sorted(column.tolist()) for column in wanted]
    joined = join_gaps(values, starts, gaps, shape[0])
    assert joined.indices.dtype == joined.indptr.dtype == np.int32
    assert np.shares_memory(joined.data, values) or not values.size
    assert (joined != matrix).nnz == 0


@pytest.mark.parametrize("row", [0, 254, 255, 256, 509, 510, 511, 999])
def test_a_gap_may_be_as_long_as_any_number_of_its_type(row):
    matrix = sparse.csc_array(([1.0, 2.0], ([row, 999 - row], [0, 1])), shape=(1000, 2))
    assert (join_gaps(*split_gaps(matrix), 1000) != matrix).nnz == 0


def test_whatever_gaps_are_read_they_are_refused_or_lead_to_rows_that_ascend():
    generator, n_read = np.random.default_rng(0), 0
    for _ in range(500):
        starts = np.concatenate([[0], np.cumsum(generator.integers(0, 4, 5))])
        n_gaps = starts[-1] + generator.integers(0, 2)
        gaps = generator.choice([0, 1, 9, 255], n_gaps, p=[0.5, 0.38, 0.1, 0.02]).astype(np.uint8)
        try:
            matrix = join_gaps(np.ones(starts[-1]), starts, gaps, 20)
        except ValueError:
            continue
        matrix.check_format(full_check=True)
        assert matrix.has_canonical_format
        n_read += 1
    assert 50 < n_read < 450


@pytest.mark.parametrize(
    ("part", "forge", "message"),
    [
        ("gaps", lambda a: np.full_like(a, 255), "gaps must lead to one of"),
        ("gaps", lambda a: np.full_like(a, 200), "gaps must lead to one of"),
        ("gaps", lambda a: a[:-1], "gaps must lead to one of"),
        ("gaps", lambda a: np.append(a, a[:1]), "gaps must lead to one of"),
        ("gaps", lambda a: a.astype(np.int64), "gaps must be a vector of uint8 or uint16; got int"),
        ("indptr", lambda a: a[::-1].copy(), "starts must ascend from zero"),
        ("indptr", lambda a: a[:0], "starts must ascend from zero"),
        ("indptr", lambda a: a.astype(float), "starts of integers"),
        ("data", lambda a: a[:-1], "starts must ascend from zero to the number of values"),
    ],
)
def test_a_forged_model_is_refused(tmp_path, part, forge, message):
    X, Y = long_tailed(200, 40, 30, random_state=0)
    path = tmp_path / "tree.delta"
    save(LabelTreeRanker(arity=2, leaf_size=4, n_trees=1, random_state=0).fit(X, Y), path)
    arrays, strings = read_arrays(path, mapped=False)
    write_arrays(path, {**arrays, f"coef_.{part}": forge(arrays[f"coef_.{part}"])}, strings)
    with pytest.raises(ModelFileError, match=f"coef_ is no sparse matrix: .*{message}"):
        load(path)


def test_a_tree_takes_five_bytes_a_coefficient_and_its_values_stay_on_disk(tmp_path):
    X, Y = long_tailed(600, 200, 400, random_state=1)
    ranker = LabelTreeRanker(random_state=0).fit(X, Y)
    path = tmp_path / "tree.delta"
    save(ranker, path)
    others = (ranker.intercept_, ranker.child_starts_, ranker.node_labels_, ranker.constants_,
              ranker.n_iter_, ranker.converged_, ranker.coef_.indptr)  # fmt: skip
    largest = 5.1 * ranker.coef_.nnz + sum(array.nbytes for array in others) + 20_000
    assert 5 * ranker.coef_.nnz < path.stat().st_size < largest < 8 * ranker.coef_.nnz
    coef = load(path).coef_
    assert not coef.data.flags.owndata
    for part in ("data", "indices", "indptr"):
        assert_array_equal(getattr(coef, part), getattr(ranker.coef_, part))
