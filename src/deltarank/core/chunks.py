"""Dask collections cut by rows: told apart, checked, and taken chunk by chunk."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

# Results merged by one task.
FAN_IN = 8


def is_chunked(value: Any) -> bool:
    """Tell whether something is a Dask collection, without loading Dask."""
    return hasattr(value, "__dask_graph__")


def row_chunks(value: Any, argument: str, *, sizes_known: bool = True) -> list[Any]:
    """Return the chunks of a Dask array or data frame as delayed values, checked to be rows."""
    if is_frame(value):
        return list(value.to_delayed())
    if not hasattr(value, "chunks"):
        raise ValueError(
            f"{argument} must be a Dask array or data frame; got {type(value).__name__}"
        )
    if any(len(sizes) > 1 for sizes in value.chunks[1:]):
        raise ValueError(
            f"{argument} must be chunked by rows only; its columns are in {len(value.chunks[1])} "
            f"chunks: use {argument}.rechunk({{1: -1}})"
        )
    if sizes_known and np.isnan(value.chunks[0]).any():
        raise ValueError(
            f"{argument} has chunks of unknown size; call {argument}.compute_chunk_sizes() first"
        )
    return list(value.to_delayed().ravel())


def is_frame(value: Any) -> bool:
    """Tell a Dask data frame or series from an array: its partitions never know their length."""
    return hasattr(value, "divisions")


def aligned_chunks(*collections: tuple[Any, str]) -> list[tuple[Any, ...]]:
    """Return the chunks of several collections side by side, None where a collection is None.

    Parameters
    ----------
    *collections : (collection, argument)
        The first one tells how rows are cut; the others must be cut alike. Beside a data frame,
        whose partitions do not know their length, an array's chunks need not either.
    """
    first, name = collections[0]
    sizes_known = not any(is_frame(value) for value, _ in collections)
    columns: list[list[Any]] = []
    for value, argument in collections:
        if value is None:
            columns.append([None] * len(columns[0]))
            continue
        if not is_chunked(value):
            raise ValueError(
                f"{argument} must be a Dask collection, as {name} is; got {type(value).__name__}: "
                f"use dask.array.from_array({argument}, chunks={_chunk_hint(first, name, value)})"
            )
        columns.append(row_chunks(value, argument, sizes_known=sizes_known))
        if sizes_known and value.chunks[0] != first.chunks[0]:
            raise ValueError(
                f"{argument} must be chunked as {name} is, by the same rows; {name} has chunks of "
                f"{_shown(first)} rows and {argument} of {_shown(value)}: "
                f"use {argument}.rechunk({{0: {name}.chunks[0]}})"
            )
        if len(columns[-1]) != len(columns[0]):
            raise ValueError(
                f"{argument} must be chunked as {name} is, by the same rows; {name} has "
                f"{len(columns[0])} chunks and {argument} has {len(columns[-1])}"
            )
    return list(zip(*columns, strict=True))


def _shown(value: Any) -> str:
    sizes = value.chunks[0]
    return ", ".join(map(str, sizes[:5])) + (", ..." if len(sizes) > 5 else "")


def _chunk_hint(first: Any, name: str, value: Any) -> str:
    columns = ", -1" if np.ndim(value) == 2 else ","
    return "..." if is_frame(first) else f"({name}.chunks[0]{columns})"


def total_of_chunks(
    function: Callable[..., Any],
    *collections: tuple[Any, str],
    merge: Callable[[list[Any]], Any],
) -> Any:
    """Return ``merge`` of a function of chunks of rows, computed and merged where the chunks are.

    Parameters
    ----------
    function : callable
        Takes a chunk of each collection, None for one that is None. Chunks without rows, as
        partitions of data frames may be, are left out.
    *collections : (collection, argument)
        As in `aligned_chunks`.
    merge : callable
        Makes one result of a list of them, which it must not change: Dask may need them again.
    """
    import dask

    apply = dask.delayed(partial(_of_chunk, function), pure=False)
    join = dask.delayed(partial(_merged, merge), pure=False)
    parts = [apply(number, *chunk) for number, chunk in enumerate(aligned_chunks(*collections))]
    while len(parts) > 1:
        parts = [join(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    (results,) = dask.compute(parts[0])
    if not results:
        raise ValueError(f"{collections[0][1]} must have at least one row; got none")
    return results[0]


def _of_chunk(function: Callable[..., Any], number: int, *chunks: Any) -> list[Any]:
    """Return a list of the result, empty where there are no rows."""
    if not any(chunk.shape[0] for chunk in chunks if chunk is not None):
        return []
    try:
        return [function(*chunks)]
    except ValueError as error:
        raise ValueError(f"in chunk {number}: {error}") from None


def _merged(merge: Callable[[list[Any]], Any], parts: list[list[Any]]) -> list[Any]:
    results = [result for part in parts for result in part]
    return [merge(results)] if len(results) > 1 else results


def values_of_rows(function: Callable[..., Any], *chunks: Any) -> Any:
    """Return a function's value per row, none for chunks without rows; for `map_aligned`."""
    if not any(chunk.shape[0] for chunk in chunks):
        return np.empty(0)
    return function(*chunks)


def map_aligned(
    function: Callable[..., Any],
    *collections: tuple[Any, str],
    n_columns: int | None = None,
    dtype: Any = np.float64,
    meta: Any = None,
) -> Any:
    """Return the Dask array of a function of chunks of rows; nothing is computed yet.

    Parameters
    ----------
    function : callable
        Takes a chunk of each collection.
    *collections : (collection, argument)
        As in `aligned_chunks`.
    n_columns : int or None
        Columns of the results; None for one value per row.
    dtype : dtype
    meta : array, optional
        An empty result, where it is no NumPy array.
    """
    import dask
    import dask.array as da

    chunks = aligned_chunks(*collections)
    known = [value for value, _ in collections if value is not None and not is_frame(value)]
    lengths = known[0].chunks[0] if known else [np.nan] * len(chunks)
    width = () if n_columns is None else (n_columns,)
    # Delayed once, so that a large model is one value of the graph and not one per chunk.
    shared = dask.delayed(function, pure=False)
    parts = [
        da.from_delayed(shared(*each), (length, *width), dtype=dtype, meta=meta)
        for each, length in zip(chunks, lengths, strict=True)
    ]
    return da.concatenate(parts, axis=0, allow_unknown_chunksizes=True)
