"""Gradient-boosted trees whose leaves hold a value for every label."""
