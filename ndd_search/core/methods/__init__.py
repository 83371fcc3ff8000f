"""The published methods that are not the default: docs/methods.md. A search imports them for their recipes only."""
