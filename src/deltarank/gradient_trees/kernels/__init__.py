"""Compiled loops of gradient-boosted trees."""
