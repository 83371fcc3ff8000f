"""The near-duplicates of a whole collection, on one machine or on a Spark cluster."""
