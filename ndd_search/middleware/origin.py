"""Who a client is: the cluster it talks to and the credentials it brings, for the keys of a cache that others share."""

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
    """cluster: the addresses that a client talks to. caller: the same with everything that may say who it is."""

    cluster: bytes
    caller: bytes


def origin_of(transport: Any) -> Origin:
    """The origin of a client's transport, the same in every process that makes the client in the same way.

    A client whose credentials cannot be compared, such as a function that signs requests or a class of the user's own
    that may add a header, is nobody but itself: its caller is a random one.
    """
    nodes = _nodes(transport)
    addresses, given = sorted(map(_address, nodes)), [nodes, getattr(transport, "kwargs", None)]
    cluster = cache_key("cluster", addresses) if nodes else uuid.uuid4().bytes
    if nodes and _is_comparable(given) and all(map(_is_known, _classes(transport))):
        return Origin(cluster, cache_key("caller", addresses, given))
    return Origin(cluster, uuid.uuid4().bytes)


def _nodes(transport: Any) -> list[dict[str, Any]]:
    """The settings of each node: elasticsearch-py has a pool of nodes with a config, opensearch-py a list of hosts."""
    if pool := getattr(transport, "node_pool", None):
        configs = [node.config for node in pool.all()]
        return [{one.name: _plain(getattr(config, one.name)) for one in fields(config)} for config in configs]
    hosts = getattr(transport, "hosts", None) or []
    return [dict(host) if isinstance(host, Mapping) else {"host": host} for host in hosts]


def _plain(value: Any) -> Any:
    """Headers as pairs in one order."""
    return sorted(map(list, value.items())) if isinstance(value, Mapping) else value


def _address(node: Mapping[str, Any]) -> str:
    """Where a node is; of this machine's own addresses, on which machine."""
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
    """Whether a class and those it derives from add no credentials that we do not see."""
    return all(one.__module__.partition(".")[0] in _KNOWN_PACKAGES for one in kind.__mro__)


def _is_comparable(value: Any) -> bool:
    """Whether equal values mean the same, in another process too."""
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _is_comparable(one) for name, one in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_comparable, value))
    return value is None or isinstance(value, str | int | float | bytes)
