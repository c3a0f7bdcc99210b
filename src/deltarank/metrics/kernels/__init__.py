"""Compiled loops over the scores of rows: places of labels, losses of pairs."""
