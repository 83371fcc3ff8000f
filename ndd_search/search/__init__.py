"""One search on its way to an engine and back."""
