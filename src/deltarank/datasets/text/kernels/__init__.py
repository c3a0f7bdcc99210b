"""Compiled loops over the bytes of texts."""
