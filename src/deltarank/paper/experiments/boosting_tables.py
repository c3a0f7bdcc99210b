"""The factorial of boosters in numbers and words: regrets, and differences paired by model."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from deltarank.core.statistics import TTest, sign_flip_p, t_test
from deltarank.paper.experiments import Row, Table
from deltarank.paper.experiments.boosting_arms import ARMS, FACTORIAL, MOST_20, PAPERS, Arm
from deltarank.paper.experiments.figure1_tables import CASES, means_of_models
from deltarank.paper.report.tables import with_error

FACTORS = ("loss", "stumps", "criterion", "shrinkage")
NAMES = {arm: name for name, arm in ARMS.items()}
# The arms of the paper's algorithms, by its names for them.
NAMED = {name: NAMES[arm] for name, arm in PAPERS.items()}
MORE_STUMPS = NAMES[PAPERS["WBR-AB"]._replace(most=None)]


def tables(rows: list[Row]) -> list[Table]:
    """Give the regret of every arm, and what each factor changes with the others held."""
    return [
        Table(
            "Regret of boosters",
            list(_regret_rows(rows)),
            "Integrated over the disk; rounds chosen by cross-validation inside the training set. "
            "Arms are loss, stumps, criterion, shrinkage; means and standard errors are over "
            "models. At end: the share of training sets whose choice is the last of its grid.",
        ),
        Table(
            "What each factor changes, paired by training set",
            list(_contrast_rows(rows)),
            "Positive means that the second arm is better. Models are the units: intervals are "
            "Student's, of 95 %, and p is exact, over all signs of the models' means, not adjusted "
            "for the number of tests.",
        ),
    ]


def _regret_rows(rows: list[Row]) -> Iterable[Row]:
    for case in CASES:
        for n in sorted({row["n_rows"] for row in rows}):
            for name, arm in ARMS.items():
                matching = _of(rows, case, n, name)
                test = t_test(_means(matching))
                yield {
                    "case": case,
                    "n_rows": n,
                    "arm": name,
                    **{factor: getattr(arm, factor) for factor in FACTORS},
                    "regret": test.mean,
                    "error": test.error,
                    "median rounds": float(np.median([row["chosen"] for row in matching])),
                    "at end": float(np.mean([row["at end"] for row in matching])),
                }


def contrasts() -> list[tuple[str, str, str]]:
    """Return what differs, and the two arms: of the factorial, and of the paper's own arms."""
    pairs = [
        (factor, one, other)
        for (one, a), (other, b) in combinations(FACTORIAL.items(), 2)
        if (factor := _only_difference(a, b))
    ]
    pairs += [("bins", f"{name}, 256 bins", exact) for name, exact in NAMED.items()]
    pairs += [
        ("paper", NAMED["AB.MR"], NAMED["WBR-AB"]),
        ("paper, 256 bins", "AB.MR, 256 bins", "WBR-AB, 256 bins"),
        ("paper, at most 20", MOST_20, NAMED["WBR-AB"]),
        ("more stumps", NAMED["WBR-AB"], MORE_STUMPS),
    ]
    return pairs


def _only_difference(a: Arm, b: Arm) -> str:
    """Return the one factor in which two arms differ, or nothing."""
    differing = [factor for factor in FACTORS if getattr(a, factor) != getattr(b, factor)]
    return differing[0] if len(differing) == 1 else ""


def _contrast_rows(rows: list[Row]) -> Iterable[Row]:
    for case in CASES:
        for n in sorted({row["n_rows"] for row in rows}):
            for factor, one, other in contrasts():
                test, p = contrast(rows, case, n, one, other)
                yield {
                    "case": case,
                    "n_rows": n,
                    "factor": factor,
                    "pair": f"({one}) - ({other})",
                    "difference": test.mean,
                    "error": test.error,
                    "from": test.low,
                    "to": test.high,
                    "p": p,
                }


def contrast(rows: list[Row], case: str, n: int, one: str, other: str) -> tuple[TTest, float]:
    """Return the difference of two arms' regrets over models, and the p-value of its signs."""
    gaps = _means(_of(rows, case, n, one)) - _means(_of(rows, case, n, other))
    return t_test(gaps), sign_flip_p(gaps)


def _of(rows: list[Row], case: str, n: int, arm: str) -> list[Row]:
    wanted = (case, n, arm)
    return [row for row in rows if (row["case"], row["n_rows"], row["arm"]) == wanted]


def _means(rows: list[Row]) -> np.ndarray:
    models = np.array([row["model"] for row in rows])
    return np.asarray(means_of_models(np.array([row["regret"] for row in rows]), models))


def findings(rows: list[Row]) -> list[str]:
    """Answer the question for the largest training sets."""
    n = max(row["n_rows"] for row in rows)
    return [sentence for case in CASES for sentence in _case_findings(rows, case, n)]


def _case_findings(rows: list[Row], case: str, n: int) -> Iterable[str]:
    head = f"{case} labels, {n} rows"
    for comparison, one, other in (
        ("exact, WBR-AB less AB.MR", NAMED["WBR-AB"], NAMED["AB.MR"]),
        ("AB.MR held to 20 stumps, WBR-AB less AB.MR", NAMED["WBR-AB"], MOST_20),
        ("WBR-AB with up to 2,000 stumps less up to 200", MORE_STUMPS, NAMED["WBR-AB"]),
        ("WBR-AB, exact less 256 bins", NAMED["WBR-AB"], "WBR-AB, 256 bins"),
        ("the same shared stumps, AB.MH less AB.MR", NAMED["AB.MH"], NAMED["AB.MR"]),
    ):
        test, p = contrast(rows, case, n, one, other)
        yield f"{head}: {comparison}: {with_error(test.mean, test.error)}, p = {p:.2g}."
    for loss in ("pairwise", "univariate"):
        regrets = {
            name: _means(_of(rows, case, n, name))
            for name, arm in FACTORIAL.items()
            if arm.loss == loss
        }
        best = min(regrets, key=lambda name: regrets[name].mean())
        test = t_test(regrets[best])
        yield (
            f"{head}: the least {loss} regret is that of ({best}), the least of "
            f"{len(regrets)} and so flattered: {with_error(test.mean, test.error)}."
        )
    shares = [
        np.mean([row["at end"] for row in _of(rows, case, n, arm)])
        for arm in (NAMED["WBR-AB"], MORE_STUMPS)
    ]
    yield (
        f"{head}: WBR-AB takes the last number of its grid in {shares[0]:.0%} of the fits where "
        f"that is 200, in {shares[1]:.0%} where it is 2,000."
    )
