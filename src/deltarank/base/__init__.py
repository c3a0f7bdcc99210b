"""What every ranker shares."""
