"""Compiled loops of made-up data."""
