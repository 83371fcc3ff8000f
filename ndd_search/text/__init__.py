"""Text to the hashes of its shingles."""
