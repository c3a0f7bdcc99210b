"""Compiled loops over chances of labels: decisions row by row, and what they come to."""
