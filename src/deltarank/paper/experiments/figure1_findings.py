"""What Figure 1 says in words, beside what the paper says."""

import numpy as np

from deltarank.core.statistics import sign_flip_p, t_test
from deltarank.paper.experiments import Row
from deltarank.paper.experiments.algorithms import RIVALS
from deltarank.paper.experiments.figure1_tables import (
    BAYES,
    CASES,
    means_of_models,
    paired_gaps,
    rows_of,
    with_regret,
)
from deltarank.paper.report.tables import with_error

LEVEL = 0.05
# One model is named if it has more than this share of a mean regret.
MOST_OF = 0.5
# What the paper says of pairwise less univariate losses for large samples.
PAPER_SAYS = {
    ("independent", "exponential"): "better",
    ("dependent", "exponential"): "better",
    ("independent", "logistic"): "on par",
    ("dependent", "logistic"): "better",
}


def findings(rows: list[Row]) -> list[str]:
    """Say who wins on the largest training sets, beside what the paper says."""
    trained = with_regret(rows)
    n = max(row["n_rows"] for row in trained)
    sentences = []
    for (case, surrogate), claim in PAPER_SAYS.items():
        first, second = RIVALS[surrogate]
        gaps, models = paired_gaps(trained, case, n, first, second)
        means = means_of_models(gaps, models)
        test, p = t_test(means), sign_flip_p(means)
        verdict = "on par" if not test.p < LEVEL else "better" if test.mean > 0 else "worse"
        agrees = "as in the paper" if verdict == claim else f"in the paper {claim}"
        relation = {"on par": "on par with"}.get(verdict, f"{verdict} than")
        sentences.append(
            f"{case} labels, {surrogate} loss, {n} rows: the univariate {second} is {relation} the "
            f"pairwise {first} ({agrees}); difference {with_error(test.mean, test.error)}, "
            f"p = {test.p:.2g} by Student's test over {len(means)} models, {p:.2g} by their signs."
        )
    sentences += [_bayes_finding(rows, case) for case in CASES]
    return sentences + _plateau_findings(rows, trained, n)


def _bayes_finding(rows: list[Row], case: str) -> str:
    """Say the Bayes ranker's loss on the test rows, and its risk over all rows."""
    matching = rows_of(rows, case=case, algorithm=BAYES)
    loss, risk = (float(np.mean([row[key] for row in matching])) for key in ("loss", "risk"))
    text = f"{case} labels: the Bayes ranker has loss {loss:.4f} on the test rows, risk {risk:.4f}"
    floors = [row["floor"] for row in matching if "floor" in row]
    if any(floors):
        text += (
            f"; as it is computed, from 4,096 draws, it has regret {min(floors):.1g} to "
            f"{max(floors):.1g} itself, below which no other can be told"
        )
    return text + "."


def _plateau_findings(rows: list[Row], trained: list[Row], n: int) -> list[str]:
    """Name a model that makes most of a regret where its curve ends or goes to."""
    sentences = []
    for case in CASES:
        for name in ("LLLR", "WBR-LR", "BR"):
            ends = {
                f"at {n} rows": rows_of(trained, case=case, algorithm=name, n_rows=n),
                "in the limit": rows_of(rows, case=case, algorithm=f"{name} limit"),
            }
            for where, matching in ends.items():
                text = _heaviest_model(matching)
                sentences += [f"{case} labels, {name} {where}: {text}."] if text else []
    return sentences


def _heaviest_model(rows: list[Row]) -> str:
    models = np.array([row["model"] for row in rows])
    regrets = means_of_models(np.array([row["regret"] for row in rows]), models) if rows else []
    if len(regrets) < 3 or max(regrets) <= MOST_OF * sum(regrets):
        return ""
    heaviest = int(np.argmax(regrets))
    others = t_test(np.delete(regrets, heaviest))
    return (
        f"model {np.unique(models)[heaviest]} makes {max(regrets) / sum(regrets):.0%} of the mean "
        f"regret {np.mean(regrets):.2g}; without it, it is {with_error(others.mean, others.error)}"
    )
