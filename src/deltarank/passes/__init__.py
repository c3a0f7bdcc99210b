"""One pass over the data gives values and gradients of all problems; only here is X known."""
