"""Where rows go: this machine's memory, or a device."""

from typing import Any

from numpy.typing import NDArray

from deltarank.core.devices import fitting_device
from deltarank.core.labels import LabelSets
from deltarank.linear.rows.local import LocalRows
from deltarank.linear.rows.protocol import Rows


def place(
    X: Any, labels: LabelSets, weights: NDArray[Any], *, device: str = "cpu", **options: Any
) -> Rows:
    """Return rows where they are to be fitted; for the options see `LocalRows`.

    With ``device="auto"`` rows stay here, even where there is a device, if it would not pay.
    """
    target = fitting_device(device, X.shape[0], X.shape[1], labels.n_labels)
    if target is None:
        return LocalRows(X, labels, weights, **options)
    from deltarank.linear.rows.cuda import DeviceRows

    return DeviceRows(X, labels, weights, device=target, **options)
