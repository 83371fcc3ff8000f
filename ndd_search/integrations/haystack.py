"""Haystack: the component by a shorter name; it lives where Haystack loads stored pipelines from."""

from __future__ import annotations

from ndd_search.errors import MissingExtra

try:
    from haystack_integrations.components.rankers.ndd_search import NearDuplicateFilter
except ModuleNotFoundError as error:
    if error.name != "haystack":
        raise
    raise MissingExtra("ndd_search.integrations.haystack", "haystack-ai", "haystack") from None

__all__ = ["NearDuplicateFilter"]
