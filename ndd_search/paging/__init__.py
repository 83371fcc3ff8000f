"""A ranked list to deduplicated pages, without any I/O."""
