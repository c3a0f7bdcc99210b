"""Boosted stumps: bins, the search for a stump, losses, rankers."""
