"""Scores of sparse rows under sparse coefficients, feature by feature."""

from deltarank.core.compiling import njit


@njit(nogil=True, cache=True)
def add_sparse_scores(matrix, coefficients, first, scores):
    """Add X coef^T to the scores of the rows that begin at ``first``.

    ``matrix`` and ``coefficients`` are (starts, indices, values): X row after row, the coefficients
    feature after feature, so that a row touches those of its own features alone.
    """
    starts, features, values = matrix
    label_starts, labels, weights = coefficients
    for i in range(scores.shape[0]):
        row = scores[i]
        for k in range(starts[first + i], starts[first + i + 1]):
            value, feature = values[k], features[k]
            for q in range(label_starts[feature], label_starts[feature + 1]):
                row[labels[q]] += value * weights[q]
