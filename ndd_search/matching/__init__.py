"""The sketches of a page to its near-duplicates: which pairs count, and who stands for whom."""
