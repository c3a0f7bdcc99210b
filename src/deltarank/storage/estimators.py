"""Estimators as trees of parts: pipelines, transformers, rankers, rankers round rankers."""

from importlib import import_module
from itertools import pairwise
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from deltarank.base.ranker import Ranker
from deltarank.datasets import TextVectorizer
from deltarank.storage.checks import check_arrays, check_common, check_numbers
from deltarank.storage.known import KNOWN, Known
from deltarank.storage.names import names_from_plain, names_to_plain
from deltarank.storage.parts import Parts
from deltarank.storage.plain import Arrays, Unpack
from deltarank.storage.registry import STORED
from deltarank.storage.stored_rankers import pack_ranker, unpack_ranker
from deltarank.wrappers.reduction import WeightedBinaryRelevance
from deltarank.wrappers.wrapped import WrappedRanker

Node = dict[str, Any]


def pack(estimator: Any, arrays: Arrays) -> Node:
    """Return an estimator in terms of JSON; its arrays go into `arrays`.

    A fitted ranker that is all numbers is kept as it always was, its arrays under their own names.
    """
    if type(estimator).__name__ in STORED:
        check_is_fitted(estimator)
        return pack_ranker(estimator, arrays)
    return _Trees(arrays).pack(estimator)


def unpack(node: Node, arrays: Arrays) -> Any:
    """Return the estimator, once all its parts are known and fit each other."""
    if "ranker" in node:
        return unpack_ranker(node, arrays)
    estimator = _Trees(arrays).unpack(node)
    if arrays:
        raise ValueError("it holds arrays that belong to no part of it")
    check_is_fitted(estimator)
    return estimator


def last_step(estimator: Any) -> Any:
    """Return what stands at the end of a pipeline; anything else as it is."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


class _Trees(Parts):
    """Takes estimators among other values apart, too."""

    def _pack(self, value: Any, what: str) -> Any:
        if isinstance(value, BaseEstimator):
            return {"estimator": self.pack(value)}
        return super()._pack(value, what)

    @property
    def _unpackers(self) -> Unpack:
        return {**super()._unpackers, "estimator": self.unpack}

    def pack(self, estimator: Any) -> Node:
        name, fitted = type(estimator).__name__, _is_fitted(estimator)
        entry = _entry(estimator, name)
        if name in STORED and fitted:
            prefix = f"part{len(self.arrays)}/"
            ranker_arrays: Arrays = {}
            node = pack_ranker(estimator, ranker_arrays)
            self.arrays.update({prefix + key: array for key, array in ranker_arrays.items()})
            return {**node, "arrays": prefix}
        parameters = estimator.get_params(deep=False)
        for key in entry.must_be_none:
            if parameters[key] is not None:
                raise ValueError(f"{name} cannot be saved: its {key} is code")
        if name == "ColumnTransformer" and fitted:
            parameters["transformers"] = _chosen_columns(estimator)
        return {
            "estimator": name,
            "parameters": {key: self.to_plain(v, key) for key, v in parameters.items()},
            "attributes": self._attributes(estimator, entry, parameters) if fitted else {},
        }

    def _attributes(self, estimator: Any, entry: Known, parameters: Node) -> Node:
        fitted = {k: v for k, v in vars(estimator).items() if k not in parameters}
        if strange := sorted(fitted.keys() - entry.attributes - {*entry.forgotten}):
            raise ValueError(
                f"{type(estimator).__name__} cannot be saved: this release does not know its "
                f"attribute {strange[0]}, which another release of its library may have brought"
            )
        return {
            key: names_to_plain(value) if key == "classes_" else self.to_plain(value, key)
            for key, value in fitted.items()
            if key not in entry.forgotten
        }

    def unpack(self, node: Node) -> Any:
        if "ranker" in node:
            prefix = str(node["arrays"])
            ranker_arrays = {
                key: self.arrays.pop(key) for key in [*self.arrays] if key.startswith(prefix)
            }
            return unpack_ranker(
                node, {key[len(prefix) :]: ranker_arrays[key] for key in ranker_arrays}
            )
        name = node["estimator"]
        if name not in KNOWN and name not in STORED:
            raise ValueError(f"unknown estimator {name!r:.40}")
        entry = KNOWN.get(name, _unfitted(name))
        parameters = {key: self.from_plain(v) for key, v in node["parameters"].items()}
        if any(parameters[key] is not None for key in entry.must_be_none):
            raise ValueError(f"{name} must hold no code")
        estimator = getattr(import_module(entry.home), name)(**parameters)
        attributes = dict(node["attributes"])
        if not attributes.keys() <= entry.attributes:
            raise ValueError(f"it does not hold what a {name} consists of")
        classes = attributes.pop("classes_", None)
        values = {key: self.from_plain(value) for key, value in attributes.items()}
        if classes is not None:
            values["classes_"] = names_from_plain(classes)
        _check_parts(estimator, entry, parameters, values)
        for key, value in values.items():
            setattr(estimator, key, value)
        _check_whole(estimator)
        return estimator


def _entry(estimator: Any, name: str) -> Known:
    """Return what is known of an estimator's class, or refuse it."""
    entry = _unfitted(name) if name in STORED else KNOWN.get(name)
    if entry is None:
        raise ValueError(
            f"{name} cannot be saved: a model file holds rankers and these transformers, of which "
            f"every number is checked: {', '.join(name for name in KNOWN)}"
        )
    if type(estimator) is not getattr(import_module(entry.home), name):
        raise ValueError(f"{name} cannot be saved: it is another class than {entry.home}.{name}")
    return entry


def _unfitted(name: str) -> Known:
    return Known(STORED[name].home if name in STORED else "")


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _chosen_columns(transformer: Any) -> list[tuple[Any, ...]]:
    """Return the transformers with the columns that functions chose for them in the fit."""
    pairs = zip(transformer.transformers, transformer._columns, strict=True)
    return [(name, it, columns) for (name, it, _), columns in pairs]


def _check_parts(estimator: Any, entry: Known, parameters: Node, values: Node) -> None:
    if isinstance(estimator, Ranker):
        check_numbers(estimator, parameters, {})
        if values:
            check_common({"n_features_in_": 1, **values}, values["classes_"], None)
    elif hasattr(type(estimator), "_parameter_constraints"):
        estimator._validate_params()
    n_features = values.get("n_features_in_")
    if n_features is not None and (type(n_features) is not int or n_features < 0):
        raise ValueError(f"n_features_in_ must be an integer; got {n_features!r:.40}")
    arrays = {key: v for key, v in values.items() if key in entry.arrays and v is not None}
    sizes = {"_form": values.get("_form"), "n_features_in_": n_features}
    check_arrays(entry, arrays, sizes, len(values.get("classes_", ())))


def _check_whole(estimator: Any) -> None:
    """Check what depends on several parts, where compiled code or a silent mistake would come."""
    for kind, check in _WHOLE.items():
        if isinstance(estimator, kind) and _is_fitted(estimator):
            check(estimator)


def _check_text(vectorizer: TextVectorizer) -> None:
    for check in (vectorizer._analysis, vectorizer._weighing, vectorizer._check_columns):
        check()
    words = vectorizer._vocabulary
    if (vectorizer.n_features if words is None else len(words)) != len(vectorizer.idf_):
        raise ValueError("the words of a TextVectorizer and their weights do not fit")


def _check_categories(encoder: OneHotEncoder) -> None:
    if sum(encoder._n_features_outs) != len(encoder.get_feature_names_out()):
        raise ValueError("the categories of a OneHotEncoder and its columns do not fit")


def _check_steps(pipeline: Pipeline) -> None:
    steps = [step for _, step in pipeline.steps if step not in (None, "passthrough")]
    for before, after in pairwise(steps):
        n_taken = getattr(after, "n_features_in_", None)
        n_given = n_outputs(before)
        if None not in (n_given, n_taken) and n_given != n_taken:
            raise ValueError(
                f"{type(before).__name__} gives {n_given} features, and "
                f"{type(after).__name__} takes {n_taken}"
            )


def n_outputs(transformer: Any) -> int | None:
    """Return how many features a transformer gives, where it can tell."""
    if getattr(transformer, "n_features", None) is not None:  # hashed words have no names
        return int(transformer.n_features)
    names = getattr(transformer, "get_feature_names_out", None)
    return None if names is None else len(names())


def _check_pairs(wrapper: Any, n_labels: int) -> None:
    """Check that the ranker inside has a target for each pair of a label and a number, and one."""
    labels, sizes = wrapper.pair_labels_, wrapper.pair_sizes_
    if sizes is None or len(wrapper.ranker_.classes_) != len(labels) + 1:
        raise ValueError("pair_labels_ must name what the targets of the ranker inside stand for")
    if len(labels) and not (labels.min() >= 0 and labels.max() < n_labels and sizes.min() > 0):
        raise ValueError("pair_labels_ must be numbers of labels, and pair_sizes_ positive")


def _check_round(wrapper: Any) -> None:
    """Check that a ranker and those inside have the same labels."""
    n_labels = 1 if wrapper._form == "binary" else len(wrapper.classes_)
    inside = [vars(wrapper)[key] for key in ("ranker_", "best_ranker_") if key in vars(wrapper)]
    counts = [len(ranker.classes_) for ranker in inside]
    if getattr(wrapper, "pair_labels_", None) is not None:
        _check_pairs(wrapper, n_labels)
        counts = []
    if hasattr(wrapper, "_calibration"):
        counts.append(len(wrapper._calibration.maps))
    if isinstance(wrapper, WeightedBinaryRelevance):
        fitted = [it for it in wrapper.estimators_ if it is not None]
        if len(wrapper.estimators_) != n_labels or any(
            last_step(it)._form != "binary" for it in fitted
        ):
            raise ValueError("there must be one ranker per label, of two classes each")
    if any(count != len(wrapper.classes_) for count in counts):
        raise ValueError(f"the parts of {type(wrapper).__name__} have not the same labels")


_WHOLE: dict[type[Any], Any] = {
    TextVectorizer: _check_text,
    OneHotEncoder: _check_categories,
    Pipeline: _check_steps,
    WrappedRanker: _check_round,
    WeightedBinaryRelevance: _check_round,
}
