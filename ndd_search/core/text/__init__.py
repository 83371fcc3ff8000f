"""From text to the hashes of its shingles."""
