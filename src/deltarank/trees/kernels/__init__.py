"""Compiled loops of label trees."""
