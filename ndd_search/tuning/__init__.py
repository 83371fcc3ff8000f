"""Which setting suits an index: what each would hide on the pages of real queries, and what its owner says of pairs."""
