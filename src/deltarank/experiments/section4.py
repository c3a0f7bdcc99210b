"""Which surrogates put three labels in the right order, when the label distribution is known?"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from deltarank.experiments import Experiment, Row
from deltarank.report.rankings import draw_rankings
from deltarank.theory import EXAMPLES, SURROGATES, LabelDistribution, surrogate_minimizer


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


def answer(example: str, distribution: LabelDistribution, surrogate: str) -> Row:
    """Minimise one surrogate on one distribution and see what ranking comes out."""
    scores = surrogate_minimizer(distribution, surrogate)
    regret = distribution.regret(scores)
    return {
        "example": example,
        "surrogate": surrogate,
        "scores": [round(float(score), 6) for score in scores],
        "order": order(scores),
        "best order": order(distribution.bayes_scores()),
        "risk": round(distribution.risk(scores), 6),
        "least risk": round(distribution.bayes_risk(), 6),
        "regret": round(regret, 6),
        "right": bool(regret < 1e-9),
    }


def rows() -> Iterator[Row]:
    """Answer for every example and surrogate."""
    for example, distribution in EXAMPLES.items():
        for surrogate in SURROGATES:
            yield answer(example, distribution, surrogate)


EXPERIMENT = Experiment(name="section4", question=__doc__, rows=rows, figure=draw_rankings)
