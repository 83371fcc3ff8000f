"""A search index in a folder; needs the extra `embedded`."""
