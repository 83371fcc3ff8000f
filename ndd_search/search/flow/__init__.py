"""One search on its way to an engine and back, without a client library."""
