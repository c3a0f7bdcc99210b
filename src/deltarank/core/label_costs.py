"""One number per label, as users give them: weights of labels, costs of their relevant cells."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.choices import choose

Floats = NDArray[np.float64]
# How much a further row with a label repeats what the others say (Cui et al. 2019).
REPETITION = 0.999


def inverse_frequency(frequencies: NDArray[Any]) -> Floats:
    """Weigh a label by one over the number of rows that have it."""
    weights: Floats = 1 / np.maximum(frequencies, 1.0)
    return weights


def inverse_effective_number(frequencies: NDArray[Any]) -> Floats:
    """Weigh by one over the effective number of these rows, (1 - b^n) / (1 - b), b = 0.999."""
    return np.asarray(
        (1 - REPETITION) / -np.expm1(np.maximum(frequencies, 1.0) * np.log(REPETITION))
    )


RULES = {"inverse_frequency": inverse_frequency, "effective_number": inverse_effective_number}


def label_numbers(given: Any, classes: NDArray[Any], argument: str) -> Floats:
    """Return a positive number per label, from one for all, a sequence, or a mapping by name.

    Labels that a mapping does not name have 1.
    """
    if isinstance(given, Mapping):
        names = {name: place for place, name in enumerate(classes.tolist())}
        strange = [name for name in given if name not in names]
        if strange:
            raise ValueError(
                f"{argument} names labels that Y does not have, such as {strange[0]!r}; the "
                f"labels begin with {', '.join(repr(name) for name in classes.tolist()[:5])}"
            )
        numbers = np.ones(len(classes))
        for name, value in given.items():
            numbers[names[name]] = _number(value, argument)
    elif np.ndim(given) == 0:
        numbers = np.full(len(classes), _number(given, argument))
    else:
        numbers = np.array([_number(value, argument) for value in given])
    if numbers.shape != (len(classes),):
        raise ValueError(
            f"{argument} must hold one number per label, {len(classes)}; got {len(numbers)}"
        )
    wrong = np.flatnonzero(~((numbers > 0) & (numbers < np.inf)))
    if len(wrong):
        raise ValueError(
            f"{argument} must be positive and finite; got {numbers[wrong[0]]} for label "
            f"{classes[wrong[0]]!r}"
        )
    return numbers


def _number(value: Any, argument: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{argument} must be a number, one per label, or a mapping from labels to numbers; "
            f"got {value!r}"
        ) from None


def label_weights(given: Any, classes: NDArray[Any], frequencies: NDArray[Any]) -> Floats | None:
    """Return what each label's loss counts; those of a named rule have mean 1.

    Examples
    --------
    >>> label_weights("inverse_frequency", np.array(["a", "b"]), np.array([30, 10]))
    array([0.5, 1.5])
    >>> label_weights({"b": 2.0}, np.array(["a", "b"]), np.array([30, 10]))
    array([1., 2.])
    """
    if given is None:
        return None
    if isinstance(given, str):
        weights = choose(RULES, given, "label_weight")(frequencies)
        return np.asarray(weights / weights.mean())
    return label_numbers(given, classes, "label_weight")
