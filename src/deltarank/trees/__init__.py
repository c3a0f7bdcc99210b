"""Label trees: rankers for very many labels, on linear problems of few rows each."""
