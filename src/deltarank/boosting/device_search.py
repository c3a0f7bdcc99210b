"""Rounds of boosting on a torch device, every label with a stump of its own.

The bins of a row are the same in every round. So rows are sorted by bin once for each feature, and
a histogram is the sums over stretches of that order, without additions by address.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deltarank.boosting.bins import Bins, Cuts
from deltarank.boosting.choice import TIES, Stumps
from deltarank.boosting.kernels.splits import CRITERIA, ENTROPY, ERROR
from deltarank.core.devices import cells_of
from deltarank.core.labels import LabelSets

TINY = 1e-35


class DeviceLabelStumps:
    """See `deltarank.boosting.label_search.LabelStumps`; places are labels.

    Weights and histograms are float32, scores float64.
    """

    def __init__(
        self,
        bins: Bins,
        labels: LabelSets,
        weights: NDArray[np.float64],
        criterion: str,
        device: torch.device,
    ) -> None:
        self._device, self._criterion = device, CRITERIA[criterion]
        self.cuts: Cuts = bins
        self.n_places, self.tie = labels.n_labels, TIES["float32"]
        codes = bins.columns(np.arange(bins.n_features))
        self._codes = self._tensor(codes if codes.dtype == np.uint8 else codes.astype(np.int32))
        self._n_values, self._n_bins = self._tensor(bins.n_values), bins.n_bins
        self._sort_rows()
        self._log_weights = self._tensor(np.log(weights))[:, None]
        self._signs = torch.full((labels.n_rows, labels.n_labels), -1.0, device=device)
        self._signs[cells_of(labels, device)] = 1.0
        if labels.unknown is not None:
            self._signs[cells_of(labels.unknown, device)] = 0.0
        self.n_known = self._signs.count_nonzero(dim=0).clamp(min=1).cpu().numpy()
        self._scores = torch.zeros(self._signs.shape, dtype=torch.float64, device=device)
        self._last: tuple[Tensor, Tensor] | None = None

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values).to(self._device)

    def _sort_rows(self) -> None:
        """Order rows by their bin of each feature, and mark where bins begin."""
        n_features, n_rows = self._codes.shape
        self._order = torch.empty(n_features, n_rows, dtype=torch.int32, device=self._device)
        self._starts = torch.empty(
            n_features, self._n_bins + 1, dtype=torch.int32, device=self._device
        )
        bins = torch.arange(self._n_bins + 1, device=self._device, dtype=torch.int32)
        for codes, order, starts in zip(self._codes, self._order, self._starts, strict=True):
            ascending, rows = codes.int().sort(stable=True)
            order.copy_(rows)
            starts.copy_(torch.searchsorted(ascending, bins))

    def to_labels(self, values: NDArray[Any]) -> NDArray[Any]:
        """See `LabelStumps.to_labels`."""
        return values

    def next(
        self, active: NDArray[np.bool_], votes: NDArray[np.float64], shift: NDArray[np.float64]
    ) -> Stumps:
        """See `LabelStumps.next`."""
        if self._last is not None:
            self._add_votes(*self._last, self._tensor(votes))
        exponents = self._log_weights - self._signs * self._scores - self._tensor(shift)
        return self._best(self._histograms(exponents.exp_().float().mul_(self._signs)))

    def _add_votes(self, feature: Tensor, cut: Tensor, votes: Tensor) -> None:
        codes = self._codes[feature].T
        sides = torch.where(codes > cut, votes[1], votes[0])
        missing = codes == self._n_values[feature]
        self._scores += torch.where(missing, votes[2], sides)

    def _histograms(self, cells: Tensor) -> Tensor:
        """Return the sums (d, n_bins, 2, m) of all and of the relevant cells in each bin.

        Irrelevant cells are negative.
        """
        if cells.is_cuda:
            from deltarank.boosting.kernels.device_histograms import bin_sums

            sums_by_bin: Tensor = bin_sums(cells, self._order, self._starts)
            return sums_by_bin
        both = torch.stack([cells.abs(), cells.clamp(min=0)], dim=1)
        sums = torch.zeros(len(self._codes), self._n_bins, *both.shape[1:])
        for total, order, codes in zip(sums, self._order, self._codes, strict=True):
            total.index_add_(0, codes[order].int(), both[order])
        return sums

    def _best(self, histograms: Tensor) -> Stumps:
        """Return the purest split of each label; the first of equals wins."""
        n_features, n_bins = histograms.shape[:2]
        every = torch.arange(n_features, device=self._device)
        missing = histograms[every, self._n_values]
        histograms[every, self._n_values] = 0.0
        # Branches are summed from their own end: see `boosting.kernels.splits`.
        left = histograms.cumsum(dim=1)
        right = torch.zeros_like(left)
        right[:, :-1] = histograms.flip(1).cumsum(dim=1).flip(1)[:, 1:]
        impurities = self._impurity(left) + self._impurity(right)
        impurities += self._impurity(missing)[:, None]
        bin_number = torch.arange(n_bins, device=self._device)
        impurities[bin_number >= self._n_values[:, None] - 1] = torch.inf
        flat = impurities.reshape(n_features * n_bins, -1)
        least = flat.amin(dim=0)
        total = left[0, -1, 0] + missing[0, 0]
        place = torch.arange(len(flat), device=self._device)[:, None]
        good = flat <= least + self.tie * total
        first = torch.where(good, place, len(flat)).amin(dim=0)
        feature, cut = first // n_bins, first % n_bins
        # Where no feature has two values, all rows go left.
        without = least.isinf()
        feature = torch.where(without, 0, feature)
        cut = torch.where(without, self._n_values[0] - 1, cut)
        self._last = feature, cut
        label = torch.arange(self.n_places, device=self._device)
        sums = torch.stack(
            [
                left[feature, cut, :, label],
                right[feature, cut, :, label],
                missing[feature, :, label],
            ]
        ).double()
        parts = torch.cat([feature[None], cut[None], sums.permute(0, 2, 1).reshape(6, -1)])
        on_host = parts.cpu().numpy()
        return Stumps(
            on_host[0].astype(np.int64), on_host[1].astype(np.int64), on_host[2:].reshape(3, 2, -1)
        )

    def _impurity(self, branch: Tensor) -> Tensor:
        """Return the impurity of branches (..., 2, m) of weight and relevant weight.

        See `boosting.kernels.splits`.
        """
        weight, relevant = branch.unbind(dim=-2)
        rest = weight - relevant
        if self._criterion == ENTROPY:
            heavy = weight.clamp(min=TINY)
            shares = relevant * (relevant / heavy).clamp(min=TINY).log()
            return -(shares + rest * (rest / heavy).clamp(min=TINY).log())
        if self._criterion == ERROR:
            return torch.minimum(relevant, rest)
        return 2 * (relevant * rest).clamp(min=0).sqrt()
