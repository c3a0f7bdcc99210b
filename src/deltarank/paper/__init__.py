"""The paper, redone: experiments and their report."""
