"""Cross-validation in blocks of labels: each goes along the whole path of penalties on its own.

Of text, coefficients of all labels in all folds are too many to hold at a time. What is needed to
choose a penalty is the scores of held-out rows alone, which are few.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from deltarank.core import memory
from deltarank.linear.coefficients import linear_scores
from deltarank.linear.fit import (
    Options,
    Work,
    block_bytes,
    bytes_per_problem,
    cut,
    solve_blocks,
    solve_path,
)
from deltarank.linear.objective import Objective
from deltarank.linear.rows.dual import Ascent

Array = NDArray[Any]
# Vectors of all problems that a path holds at a time: two solutions, and features of one.
VECTORS_OF_A_PATH = 6
# Fewer held-out rows would not distinguish values of C.
FEWEST_MEASURED = 1000
# Dual coordinate ascent stops by the gap itself; estimates of other solvers err upwards so much.
TRUER = 10


class Scores(NamedTuple):
    """Scores (p, c, rows) of measured rows by labels fitted without them, at each C."""

    scores: Array


def held_out_scores(
    objective: Objective, Cs: Array, options: Options, random_state: Any
) -> tuple[Array, Array]:
    """Return scores (m, c, rows) of rows by labels fitted without their folds, and which rows."""
    blocks, measured = _blocks(objective, Cs, random_state)
    run = partial(_score_block, Cs=Cs, measured=measured)
    work = Work(run, Scores, settings=[*Cs.tolist(), measured.tolist()])
    return solve_blocks(objective, options, work, blocks=blocks).scores, measured


def _blocks(objective: Objective, Cs: Array, random_state: Any) -> tuple[list[Array], Array]:
    """Return blocks of labels that fit in memory, and the rows whose scores are kept.

    Scores of all rows, labels and values of C are held until all labels have theirs; where they
    would take more than the budget, a sample of the rows is measured.
    """
    rows: Any = objective.rows
    room, n_labels, n_values = memory.budget(), rows.n_labels, len(Cs)
    measured = np.arange(len(rows.weights))
    # Held twice while blocks are joined.
    n_measured = min(len(measured), room // (8 * n_values * n_labels))
    memory.require(
        8 * n_values * n_labels * min(len(measured), FEWEST_MEASURED),
        f"choosing among {n_values} values of C for {n_labels} labels",
        "name fewer values (Cs), or fit one value with LogisticRanker",
    )
    n_measured = max(n_measured, min(len(measured), FEWEST_MEASURED))
    if n_measured < len(measured):
        chosen = check_random_state(random_state).permutation(len(measured))[:n_measured]
        measured = np.sort(measured[chosen])
    per_label = 4 * n_values * len(rows.weights)
    if not objective.takes_dual(*Cs):
        per_label += rows.n_folds * bytes_per_problem(objective)
    width = max(1, min(block_bytes(objective) // per_label, n_labels))
    return cut(rows.frequencies, width), measured


def _score_block(
    objective: Objective,
    labels: Array,
    options: Options,
    start: None,
    *,
    Cs: Array,
    measured: Array,
) -> Scores:
    """Return the scores of measured rows by some labels, along the path of all Cs."""
    rows: Any = objective.rows
    if objective.takes_dual(*Cs):
        ascent = Ascent(objective.penalize_intercept, options.tol / TRUER, options.max_iter)
        table = rows.dual.held_out_scores(labels, Cs, ascent)
        return Scores(np.ascontiguousarray(table[:, measured].transpose(2, 0, 1)))
    n_folds = rows.n_folds
    problems = (labels[:, None] * n_folds + np.arange(n_folds)).reshape(-1)
    scores = np.zeros((len(labels), len(Cs), len(rows.weights)), np.float32)
    path = solve_path(objective, Cs, options._replace(checkpoint=None), problems)
    for place, (current, solution) in enumerate(path):
        coef, intercept = current.to_features(solution.point)
        for fold, part in enumerate(rows.held_out):
            without_fold = slice(fold, None, n_folds)
            scores[:, place, part] = linear_scores(
                rows.X[part], coef[without_fold], intercept[without_fold]
            ).T
    return Scores(scores[:, :, measured])


def bytes_of_path(objective: Objective) -> int:
    """Return the memory that a path takes on which all problems go side by side."""
    n_problems, n_variables = objective.shape
    return 8 * VECTORS_OF_A_PATH * n_problems * n_variables


def require_path(objective: Objective) -> None:
    """Refuse such a path if there is not the memory for it."""
    n_labels, n_features = objective.rows.n_labels, objective.rows.n_features
    memory.require(
        bytes_of_path(objective),
        f"cross-validation of {n_labels} labels and {n_features} features in "
        f"{objective.rows.n_folds} folds",
        "name the scoring (such as neg_rank_loss) so that labels go block by block, use fewer "
        "folds, or fit one value of C with LogisticRanker",
    )
