"""What the weights w(y) do to a sample, and whether they matter for it."""

from typing import Any, NamedTuple

from deltarank.core.labels import label_sets
from deltarank.core.text import notebook_table
from deltarank.core.weights import Weight, instance_weights
from deltarank.linear.logistic import LogisticRanker
from deltarank.wrappers.weight_effect import WeightEffect, weight_effect


class WeightDiagnostics(NamedTuple):
    """What weighting does to a sample; `effect` where features were given, else None."""

    n_rows: int
    n_dropped: int
    effective_sample_size: float
    largest_share: float
    effect: WeightEffect | None = None

    def __str__(self) -> str:
        text = (
            f"{self.n_rows} rows, {self.n_dropped} of them weigh nothing\n"
            f"worth {self.effective_sample_size:.1f} equally weighted rows\n"
            f"the heaviest row carries {self.largest_share:.2%} of the weight"
        )
        return "\n".join([text, *(f"{name}: {value}" for name, value in self._effect_lines())])

    def _effect_lines(self) -> list[tuple[str, str]]:
        return [] if self.effect is None else self.effect.lines()

    def _repr_html_(self) -> str:
        shown = {
            "rows that weigh nothing": str(self.n_dropped),
            "worth so many equally weighted rows": f"{self.effective_sample_size:.1f}",
            "share of the heaviest row": f"{self.largest_share:.2%}",
        }
        lines = [*shown.items(), *self._effect_lines()]
        return notebook_table(("rows", str(self.n_rows)), lines)


def weight_diagnostics(
    Y: Any,
    weight: Weight = "rank",
    *,
    X: Any = None,
    ranker: Any = None,
    cv: Any = 5,
    random_state: Any = 0,
    n_labels: int | None = None,
) -> WeightDiagnostics:
    """Tell how many rows the weights drop, what they are worth, and whether they matter.

    Without features it counts, Eq. (29). With `X`, a ranker is fitted twice in each fold, with the
    weights and with equal ones, and both are compared on the rows held out: which label pairs
    change their order, what that gains, and whether labels depend on each other in the one way that
    can make the weights matter, Eq. (76). If labels are independent given the features, or all rows
    have equally many, they cannot.

    Parameters
    ----------
    Y : array, sparse matrix or list of label sets
        As `instance_weights` takes it; with `X` every cell must be known.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        The weights in question.
    X : array, sparse matrix or data frame of shape (n, d), optional
        Features, on one scale.
    ranker : ranker with a parameter `weight`, optional
        What is fitted; ``LogisticRanker()`` by default. Its scores must be log odds of labels.
    cv : int, splitter or iterable of (train, test)
        An integer stands for as many folds stratified by label: see `LabelStratifiedKFold`.
    random_state : int, generator or None
        For the folds, when `cv` is an integer.
    n_labels : int, optional
        Number of labels, for a list of label sets.

    Returns
    -------
    diagnostics : WeightDiagnostics
        A named tuple: `n_rows`, `n_dropped`, `effective_sample_size`, `largest_share`, and
        `effect`, itself a named tuple (`changed`, `loss`, `uniform_loss`, `gain`, `correlation`,
        `p_value`), or None without `X`.

    Notes
    -----
    The gain is that of these fits: its interval is over held-out rows, taken as independent, and
    knows nothing of how fits of other rows would differ. The test holds its level if the fit with
    equal weights has the chances of labels right, or if E[w(Y) | x] is a smooth function of the
    expected number of labels. Where linear scores are wrong both may fail, and a small p-value may
    mean that: try a `ranker` that fits better, such as `KernelLogisticRanker`. A large one means
    that these rows show nothing, not that there is nothing.

    Examples
    --------
    >>> print(weight_diagnostics([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]))
    3 rows, 1 of them weigh nothing
    worth 2.0 equally weighted rows
    the heaviest row carries 57.14% of the weight

    At every x the first label is relevant alone in 45 % of the rows, and three others together in
    the rest: with equal weights these come first, by rank loss the first label does.

    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> alone = generator.random(1000) < 0.45
    >>> Y = np.where(alone[:, None], [1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0])
    >>> effect = weight_diagnostics(Y, X=generator.normal(size=(1000, 2))).effect
    >>> round(effect.changed, 1), effect.gain.low > 0.03, effect.p_value < 1e-6
    (0.4, True, True)
    """
    weights = instance_weights(Y, weight, n_labels=n_labels)
    total = weights.sum()
    effect = None
    if X is not None:
        labels = label_sets(Y, n_labels=n_labels)
        raw = instance_weights(Y, weight, normalize=False, n_labels=n_labels)
        chosen = LogisticRanker() if ranker is None else ranker
        effect = weight_effect(X, labels, raw, chosen, cv, random_state)
    return WeightDiagnostics(
        n_rows=len(weights),
        n_dropped=int((weights == 0).sum()),
        effective_sample_size=float(total**2 / (weights**2).sum()),
        largest_share=float(weights.max() / total),
        effect=effect,
    )
