"""Passages without near-duplicates for retrieval frameworks: a plain function, and one module for each framework."""
