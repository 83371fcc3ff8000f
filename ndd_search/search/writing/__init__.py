"""Documents on their way into an index get their sketches, without any I/O."""
