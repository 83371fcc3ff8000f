"""The published methods that are not the default: docs/recipes.md. A search imports them for their recipes only."""
