"""Programs that measure what the documentation claims; each says at its head how to run it."""
