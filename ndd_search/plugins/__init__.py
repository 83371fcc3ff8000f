"""Optional parts that are given to a wrapped client: a cache in Redis, metrics, traces."""
