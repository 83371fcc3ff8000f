"""Search engines behind the flow of `page`; each module needs its own extra."""
