"""From shingle hashes to sketches, and estimates from two sketches."""
