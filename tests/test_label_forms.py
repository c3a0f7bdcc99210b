"""What is no set of labels is refused by every ranker with its row, not read as something else."""

import numpy as np
import pytest
from sklearn.base import clone

from deltarank import LogisticRanker, rank_loss
from test_whole_fits import ONE_OF_A_KIND

X = np.random.default_rng(0).normal(size=(6, 2))
GOOD = [{"a"}, {"b"}, {"a", "b"}, {"b"}, {"a"}, {"c"}]
WRONG = {
    "a string": ("ab", r"row 3 is 'ab' \(write \['ab'\] for one label\)"),
    "bytes": (b"ab", "row 3 is b'ab'"),
    "a mapping": ({"a": 1, "b": 0}, "row 3 is {'a': 1, 'b': 0}"),
    "nothing": (None, "row 3 is None"),
    "a number": (7, "row 3 is 7"),
    "bytes in a set": ({b"a"}, "strings or numbers; got b'a' in row 3"),
    "a truth value": ({True}, "got True in row 3"),
    "a pair": ({("a", 1)}, r"got \('a', 1\) in row 3"),
    "None in a set": ({None}, "got None in row 3"),
    "NaN": ({float("nan")}, "got nan in row 3"),
    "a list in a list": ([["a"]], r"got \['a'\] in row 3"),
}


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
@pytest.mark.parametrize("kind", [list, set, tuple])
def test_a_series_of_collections_is_a_list_of_label_sets(library, kind):
    rows = [["a"], ["b", "a"], ["b"], []]
    if library == "numpy":
        Y = np.empty(4, dtype=object)
        Y[:] = [kind(row) for row in rows]
    elif library == "polars" and kind is set:
        pytest.skip("polars has lists only")
    else:
        Y = pytest.importorskip(library).Series([kind(row) for row in rows])
    X = [[1.0, 2.0], [2.0, 1.0], [3.0, 0.0], [0.0, 3.0]]
    fitted, wanted = LogisticRanker().fit(X, Y), LogisticRanker().fit(X, rows)
    np.testing.assert_array_equal(fitted.coef_, wanted.coef_)
    scores = fitted.decision_function(X)
    classes = fitted.classes_
    assert rank_loss(Y, scores, classes=classes) == rank_loss(rows, scores, classes=classes)


@pytest.mark.parametrize("ranker", ONE_OF_A_KIND.values(), ids=lambda it: type(it).__name__)
def test_rows_that_are_no_label_sets_are_named(ranker):
    for row, words in WRONG.values():
        Y = [*GOOD[:3], row, *GOOD[4:]]
        for form in (Y, [list(labels) if isinstance(labels, set) else labels for labels in Y]):
            with pytest.raises(ValueError, match=words):
                clone(ranker).fit(X, form)
    with pytest.raises(ValueError, match="row 0 is"):
        clone(ranker).fit(X, [dict.fromkeys("ab", 1)] * 6)


@pytest.mark.parametrize("ranker", ONE_OF_A_KIND.values(), ids=lambda it: type(it).__name__)
def test_one_long_name_does_not_widen_every_cell_of_a_ranking(ranker):
    """NumPy's strings are all as wide as the longest: 20 kB a cell for a name of 5,000."""
    long = "x" * 5000
    Y = [{"a"}, {"b"}, {"a", "b"}, {"b"}, {"a"}, {long}] * 10
    ranked = clone(ranker).fit(np.tile(X, (10, 1)), Y).rank(X)
    assert set(ranked[0]) == {"a", "b", long}
    assert ranked.nbytes <= 8 * ranked.size
    classes = np.array(["a", "b", long] * 20)
    assert clone(ranker).fit(np.tile(X, (10, 1)), classes).rank(X).nbytes <= 8 * ranked.size
