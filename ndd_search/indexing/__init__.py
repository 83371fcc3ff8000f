"""Sketches on a server: ingest, backfill, templates, search of a whole index for duplicates, doctor."""
