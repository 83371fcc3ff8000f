"""Identifies a client by its cluster and credentials, for the keys of a shared cache."""

from __future__ import annotations

import platform
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ndd_search.paging.cache import cache_key

_KNOWN_PACKAGES = {"elastic_transport", "opensearchpy", "ndd_search", "abc", "typing", "builtins"}


@dataclass(frozen=True)
class Origin:
    """Hashes that identify a client.

    cluster: of the addresses that it talks to. caller: of these and of all its settings, which hold its credentials.
    """

    cluster: bytes
    caller: bytes


def origin_of(transport: Any) -> Origin:
    """Return the origin of a client's transport, equal in every process that creates the client with the same settings.

    Some credentials cannot be compared: a function that signs requests, a class of the user's own that may add a
    header. Such a client gets a random caller and shares cache entries with no other client.
    """
    nodes = _nodes(transport)
    addresses, given = sorted(map(_address, nodes)), [nodes, getattr(transport, "kwargs", None)]
    cluster = cache_key("cluster", addresses) if nodes else uuid.uuid4().bytes
    if nodes and _is_comparable(given) and all(map(_is_known, _classes(transport))):
        return Origin(cluster, cache_key("caller", addresses, given))
    return Origin(cluster, uuid.uuid4().bytes)


def _nodes(transport: Any) -> list[dict[str, Any]]:
    """Return the settings of each node, from the node pool of elasticsearch-py or the hosts of opensearch-py."""
    if pool := getattr(transport, "node_pool", None):
        configs = [node.config for node in pool.all()]
        return [{one.name: _plain(getattr(config, one.name)) for one in fields(config)} for config in configs]
    hosts = getattr(transport, "hosts", None) or []
    return [dict(host) if isinstance(host, Mapping) else {"host": host} for host in hosts]


def _plain(value: Any) -> Any:
    """Return headers as sorted pairs, any other value as it is."""
    return sorted(map(list, value.items())) if isinstance(value, Mapping) else value


def _address(node: Mapping[str, Any]) -> str:
    """Return the URL of a node. A local address gets the name of this machine, to differ between machines."""
    scheme = node.get("scheme") or ("https" if node.get("use_ssl") else "http")
    prefix = str(node.get("path_prefix") or node.get("url_prefix") or "").strip("/")
    host = str(node.get("host", "localhost"))
    local = host == "localhost" or host.startswith("127.") or host.strip("[]") == "::1"
    return f"{scheme}://{platform.node() + '/' if local else ''}{host}:{node.get('port', 9200)}/{prefix}"


def _classes(transport: Any) -> list[type]:
    if pool := getattr(transport, "node_pool", None):
        return [type(transport), *(type(node) for node in pool.all())]
    return [type(transport), transport.connection_class]


def _is_known(kind: type) -> bool:
    """Return whether a class and its bases come from known packages, which keep credentials in their settings."""
    return all(one.__module__.partition(".")[0] in _KNOWN_PACKAGES for one in kind.__mro__)


def _is_comparable(value: Any) -> bool:
    """Return whether equal values have the same meaning in another process."""
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _is_comparable(one) for name, one in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_comparable, value))
    return value is None or isinstance(value, str | int | float | bytes)
