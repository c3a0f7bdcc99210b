"""Rankers trained on pairs of labels."""
