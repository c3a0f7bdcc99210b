"""A small Dask cluster of real processes, and arrays cut into chunks of uneven length."""

import os
import signal
from contextlib import contextmanager

import dask.array as da
import distributed
from scipy import sparse

ROWS = (700, 1, 900, 399)


def chunked(array, rows=ROWS):
    return da.from_array(array, chunks=(rows, *((-1,) * (array.ndim - 1))))


def as_csr(array, rows=ROWS):
    return chunked(array, rows).map_blocks(sparse.csr_array)


@contextmanager
def two_workers():
    """Two real worker processes, small so that a dead one is soon replaced."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def kill_workers(client, n_workers):
    for process in list(client.run(os.getpid).values())[:n_workers]:
        os.kill(process, signal.SIGKILL)


@contextmanager
def watched_results(monkeypatch):
    """Give the list of all that comes to the client."""
    gathered = []
    plain_gather, plain_result = distributed.Client._gather, distributed.Future._result

    async def gather(self, futures, *args, **options):
        found = await plain_gather(self, futures, *args, **options)
        gathered.extend(found if isinstance(found, list) else [found])
        return found

    async def result(self, *args, **options):
        found = await plain_result(self, *args, **options)
        gathered.append(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(distributed.Client, "_gather", gather)
        patch.setattr(distributed.Future, "_result", result)
        yield gathered
