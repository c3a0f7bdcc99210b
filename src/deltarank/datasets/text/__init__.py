"""Text to numbers: characters, words and n-grams, a vocabulary, rows of TF-IDF."""
