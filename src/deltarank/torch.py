"""Losses for neural networks that rank labels: the paper's univariate ones, and pairwise ones.

Needs PyTorch: ``pip install 'deltarank[torch]'``.
"""

from collections.abc import Callable
from typing import Any

from deltarank.core.choices import choose
from deltarank.core.extras import install
from deltarank.core.weights import weight_of_size

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError as error:
    raise ImportError(f"deltarank.torch needs PyTorch: {install('torch')}") from error

# From here on exp goes on as its tangent, so that neither loss nor gradient overflows float32.
LARGEST_EXPONENT = 50.0


def _exponential(margin: Tensor) -> Tensor:
    exponent = (-margin).clamp(max=LARGEST_EXPONENT)
    return exponent.exp() * (1 - margin - exponent)


def _logistic(margin: Tensor) -> Tensor:
    return -functional.logsigmoid(margin)


UNIVARIATE: dict[str, Callable[[Tensor], Tensor]] = {
    "logistic": _logistic,
    "exponential": _exponential,
}
PAIRWISE: dict[str, Callable[[Tensor], Tensor]] = {
    **UNIVARIATE,
    "squared": lambda margin: (1 - margin) ** 2,
    "squared_hinge": lambda margin: functional.relu(1 - margin) ** 2,
    "hinge": lambda margin: functional.relu(1 - margin),
}
# w(y) of s relevant and r other labels, neither 0, in n columns.
WEIGHTS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "rank": lambda s, r, n: 1 / (s * r),
    "uniform": lambda s, r, n: torch.ones_like(s),
    "recall": lambda s, r, n: 1 / s,
    "ndcg": lambda s, r, n: 1 / _ideal_gain(s, n),
    "min": lambda s, r, n: 1 / torch.minimum(s, r),
}
REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": torch.mean,
    "sum": torch.sum,
    "none": lambda losses: losses,
}


def _ideal_gain(s: Tensor, n_positions: int) -> Tensor:
    """Return the sum of 1 / log2(1 + r) over the first s positions r, but at most this many."""
    position = torch.arange(1, n_positions + 1, device=s.device, dtype=s.dtype)
    return ((position <= s[:, None]) / torch.log2(1 + position)).sum(dim=1)


class _RankingLoss(nn.Module):
    """What both losses share: checking, masking, weighing and reducing."""

    def __init__(self, weight: Any, surrogate: str, table: dict[str, Any], reduction: str) -> None:
        super().__init__()
        if not callable(weight):
            weight_of_size(weight)
        self.weight, self.surrogate, self.reduction = weight, surrogate, reduction
        self._phi = choose(table, surrogate, "surrogate")
        self._reduce = choose(REDUCTIONS, reduction, "reduction")

    def extra_repr(self) -> str:
        """Show the options when the module is printed.

        Examples
        --------
        >>> from deltarank.torch import UnivariateRankingLoss
        >>> UnivariateRankingLoss()
        UnivariateRankingLoss(weight='rank', surrogate='logistic', reduction='mean')
        """
        return f"weight={self.weight!r}, surrogate={self.surrogate!r}, reduction={self.reduction!r}"

    def forward(self, logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the loss of logits (n, m) for zero-one targets (n, m).

        `mask`, shape (n, m), is true where a label is known; unknown ones are left out, whatever
        their logit or target is, and a row is weighed by its known labels.

        Examples
        --------
        >>> from deltarank.torch import UnivariateRankingLoss
        >>> logits, targets = torch.zeros(1, 3), torch.tensor([[1, 0, 0]])
        >>> known = torch.tensor([[True, True, False]])
        >>> UnivariateRankingLoss()(logits, targets, mask=known)  # two labels, log 2 each
        tensor(1.3863)
        """
        known = self._check(logits, targets, mask)
        # Sums of many small terms do not survive half precision.
        with torch.autocast(logits.device.type, enabled=False):
            scores = logits if logits.dtype == torch.float64 else logits.float()
            scores = torch.where(known, scores, 0)
            relevant, other = known & (targets == 1), known & (targets == 0)
            weights = self._weigh(relevant, other, targets).to(scores.dtype)
            return self._reduce(weights * self._rows(scores, relevant, other))

    def _check(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        if logits.ndim != 2 or logits.shape != targets.shape:
            raise ValueError(
                f"logits and targets must both have shape (n, m); got {tuple(logits.shape)} and "
                f"{tuple(targets.shape)}"
            )
        if mask is not None and mask.shape != logits.shape:
            raise ValueError(
                f"mask must have the shape of logits, {tuple(logits.shape)}; "
                f"got {tuple(mask.shape)}"
            )
        known = torch.ones_like(targets, dtype=torch.bool) if mask is None else mask.bool()
        # Looking at values would cut a compiled graph in two.
        if not torch.compiler.is_compiling():
            wrong = known & (targets != 0) & (targets != 1)
            if wrong.any():
                raise ValueError(
                    f"targets must hold only 0 and 1 where known; got {targets[wrong][0].item()}; "
                    "mark unknown labels in mask"
                )
        return known

    def _weigh(self, relevant: Tensor, other: Tensor, targets: Tensor) -> Tensor:
        """Return w(y) of each row, 0 where it has no pair to rank."""
        if callable(self.weight):
            return self.weight(targets)
        s, rest = relevant.sum(dim=1).double(), other.sum(dim=1).double()
        ranked = (s > 0) & (rest > 0)
        s, rest = torch.where(ranked, s, 1), torch.where(ranked, rest, 1)
        if isinstance(self.weight, tuple):
            weights = 1 / _ideal_gain(s, self.weight[1])
        else:
            weights = WEIGHTS[self.weight](s, rest, relevant.shape[1])
        return torch.where(ranked, weights, 0)

    def _rows(self, scores: Tensor, relevant: Tensor, other: Tensor) -> Tensor:
        """Return the unweighted loss of each row."""
        raise NotImplementedError


class UnivariateRankingLoss(_RankingLoss):
    """Weighted univariate loss, consistent for rank loss, Eq. (11) and (12), for networks.

    Parameters
    ----------
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        w(y), not normalised: see `deltarank.instance_weights`. A callable gets the targets and
        returns a tensor of n weights.
    surrogate : {"logistic", "exponential"}
        The exponential goes on as its tangent for margins below -50.
    positive_cost : float
        What a relevant cell costs beside an irrelevant one. Any value keeps consistency.
    reduction : {"mean", "sum", "none"}
        Over rows; rows without a pair to rank count as 0.

    Examples
    --------
    >>> import torch
    >>> from deltarank.torch import UnivariateRankingLoss
    >>> logits = torch.tensor([[2.0, -1.0, 0.0]], requires_grad=True)
    >>> loss = UnivariateRankingLoss()(logits, torch.tensor([[1, 0, 0]]))
    >>> loss.backward()
    >>> logits.grad
    tensor([[-0.0596,  0.1345,  0.2500]])
    """

    def __init__(
        self,
        weight: Any = "rank",
        surrogate: str = "logistic",
        positive_cost: float = 1.0,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, surrogate, UNIVARIATE, reduction)
        if not positive_cost > 0:
            raise ValueError(f"positive_cost must be positive; got {positive_cost!r}")
        self.positive_cost = positive_cost

    def _rows(self, scores: Tensor, relevant: Tensor, other: Tensor) -> Tensor:
        losses = self._phi(torch.where(relevant, scores, -scores))
        return (losses * (self.positive_cost * relevant + other)).sum(dim=1)


class PropensityLoss(_RankingLoss):
    """Logistic loss of labels that are recorded by chance, unbiased for complete ones, Eq. (75).

    A relevant label is recorded with its propensity, an irrelevant one never. Given the complete
    labels, the expectation of this loss is the plain logistic loss of the complete labels, and its
    best scores stand for their chances, P(y_l = 1 | x). Every row counts once, also one of which
    nothing is recorded.

    A recorded label costs ``softplus(s) - s / p``: convex in its score, but falling for ever, so
    that a network that can tell single rows apart drives their scores up without end. Stop early,
    or decay weights. And mind that propensities from a model of how rare a label is
    (`metrics.label_propensities`) take rare labels for missing ones.

    Parameters
    ----------
    propensities : array of shape (m,)
        Chances above 0, at most 1, that a relevant label is recorded.
    reduction : {"mean", "sum", "none"}
        Over rows.

    Examples
    --------
    >>> import torch
    >>> from deltarank.torch import PropensityLoss
    >>> seen = torch.tensor([[1.0], [0.0], [0.0], [0.0]])  # a quarter recorded, half of them missed
    >>> logits = torch.zeros(4, 1, requires_grad=True)  # that one in two is relevant
    >>> PropensityLoss([0.5])(logits, seen).backward()
    >>> logits.grad.sum()
    tensor(0.)
    """

    def __init__(self, propensities: Any, reduction: str = "mean") -> None:
        super().__init__("uniform", "logistic", UNIVARIATE, reduction)
        chances = torch.as_tensor(propensities)
        wrong = ~((chances > 0) & (chances <= 1))
        if chances.ndim != 1 or wrong.any():
            found = f"shape {tuple(chances.shape)}" if chances.ndim != 1 else chances[wrong][0]
            raise ValueError(
                "propensities must be one chance per label, above 0 and at most 1; "
                f"got {found if isinstance(found, str) else found.item()}"
            )
        self.register_buffer("propensities", chances)

    def _check(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        known = super()._check(logits, targets, mask)
        if logits.shape[1] != len(self.propensities):
            raise ValueError(
                f"propensities must be one per label, {logits.shape[1]}; "
                f"got {len(self.propensities)}"
            )
        return known

    def _weigh(self, relevant: Tensor, other: Tensor, targets: Tensor) -> Tensor:
        return torch.ones_like(relevant[:, 0], dtype=torch.double)

    def _rows(self, scores: Tensor, relevant: Tensor, other: Tensor) -> Tensor:
        gains = relevant * scores / self.propensities.to(scores.dtype)
        return ((relevant | other) * functional.softplus(scores) - gains).sum(dim=1)


class PairwiseRankingLoss(_RankingLoss):
    """Weighted loss of pairs of a relevant and an irrelevant label, Eq. (18), for networks.

    Not consistent for rank loss, whichever surrogate is chosen; here for comparison. Takes memory
    for rows times labels times the relevant labels of the row that has most; under `torch.compile`
    all pairs are looped over instead, which the compiler fuses.

    Parameters
    ----------
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        See `UnivariateRankingLoss`.
    surrogate : {"logistic", "exponential", "squared", "squared_hinge", "hinge"}
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> import torch
    >>> from deltarank.torch import PairwiseRankingLoss
    >>> logits = torch.tensor([[1.0, 0.0, 0.5]])
    >>> PairwiseRankingLoss(surrogate="hinge")(logits, torch.tensor([[1, 0, 0]]))
    tensor(0.2500)
    """

    def __init__(
        self, weight: Any = "rank", surrogate: str = "logistic", reduction: str = "mean"
    ) -> None:
        super().__init__(weight, surrogate, PAIRWISE, reduction)

    def _rows(self, scores: Tensor, relevant: Tensor, other: Tensor) -> Tensor:
        most = scores.shape[1]
        # A number of columns that depends on values would cut a compiled graph in two.
        if not torch.compiler.is_compiling():
            most = max(1, int(relevant.sum(dim=1).max()))
        present, columns = relevant.to(scores.dtype).topk(most, dim=1)
        margins = scores.gather(1, columns)[:, :, None] - scores[:, None, :]
        pairs = present[:, :, None] * other[:, None, :]
        return (pairs * self._phi(margins)).sum(dim=(1, 2))
