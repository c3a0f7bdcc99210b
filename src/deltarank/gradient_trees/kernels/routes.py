"""Which way a value goes at a node."""

from deltarank.core.compiling import njit

# As many categories as a feature may have, and the bytes that hold one bit for each.
MOST_CATEGORIES = 256
SET_BYTES = MOST_CATEGORIES // 8


@njit(nogil=True)
def goes_left(value, node, thresholds, missing_left, set_numbers, category_sets):
    """Tell whether a value goes left: up to the threshold, or in the set where that is NaN.

    What is no category goes where missing values go.
    """
    threshold = thresholds[node]
    if threshold == threshold:
        return missing_left[node] if value != value else value <= threshold
    if not 0 <= value < MOST_CATEGORIES:
        return missing_left[node]
    code = int(value)
    if code != value:
        return missing_left[node]
    return (category_sets[set_numbers[node], code >> 3] >> (code & 7)) & 1 == 1
