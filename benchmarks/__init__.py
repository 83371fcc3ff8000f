"""Programs that measure the figures of the documentation; the docstring of each says how to run it."""
