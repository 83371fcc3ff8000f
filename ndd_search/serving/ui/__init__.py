"""A search page for the browser: results without near-duplicates, and why each duplicate is one."""
