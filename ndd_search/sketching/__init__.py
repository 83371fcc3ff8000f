"""Hashes of shingles to sketches, and what two sketches say of two documents."""
