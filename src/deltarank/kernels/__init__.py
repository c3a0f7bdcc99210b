"""Numba functions: compiled loops that release the GIL and know nothing of the library."""
