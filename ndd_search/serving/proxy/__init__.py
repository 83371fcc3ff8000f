"""A proxy in front of Elasticsearch or OpenSearch: pages without near-duplicates for programs in any language."""

from ndd_search.serving.proxy.route_requests import Proxy, app

__all__ = ["Proxy", "app"]
