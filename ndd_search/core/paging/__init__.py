"""From a ranked list to deduplicated pages. Nothing here does I/O."""
