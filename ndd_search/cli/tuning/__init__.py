"""Choose min_similarity for an index, from pages of real queries and a person's answers about pairs."""
