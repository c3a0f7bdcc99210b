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
        Each array and its dimensions: ``m`` labels, ``d`` features, any other letter a size that
        must be the same wherever it stands.
    values : tuple of str
        Numbers, strings and lists or dicts of them.
    optional : tuple of str
        Those of the above that some fits do not have.
    not_finite : tuple of str
        Arrays in which infinity or NaN has a meaning.
    maybe_sparse : tuple of str
        Arrays that may be CSR.
    """

    home: str
    arrays: Mapping[str, str] = field(default_factory=dict)
    values: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    not_finite: tuple[str, ...] = ()
    maybe_sparse: tuple[str, ...] = ()


_SOLUTION = {
    "coef_": "md",
    "intercept_": "m",
    "n_iter_": "m",
    "converged_": "m",
    "objective_": "m",
    "gradient_norm_": "m",
}
# Three branches, b; a vector of two classes has two labels here, so k.
_SHARED_STUMPS = Stored(
    "deltarank.rankers",
    {"features_": "t", "thresholds_": "t", "votes_": "tbk", "normalizers_": "t", "constants_": "k"},
    not_finite=("thresholds_", "constants_"),
)

STORED = {
    "LogisticRanker": Stored("deltarank.rankers", _SOLUTION),
    "LogisticRankerCV": Stored(
        "deltarank.rankers", _SOLUTION, ("C_", "best_score_", "cv_results_")
    ),
    "KernelLogisticRanker": Stored(
        "deltarank.rankers",
        {
            "landmarks_": "kd",
            "whitening_": "kr",
            "coef_": "mr",
            "intercept_": "m",
            "n_iter_": "m",
        },
        ("gamma_", "C_", "n_landmarks_", "search_"),
        maybe_sparse=("landmarks_",),
    ),
    "AdaBoostRanker": Stored(
        "deltarank.rankers",
        {
            "features_": "tm",
            "thresholds_": "tm",
            "votes_": "tbm",
            "first_votes_": "bm",
            "normalizers_": "tm",
            "n_stumps_": "m",
            "constants_": "m",
        },
        not_finite=("thresholds_", "constants_"),
    ),
    "PairwiseRanker": Stored(
        "deltarank.rankers",
        {"coef_": "md", "intercept_": "m"},
        ("n_iter_", "converged_", "objective_"),
    ),
    "LogLinearRanker": Stored(
        "deltarank.rankers",
        {
            "coef_": "md",
            "intercept_": "m",
            "loss_curve_": "i",
            "stages_": "k",
            "stage_coef_": "kmd",
            "stage_intercept_": "km",
        },
        ("n_iter_", "rho_", "converged_", "objective_"),
        optional=(
            "loss_curve_",
            "stages_",
            "stage_coef_",
            "stage_intercept_",
            "rho_",
            "converged_",
            "objective_",
        ),
    ),
    "AdaBoostMR": _SHARED_STUMPS,
    "AdaBoostMH": _SHARED_STUMPS,
}
# Rankers that no file without code can hold, and why.
REFUSED = {
    "StagedSearchCV": "save what it chose, its best_ranker_",
    "WeightedBinaryRelevance": "its estimators are code of other libraries, and a model file holds "
    "none; use LogisticRanker, or keep it with the tools of those libraries",
}
