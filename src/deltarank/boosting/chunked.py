"""Dask collections on their way to boosting: weighed and put into bins where the rows are."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.base.placing import place_chunks
from deltarank.base.ranker import constants_of
from deltarank.boosting.bins import Cuts
from deltarank.boosting.cluster_search import ClusterLabelStumps
from deltarank.boosting.places import Places, cell_type
from deltarank.boosting.value_summary import ROOM, ValueSummary
from deltarank.boosting.worker_rows import BinnedRows, CountedRows
from deltarank.core.threads import row_blocks
from deltarank.core.workers import Chunks, added, workers

# Features whose summaries travel at a time: at most 64 MB from a chunk.
FEATURES_PER_MESSAGE = 2**26 // (16 * ROOM)


class Placed(NamedTuple):
    """Rounds of boosting over a cluster, constant scores of labels, and the weight of all rows."""

    engine: ClusterLabelStumps
    constants: NDArray[np.float64]
    total: float


@contextmanager
def placed_stumps(ranker: Any, X: Any, Y: Any, sample_weight: Any) -> Iterator[Placed]:
    """Check, weigh and bin X and Y on the cluster, and give the search for stumps in them.

    Neither ever comes here: only values of features and sums do. The chunks stay in the workers'
    memory, or on their disks, until the search is let go.
    """
    if ranker.bins is None:
        raise ValueError(
            "bins=None searches every distinct value, so all of a Dask collection would have to "
            "come here; give a number of bins, or fit X.compute()"
        )
    if ranker.device not in ("cpu", "auto"):
        raise ValueError(
            'device must be "cpu" or "auto" for Dask collections, which are boosted on their '
            f"workers' cores; got {ranker.device!r}: fit X.compute() on a device"
        )
    with workers() as client:
        checked, totals = place_chunks(client, ranker, X, Y, sample_weight, without_unknown=None)
        counted = checked.map(CountedRows, totals)
        del checked  # the counted rows hold all that is needed
        n_rows, weight, relevant, known = counted.total(CountedRows.sums, merge=added)
        places = Places(relevant)
        dtype = cell_type(n_rows * places.n_places)
        thresholds = _agreed_thresholds(counted, ranker.n_features_in_, ranker.bins)
        rows = counted.map(BinnedRows, thresholds, places, dtype)
        del counted
        engine = ClusterLabelStumps(rows, Cuts(thresholds), places, known, dtype, ranker.criterion)
        del rows
        yield Placed(engine, constants_of(relevant, known), weight)


def _agreed_thresholds(rows: Chunks, n_features: int, bins: int) -> list[NDArray[np.float64]]:
    """Return where all chunks cut their features."""
    thresholds = []
    for features in row_blocks(n_features, FEATURES_PER_MESSAGE):
        merge = partial(ValueSummary.merged, room=ROOM)
        summary = rows.total(CountedRows.values, features, ROOM, merge=merge)
        thresholds += [feature.thresholds(bins) for feature in summary.features()]
    return thresholds
