"""Estimators that model files hold in parts: those of scikit-learn, and rankers round others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True)
class Known:
    """An estimator class, and the attributes that a fit may give it.

    Attributes
    ----------
    home : str
        Module of the class.
    arrays : mapping of str to str
        The kind of each array and its dimensions, as in `Stored`; here an array may also be None.
    others : tuple of str
        Further attributes, of whatever kinds a model file holds.
    not_finite : tuple of str
        Arrays in which infinity or NaN has a meaning.
    forgotten : tuple of str
        Attributes that mean nothing to another process.
    must_be_none : tuple of str
        Parameters that would be code.
    """

    home: str
    arrays: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    not_finite: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    must_be_none: tuple[str, ...] = ()
    feature_numbers: ClassVar[tuple[str, ...]] = ()

    @property
    def attributes(self) -> set[str]:
        """All names that an attribute may have."""
        return {*self.arrays, *self.others, *COMMON}


# What any estimator of scikit-learn may have.
COMMON = ("n_features_in_", "feature_names_in_", "_sklearn_output_config")
_RANKER = ("classes_", "_form")
_ENCODER = ("categories_", "_infrequent_enabled", "_infrequent_indices",
            "_default_to_infrequent_mappings")  # fmt: skip
_VECTORIZER = ("vocabulary_", "fixed_vocabulary_")
_SCORES = Known("sklearn.feature_selection", {"scores_": "f d", "pvalues_": "f d"},
                not_finite=("scores_", "pvalues_"))  # fmt: skip

KNOWN = {
    "Pipeline": Known("sklearn.pipeline"),
    "FeatureUnion": Known("sklearn.pipeline"),
    "ColumnTransformer": Known(
        "sklearn.compose",
        others=(
            "_columns",
            "_transformer_to_input_indices",
            "_remainder",
            "sparse_output_",
            "transformers_",
            "output_indices_",
        ),
    ),
    # Stands for columns that pass through; with a function of its own it would be code.
    "FunctionTransformer": Known(
        "sklearn.preprocessing", must_be_none=("func", "inverse_func", "kw_args", "inv_kw_args")
    ),
    "StandardScaler": Known(
        "sklearn.preprocessing",
        {"mean_": "f d", "var_": "f d", "scale_": "f d"},
        ("n_samples_seen_",),
    ),
    "MinMaxScaler": Known(
        "sklearn.preprocessing",
        dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), "f d"),
        ("n_samples_seen_",),
        not_finite=("scale_", "min_", "data_min_", "data_max_", "data_range_"),
    ),
    "MaxAbsScaler": Known(
        "sklearn.preprocessing", {"max_abs_": "f d", "scale_": "f d"}, ("n_samples_seen_",)
    ),
    "RobustScaler": Known("sklearn.preprocessing", {"center_": "f d", "scale_": "f d"}),
    "Normalizer": Known("sklearn.preprocessing"),
    "SimpleImputer": Known(
        "sklearn.impute", others=("statistics_", "indicator_", "_fit_dtype", "_fill_dtype")
    ),
    "MissingIndicator": Known(
        "sklearn.impute", {"features_": "i k"}, ("_precomputed", "_n_features")
    ),
    "OneHotEncoder": Known(
        "sklearn.preprocessing",
        others=(*_ENCODER, "_drop_idx_after_grouping", "drop_idx_", "_n_features_outs"),
    ),
    "OrdinalEncoder": Known("sklearn.preprocessing", others=(*_ENCODER, "_missing_indices")),
    "CountVectorizer": Known(
        "sklearn.feature_extraction.text", others=_VECTORIZER, forgotten=("_stop_words_id",)
    ),
    "TfidfVectorizer": Known(
        "sklearn.feature_extraction.text",
        others=(*_VECTORIZER, "_tfidf"),
        forgotten=("_stop_words_id",),
    ),
    "TfidfTransformer": Known("sklearn.feature_extraction.text", {"idf_": "f d"}),
    "HashingVectorizer": Known("sklearn.feature_extraction.text", forgotten=("_stop_words_id",)),
    "TextVectorizer": Known("deltarank.datasets", {"idf_": "f c"}, ("_vocabulary",)),
    "PCA": Known(
        "sklearn.decomposition",
        {
            "mean_": "f d",
            "components_": "f kd",
            "explained_variance_": "f k",
            "explained_variance_ratio_": "f k",
            "singular_values_": "f k",
        },
        ("_fit_svd_solver", "noise_variance_", "n_samples_", "n_components_"),
    ),
    "TruncatedSVD": Known(
        "sklearn.decomposition",
        {
            "components_": "f kd",
            "explained_variance_": "f k",
            "explained_variance_ratio_": "f k",
            "singular_values_": "f k",
        },
    ),
    "VarianceThreshold": Known("sklearn.feature_selection", {"variances_": "f d"}),
    "SelectKBest": _SCORES,
    "SelectPercentile": _SCORES,
    "CalibratedRanker": Known(
        "deltarank.rankers",
        {"thresholds_": "f m", "pooled_": "b m"},
        (*_RANKER, "ranker_", "_calibration"),
        not_finite=("thresholds_",),
    ),
    "PipelineRanker": Known("deltarank.wrappers.pipeline_ranker", others=(*_RANKER, "pipeline_")),
    "ConformalRanker": Known(
        "deltarank.rankers", others=(*_RANKER, "ranker_", "threshold_", "n_calibration_")
    ),
    "MetricRanker": Known(
        "deltarank.rankers",
        {"slopes_": "f m", "offsets_": "f m", "pair_labels_": "i p", "pair_sizes_": "i p"},
        (*_RANKER, "ranker_", "value_", "mixture_value_"),
    ),
    "StagedSearchCV": Known(
        "deltarank.rankers",
        others=(*_RANKER, "best_ranker_", "best_rounds_", "best_score_", "cv_results_"),
    ),
    "WeightedBinaryRelevance": Known(
        "deltarank.rankers",
        {"constant_scores_": "f m"},
        (*_RANKER, "estimators_"),
        not_finite=("constant_scores_",),
    ),
}
