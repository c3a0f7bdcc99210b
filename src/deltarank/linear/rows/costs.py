"""What a fit costs, in seconds of one core: to choose a solver, and to say how long it will take.

The figures were measured on one busy core of an AMD EPYC and are good to a factor of two or so.
They are the same on every machine, so that the same data are solved the same way everywhere.
"""

from collections.abc import Iterable

# Dual coordinate ascent takes this many epochs, whatever C; a cell and a stored value, for each of
# the labels side by side, cost this many nanoseconds in each.
EPOCHS, NS_PER_CELL, NS_PER_VALUE = 15, 10.0, 0.05
# Passes over all cells grow in number with C; a product, of a stored value and a coefficient or of
# dense ones, and a coefficient of the solver's vectors cost so much in each.
PASSES, PASSES_GROWTH = 6, 0.35
NS_PER_PRODUCT, NS_PER_DENSE_PRODUCT, NS_PER_COEFFICIENT = 0.08, 0.06, 19.0
# Validating a value of C in a fold, rough and begun where the last one ended, takes this share of
# a fit of all rows.
SHARE_OF_VALIDATION = 0.2


def ascent_seconds(n_rows: int, per_row: float, n_labels: int, Cs: Iterable[float]) -> float:
    """Return what dual coordinate ascent takes for all values of C, rows of this many values."""
    per_cell = EPOCHS * (NS_PER_CELL + NS_PER_VALUE * per_row)
    return 1e-9 * n_rows * n_labels * per_cell * len(list(Cs))


def passes_seconds(
    n_rows: int, per_row: float, n_features: int, n_labels: int, Cs: Iterable[float]
) -> float:
    """Return what passes over sparse rows take for all values of C."""
    one_pass = n_rows * per_row * NS_PER_PRODUCT + n_features * NS_PER_COEFFICIENT
    return 1e-9 * n_labels * one_pass * sum(PASSES * max(C, 1.0) ** PASSES_GROWTH for C in Cs)


def fit_seconds(X_shape: tuple[int, int], n_stored: int | None, n_labels: int, C: float) -> float:
    """Return what a fit takes; of dense rows, no number of stored values is given.

    Examples
    --------
    >>> round(fit_seconds((2520, 12581), 112_809, 569, 10.0), 1)
    0.3
    """
    n_rows, n_features = X_shape
    if n_stored is None:
        return 1e-9 * PASSES * 2 * n_rows * n_features * n_labels * NS_PER_DENSE_PRODUCT
    per_row = n_stored / max(n_rows, 1)
    passes = passes_seconds(n_rows, per_row, n_features, n_labels, [C])
    return min(passes, ascent_seconds(n_rows, per_row, n_labels, [C]))
