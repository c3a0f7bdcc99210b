"""Which surrogates put three labels in the right order, when the label distribution is known?"""

from itertools import pairwise
from typing import Any

import numpy as np

from deltarank.paper.experiments import Experiment, Job, Row, Table
from deltarank.paper.experiments.presets import Preset
from deltarank.paper.report.rankings import draw_rankings
from deltarank.theory import EXAMPLES, SURROGATES, surrogate_minimizer


def order(scores: np.ndarray) -> str:
    """Write scores as a ranking, ``=`` for a tie.

    Examples
    --------
    >>> order(np.array([0.2, 0.2, 0.7]))
    '3 > 1 = 2'
    """
    best_first = np.argsort(-scores, kind="stable")
    text = str(best_first[0] + 1)
    for before, label in pairwise(best_first):
        text += f" {'=' if scores[before] == scores[label] else '>'} {label + 1}"
    return text


def jobs(preset: Preset) -> list[Job]:
    """List one job per example and surrogate."""
    return [{"example": e, "surrogate": s} for e in EXAMPLES for s in SURROGATES]


def answer(example: str, surrogate: str) -> Row:
    """Minimise one surrogate on one distribution and see what ranking comes out."""
    distribution = EXAMPLES[example]
    scores = surrogate_minimizer(distribution, surrogate)
    regret = distribution.regret(scores)
    return {
        "scores": [round(float(score), 6) for score in scores],
        "order": order(scores),
        "best order": order(distribution.bayes_scores()),
        "risk": round(distribution.risk(scores), 6),
        "least risk": round(distribution.bayes_risk(), 6),
        "regret": round(regret, 6),
        "right": bool(regret < 1e-9),
    }


def tables(rows: list[Row]) -> list[Table]:
    """Show the rows as they are."""
    hidden = ("seconds", "versions")
    return [
        Table(
            EXPERIMENT.question,
            [{key: value for key, value in row.items() if key not in hidden} for row in rows],
            "Regret is what the surrogate's own minimiser loses to the best ranking.",
        )
    ]


def figures(rows: list[Row]) -> dict[str, Any]:
    """Draw where each minimiser puts each label."""
    return {"section4": draw_rankings(rows)}


def findings(rows: list[Row]) -> list[str]:
    """Name the surrogates that always come out right, and those that do not."""
    names = list(dict.fromkeys(row["surrogate"] for row in rows))
    wrong = [n for n in names if any(not r["right"] for r in rows if r["surrogate"] == n)]
    right = [name for name in names if name not in wrong]
    return [
        f"In the best order in all examples: {', '.join(right)}.",
        f"In a wrong order in some: {', '.join(wrong)}. So says the paper of the pairwise ones.",
    ]


EXPERIMENT = Experiment(
    "section4", __doc__, jobs, answer, tables, figures, findings, lambda job: 0.0
)
