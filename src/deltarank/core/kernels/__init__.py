"""Compiled loops that several rooms share."""
