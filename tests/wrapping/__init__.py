"""Wrapped clients against real servers, and what these tests share."""
