"""Haystack: different documents out of what a retriever found.

pipeline.add_component("filter", NearDuplicateFilter(size=10))

Haystack loads stored pipelines from this namespace without being told.
"""

from haystack_integrations.components.rankers.ndd_search.near_duplicate_filter import NearDuplicateFilter

__all__ = ["NearDuplicateFilter"]
