"""Optimisers of many problems at once: they see a function, never data."""
