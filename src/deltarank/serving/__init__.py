"""A model behind HTTP: rankings and reasons as JSON, and one page for people."""
