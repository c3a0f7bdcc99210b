"""Readers of every format, from bytes to arrays."""
