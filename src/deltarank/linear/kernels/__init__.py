"""Compiled loops of the linear rankers."""
