"""Rankers round other estimators."""
