"""What goes into a model file, one entry per class of ranker."""

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
        dimensions: ``m`` or ``l`` labels, ``d`` features, ``b`` the three branches of a stump, any
        other letter a size that must be the same wherever it stands. ``"f md"`` is a matrix of
        floats, one row per label.
    values : tuple of str
        Numbers, strings and lists or dicts of them.
    optional : tuple of str
        Those of the above that some fits do not have.
    not_finite : tuple of str
        Arrays in which infinity or NaN has a meaning.
    maybe_sparse : mapping of str to str
        Arrays that may be sparse, and how: "csr", "csc", or "gaps": as csc with gaps between row
        numbers, which older files have as csr.
    feature_numbers : tuple of str
        Arrays that hold numbers of features, which kernels trust.
    """

    home: str
    arrays: Mapping[str, str] = field(default_factory=dict)
    values: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    not_finite: tuple[str, ...] = ()
    maybe_sparse: Mapping[str, str] = field(default_factory=dict)
    feature_numbers: tuple[str, ...] = ()


_SOLUTION = {
    "coef_": "f md",
    "intercept_": "f m",
    "n_iter_": "i m",
    "converged_": "b m",
    "objective_": "f m",
    "gradient_norm_": "f m",
}
# l, not m: a vector of two classes may have two labels here.
_SHARED_STUMPS = Stored(
    "deltarank.rankers",
    {
        "features_": "i t",
        "thresholds_": "f t",
        "votes_": "f tbl",
        "normalizers_": "f t",
        "constants_": "f l",
    },
    not_finite=("thresholds_", "constants_"),
    feature_numbers=("features_",),
)

STORED = {
    "LogisticRanker": Stored(
        "deltarank.rankers",
        {**_SOLUTION, "prune_effect_": "f m"},
        optional=("prune_effect_",),
        maybe_sparse={"coef_": "csc"},
    ),
    "LogisticRankerCV": Stored(
        "deltarank.rankers",
        _SOLUTION,
        ("C_", "balance_", "best_score_", "cv_results_"),
        optional=("balance_",),  # older files have none
    ),
    "KernelLogisticRanker": Stored(
        "deltarank.rankers",
        {
            "landmarks_": "f kd",
            "whitening_": "f kr",
            "coef_": "f mr",
            "intercept_": "f m",
            "n_iter_": "i m",
        },
        ("gamma_", "C_", "n_landmarks_", "search_"),
        maybe_sparse={"landmarks_": "csr"},
    ),
    "LabelTreeRanker": Stored(
        "deltarank.rankers",
        {
            "coef_": "f vd",
            "intercept_": "f v",
            "child_starts_": "i s",
            "node_labels_": "i v",
            "constants_": "f m",
            "n_iter_": "i v",
            "converged_": "b v",
        },
        not_finite=("constants_",),
        maybe_sparse={"coef_": "gaps"},
    ),
    "AdaBoostRanker": Stored(
        "deltarank.rankers",
        {
            "features_": "i tm",
            "thresholds_": "f tm",
            "votes_": "f tbm",
            "first_votes_": "f bm",
            "normalizers_": "f tm",
            "n_stumps_": "i m",
            "constants_": "f m",
        },
        not_finite=("thresholds_", "constants_"),
        feature_numbers=("features_",),
    ),
    "BoostedTreeRanker": Stored(
        "deltarank.rankers",
        {
            "base_": "f m",
            "roots_": "i t",
            "features_": "i v",
            "thresholds_": "f v",
            "missing_left_": "b v",
            "gains_": "f v",
            "children_": "i vc",
            "values_": "f km",
            "leaf_weights_": "f k",
            "constants_": "f m",
            "category_sets_": "i sw",
            "is_categorical_": "b d",
            "linear_coef_": "f ud",
            "linear_intercept_": "f u",
            "linear_means_": "f d",
            "linear_factors_": "f d",
        },
        optional=(  # older files have none
            "category_sets_",
            "is_categorical_",
            "linear_coef_",
            "linear_intercept_",
            "linear_means_",
            "linear_factors_",
        ),
        not_finite=("thresholds_", "constants_"),
    ),
    "PairwiseRanker": Stored(
        "deltarank.rankers",
        {"coef_": "f md", "intercept_": "f m"},
        ("n_iter_", "converged_", "objective_"),
    ),
    "LogLinearRanker": Stored(
        "deltarank.rankers",
        {
            "coef_": "f md",
            "intercept_": "f m",
            "loss_curve_": "f i",
            "stages_": "i k",
            "stage_coef_": "f kmd",
            "stage_intercept_": "f km",
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
