"""Same seed and versions: the same bits, on one thread and on more.

Fits run in processes of their own, as the number of threads is read when they start.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

FITS = """
import sys
import numpy as np
from scipy import sparse
from deltarank import (AdaBoostMH, AdaBoostMR, AdaBoostRanker, BoostedTreeRanker,
                       KernelLogisticRanker,
                       LabelTreeRanker, LogisticRanker, LogisticRankerCV,
                       LogLinearRanker, PairwiseRanker, StagedSearchCV, rank_loss)

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 30))
Y = (X @ rng.normal(size=(30, 20)) + 4 * rng.logistic(size=(4000, 20)) > 8).astype(int)
rankers = {
    "logistic": LogisticRanker(),
    "logistic, sparse": LogisticRanker(),
    "logistic cv": LogisticRankerCV(Cs=[0.01, 1.0], cv=3, random_state=0),
    "kernel": KernelLogisticRanker(n_landmarks=50, gamma=0.1, C=1.0, random_state=0),
    "tree, sparse": LabelTreeRanker(arity=3, leaf_size=3, random_state=0),
    "adaboost": AdaBoostRanker(n_stumps=20),
    "adaboost mr": AdaBoostMR(n_stumps=40),
    "adaboost mh": AdaBoostMH(n_stumps=40),
    "trees": BoostedTreeRanker(n_trees=10, row_share=0.8, random_state=0),
    "trees, sparse": BoostedTreeRanker(n_trees=10, max_leaves=8, random_state=0),
    "staged": StagedSearchCV(AdaBoostMH(), rounds=[5, 20], cv=3, random_state=0),
    "lllr": LogLinearRanker(n_iterations=30),
    "pairwise": PairwiseRanker(loss="exponential"),
}
found = {}
for name, ranker in rankers.items():
    data = sparse.csr_array(np.where(np.abs(X) > 1, X, 0)) if "sparse" in name else X
    found[name] = ranker.fit(data, Y).decision_function(data[:500])
found["rank loss"] = rank_loss(Y[:500], found["logistic"], per_instance=True)
np.savez(sys.argv[1], **found)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    found = {}
    for name, threads in (("one", 1), ("one again", 1), ("two", 2), ("three", 3)):
        path = folder / f"{name}.npz"
        environment = os.environ | {"DELTARANK_NUM_THREADS": str(threads)}
        command = [sys.executable, "-W", "ignore", "-c", FITS, str(path)]
        subprocess.run(command, check=True, env=environment)
        found[name] = dict(np.load(path))
    return found


@pytest.mark.parametrize("other", ["one again", "two", "three"])
def test_runs_give_the_same_bits(runs, other):
    for name, scores in runs["one"].items():
        assert_array_equal(runs[other][name], scores, err_msg=name)
