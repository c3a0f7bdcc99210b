"""What a warm start goes on from."""

from typing import Any


def last_fit(ranker: Any) -> Any:
    """Return the ranker as the last fit left it, to go on from; None if there is none."""
    if not ranker.warm_start or not hasattr(ranker, "roots_"):
        return None
    if ranker.n_trees_ > ranker.n_trees:
        raise ValueError(
            f"warm_start=True keeps the {ranker.n_trees_} trees of the last fit, so n_trees must "
            f"be at least as many; got {ranker.n_trees}"
        )
    before = type(ranker)(**ranker.get_params(deep=False))
    before.__dict__.update(vars(ranker))
    return before


def check_inputs(ranker: Any, before: Any) -> None:
    """Refuse features and labels that are not those of the fit before."""
    way_out = "; fit a new ranker, or use warm_start=False"
    if before.n_features_in_ != ranker.n_features_in_:
        raise ValueError(
            f"warm_start=True goes on from a fit of {before.n_features_in_} features, so X "
            f"must have as many; got {ranker.n_features_in_}{way_out}"
        )
    if (before.is_categorical_ != ranker.is_categorical_).any():
        raise ValueError(f"warm_start=True needs the categorical_features of the last fit{way_out}")
    if before.classes_.tolist() != ranker.classes_.tolist() or before._form != ranker._form:
        raise ValueError(f"warm_start=True needs the labels of the last fit in Y{way_out}")
