"""From chances of labels to the best ranking or label set for a metric."""
