"""Sketches into an index and what a whole index is asked: ingest, backfill, candidates, templates, doctor."""
