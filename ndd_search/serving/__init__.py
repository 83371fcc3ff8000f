"""Programs that other programs and people talk to: the proxy and the search page."""
