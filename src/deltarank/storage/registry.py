"""What of each ranker goes into a model file: one entry a class."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Stored:
    """The fitted attributes of a ranker class.

    Attributes
    ----------
    home : str
        Module of the class.
    arrays : mapping of str to str
        The kind of each array, ``f`` (floats), ``i`` (integers) or ``b`` (true or false), and its
        dimensions: ``m`` labels, ``d`` features, any other letter a size that must be the same
        wherever it stands. ``"f md"`` is a matrix of floats, a row a label.
    values : tuple of str
        Numbers, strings and lists or dicts of them.
    """

    home: str
    arrays: Mapping[str, str] = field(default_factory=dict)
    values: tuple[str, ...] = ()


_SOLUTION = {
    "coef_": "f md",
    "intercept_": "f m",
    "n_iter_": "i m",
    "converged_": "b m",
    "objective_": "f m",
    "gradient_norm_": "f m",
}

STORED = {
    "LogisticRanker": Stored("deltarank.rankers", _SOLUTION),
    "LogisticRankerCV": Stored(
        "deltarank.rankers", _SOLUTION, ("C_", "best_score_", "cv_results_")
    ),
}
# Rankers that no file without code can hold, and why.
REFUSED = {
    "WeightedBinaryRelevance": "its estimators are code of other libraries, and a model file holds "
    "none; use LogisticRanker, or keep it with the tools of those libraries",
}
