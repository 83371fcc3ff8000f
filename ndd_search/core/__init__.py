"""From any ranked list to pages without near-duplicates: no module here reads or writes anything."""
