"""The near-duplicates of a whole collection, on one machine."""
