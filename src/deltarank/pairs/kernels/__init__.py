"""Compiled loops of training on pairs."""
