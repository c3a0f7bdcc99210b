"""Figure 1 in numbers: regrets, paired differences, limits, and choices at an end of their grid."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from deltarank.core.statistics import clustered_error, sign_flip_p, t_test
from deltarank.paper.experiments import Row, Table
from deltarank.paper.experiments.algorithms import RIVALS, grid_of
from deltarank.paper.experiments.figure1_limits import MINIMISERS

CASES = ("independent", "dependent")
# The four of the paper, and two that separate what it leaves mixed: MH has the stumps of MR with
# the loss of WBR-AB, BR is WBR-LR without the weights.
CURVES = ("AB.MR", "WBR-AB", "AB.MH", "LLLR", "WBR-LR", "BR")
BAYES = "Bayes"
NOTE = (
    "Loss is the mean rank loss of test rows, regret the loss less that of the Bayes ranker on the "
    "same rows. Models differ far more than rankers do, so differences are paired by training set "
    "and their standard errors are taken over models. At low and high end: the share of training "
    "sets whose choice is the first or last value of its grid."
)


def with_regret(rows: list[Row]) -> list[Row]:
    """Return the rows of rankers, each with its loss above the Bayes ranker's on the same rows."""
    least = {(r["case"], r["model"]): r["loss"] for r in rows if r["algorithm"] == BAYES}
    return [
        {**row, "regret": row["loss"] - least[row["case"], row["model"]]}
        for row in rows
        if row["algorithm"] in CURVES
    ]


def tables(rows: list[Row]) -> list[Table]:
    """Say what the curves show, and what the eye cannot see: paired differences."""
    return [
        Table("Figure 1 in numbers", list(_curve_rows(with_regret(rows))), NOTE),
        Table(
            "Pairwise less univariate, paired by training set",
            list(_difference_rows(with_regret(rows))),
            "Positive means that the second ranker is better. Models are the units: intervals are "
            "Student's, of 95 %, and p is exact, over all signs of the models' means, not adjusted "
            "for the number of tests.",
        ),
        *_limit_tables(rows),
    ]


def _curve_rows(rows: list[Row]) -> Iterable[Row]:
    for case in CASES:
        for algorithm in CURVES:
            for n in sorted({row["n_rows"] for row in rows}):
                matching = rows_of(rows, case=case, algorithm=algorithm, n_rows=n)
                yield {
                    "case": case,
                    "algorithm": algorithm,
                    "n_rows": n,
                    "loss": float(np.mean([row["loss"] for row in matching])),
                    "regret": float(np.mean([row["regret"] for row in matching])),
                    "error": clustered_error(
                        [row["regret"] for row in matching], [row["model"] for row in matching]
                    ),
                    "median choice": float(np.median([row["chosen"] for row in matching])),
                    **_ends(matching),
                }


def _difference_rows(rows: list[Row]) -> Iterable[Row]:
    pairs = [*RIVALS.values(), ("AB.MR", "AB.MH"), ("BR", "WBR-LR")]
    for case in CASES:
        for first, second in pairs:
            for n in sorted({row["n_rows"] for row in rows}):
                gaps, models = paired_gaps(rows, case, n, first, second)
                means = means_of_models(gaps, models)
                test = t_test(means)
                yield {
                    "case": case,
                    "pair": f"{first} - {second}",
                    "n_rows": n,
                    "difference": test.mean,
                    "error": test.error,
                    "from": test.low,
                    "to": test.high,
                    "p": sign_flip_p(means),
                }


def means_of_models(values: Any, models: Any) -> Any:
    """Return the mean of each model's values, the units that tests are about."""
    return np.array([np.mean(values[models == model]) for model in np.unique(models)])


def _ends(rows: list[Row]) -> Row:
    """Return how often the choice is the first or last value of its grid."""
    low, high = (np.mean([row["chosen"] == grid_of(row)[end] for row in rows]) for end in (0, -1))
    return {"at low end": float(low), "at high end": float(high)}


def _limit_tables(rows: list[Row]) -> list[Table]:
    limits = [row for row in rows if row["algorithm"] in MINIMISERS]
    if not limits:
        return []
    lines = []
    for case in CASES:
        floors = [row["floor"] for row in rows_of(rows, case=case, algorithm=BAYES)]
        lines.append(_limit_row(case, "Bayes ranker as computed", floors))
        for name in MINIMISERS:
            regrets = [row["regret"] for row in rows_of(limits, case=case, algorithm=name)]
            lines.append(_limit_row(case, name, regrets))
    note = (
        f"Regrets of each loss's minimiser among linear scores, from {limits[0]['n_rows']:,} rows "
        "without a penalty, and of the Bayes ranker as it is computed, which is the floor of the "
        "regrets above; both integrated over the disk, means and standard errors over models."
    )
    return [Table("Where the curves go", lines, note)]


def _limit_row(case: str, name: str, regrets: list[float]) -> Row:
    test = t_test(regrets)
    return {
        "case": case,
        "ranker": name,
        "regret": test.mean,
        "error": test.error,
        "least": min(regrets),
        "largest": max(regrets),
    }


def paired_gaps(rows: list[Row], case: str, n: int, first: str, second: str) -> Any:
    """Return the differences of losses on the same training sets, and the model of each."""
    one, other = (
        {(r["model"], r["training_set"]): r["loss"] for r in rows_of(rows, case=case, n_rows=n,
                                                                 algorithm=name)}
        for name in (first, second)
    )  # fmt: skip
    keys = sorted(one)
    return np.array([one[k] - other[k] for k in keys]), np.array([k[0] for k in keys])


def rows_of(rows: list[Row], **wanted: Any) -> list[Row]:
    """Return the rows whose fields have these values."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]
