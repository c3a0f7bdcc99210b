"""BLAS on one thread while our own tasks are the parallelism."""

from typing import Any

from threadpoolctl import ThreadpoolController

from deltarank.core.interrupts import held_interrupts

# Libraries are looked for by a callback from C.
with held_interrupts():
    _BLAS = ThreadpoolController()


def one_blas_thread() -> Any:
    """Return a context in which each BLAS call stays on its thread.

    Hold it round a whole solve: OpenBLAS's own threads spin for a while after each of their calls
    and would take the cores from the tasks.
    """
    return _BLAS.limit(limits=1)
