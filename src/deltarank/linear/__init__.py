"""Linear rankers: what is minimised, where rows lie, how it is solved."""
