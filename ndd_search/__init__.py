"""Search results without near-duplicates."""
