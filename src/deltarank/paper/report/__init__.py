"""Rows to tables and figures."""
