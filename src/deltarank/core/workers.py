"""Values on the workers of a Dask cluster, one per chunk of rows; only small results travel."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from deltarank.core.extras import install

# Results added up by one task: few, because a worker holds them all at once.
FAN_IN = 8
# What stands for a cluster of this machine in place of an address.
LOCAL = "local"
# Seconds to wait for a scheduler, and for a worker of it.
PATIENCE = 10


class ClusterLostError(ConnectionError):
    """The cluster that held the data is gone."""


class WorkersLostError(RuntimeError):
    """Workers die whenever they get a chunk."""


@contextmanager
def workers() -> Iterator[Any]:
    """Give the Dask client in use; where there is none, one with a worker in this process."""
    try:
        from distributed import Client, LocalCluster, get_client
    except ImportError as error:
        raise ImportError(
            f"fitting Dask collections needs dask.distributed: {install('dask')}"
        ) from error
    with ExitStack() as resources:
        try:
            client = get_client()
        except ValueError:
            cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
            resources.enter_context(cluster)
            client = resources.enter_context(Client(cluster, set_as_default=False))
        yield client


@contextmanager
def connected(address: str, option: str, n_processes: int) -> Iterator[Any]:
    """Give a client of the cluster at an address, the one in use for as long.

    Parameters
    ----------
    address : str
        Of a scheduler, or ``"local"``: processes on this machine.
    option : str
        What the address was given by, for errors.
    n_processes : int
        How many processes those are.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(f"{option} needs dask.distributed: {install('dask')}") from error
    with ExitStack() as resources:
        where: Any = address
        if address == LOCAL:
            where = resources.enter_context(_local_cluster(n_processes))
        try:
            client = resources.enter_context(Client(where, timeout=PATIENCE))
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{option} must be 'local' or the address of a running Dask scheduler, such as "
                f"tcp://host:8786; {address!r} cannot be reached ({_first_line(error)})"
            ) from None
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise ValueError(
                f"{option} {address}: the scheduler has no workers; start some by "
                f"`dask worker {address}`"
            ) from None
        yield client


def _local_cluster(n_processes: int) -> Any:
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=n_processes,
        threads_per_worker=1,
        dashboard_address=None,
        env={"DELTARANK_NUM_THREADS": "1"},  # the processes share the cores already
        silence_logs=logging.CRITICAL,  # what fails there is told here, in a line
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


class Chunks:
    """Values on the workers, one per chunk of rows.

    Everything is a task, also what the client sends, so that Dask can make again whatever dies
    with a worker.

    Parameters
    ----------
    client : distributed.Client
    futures : list of Future
    """

    def __init__(self, client: Any, futures: list[Any]) -> None:
        self.client, self.futures = client, list(futures)
        self._address = client.scheduler.address

    def map(
        self, function: Callable[..., Any], *shared: Any, beside: "Chunks | None" = None
    ) -> "Chunks":
        """Return ``function(chunk, *shared)`` of every chunk, which stay on the workers.

        With chunks `beside` these, of the same rows, ``function(chunk, other, *shared)``.
        """
        return Chunks(self.client, self._mapped(function, shared, beside))

    def total(
        self,
        function: Callable[..., Any],
        *shared: Any,
        merge: Callable[[list[Any]], Any],
        beside: "Chunks | None" = None,
    ) -> Any:
        """Return ``merge`` of what `map` would give over all chunks, merged on the way."""
        with self._told():
            results = self._mapped(function, shared, beside)
            groups = self._by_worker(results)
            while len(results) > 1:
                results = [self._merged(merge, group) for group in groups]
                groups = _pieces(results)
            return results[0].result()

    def each(self) -> Iterator[Any]:
        """Yield the values themselves, in order; each is let go when it is here."""
        while self.futures:
            with self._told():
                value = self.futures.pop(0).result()
            yield value

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what became of the cluster where that is why work fails."""
        from distributed import KilledWorker

        try:
            yield
        except Exception as error:
            if not _answers(self.client):
                raise ClusterLostError(
                    f"the Dask cluster at {self._address} went away while it held the data; start "
                    "a cluster and fit again (LogisticRanker with checkpoint= goes on from there)"
                ) from error
            if isinstance(error, KilledWorker):
                raise WorkersLostError(
                    f"workers of the Dask cluster at {self._address} died again and again; see "
                    "their logs, give them more memory, or make the chunks smaller"
                ) from error
            raise

    def _mapped(
        self, function: Callable[..., Any], shared: tuple[Any, ...], beside: "Chunks | None"
    ) -> list[Any]:
        import dask

        # One value of the graph for all chunks; coefficients are large, and meant to be sent.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            sent = self.client.submit(_kept, shared, pure=False)
            options = {"function": function, "sent": sent, "pure": False}
            others = [] if beside is None else [beside.futures]
            return list(self.client.map(_applied, self.futures, *others, **options))

    def _merged(self, merge: Callable[[list[Any]], Any], group: list[Any]) -> Any:
        return self.client.submit(merge, group, pure=False) if len(group) > 1 else group[0]

    def _by_worker(self, results: list[Any]) -> list[list[Any]]:
        """Return results that are probably on one worker together."""
        holders = self.client.who_has(self.futures)
        at: dict[Any, list[Any]] = defaultdict(list)
        for result, chunk in zip(results, self.futures, strict=True):
            at[min(holders.get(chunk.key, ()), default=None)].append(result)
        groups = [piece for of_worker in at.values() for piece in _pieces(of_worker)]
        return groups if len(groups) < len(results) else _pieces(results)


def _answers(client: Any) -> bool:
    try:
        client.sync(client.scheduler.identity)
    except Exception:
        return False
    return bool(client.status == "running")


def _kept(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return values


def _applied(*chunks: Any, function: Callable[..., Any], sent: tuple[Any, ...]) -> Any:
    return function(*chunks, *sent)


def _pieces(values: Sequence[Any]) -> list[list[Any]]:
    return [list(values[i : i + FAN_IN]) for i in range(0, len(values), FAN_IN)]


def added(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add tuples up, place by place."""
    return tuple(sum(place[1:], start=place[0]) for place in zip(*parts, strict=True))
