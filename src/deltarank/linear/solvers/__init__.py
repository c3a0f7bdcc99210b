"""Batched optimisers: they see a function, never data."""
