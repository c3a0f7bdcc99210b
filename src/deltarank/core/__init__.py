"""What everything stands on: labels, weights, losses, files, threads, progress."""
