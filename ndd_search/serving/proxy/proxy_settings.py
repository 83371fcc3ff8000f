"""The settings of the proxy: the engine's addresses, TLS to the engine, limits, and where it is served.

`ndd-search serve` reads them from a file and the command line; the latter counts.

    upstream = ["https://es1:9200", "https://es2:9200"]
    listen = "0.0.0.0:9201"
    ca_certs = "/etc/ndd-search/ca.pem"

    [collapse]                            # CollapseOptions by name
    min_similarity = 0.8

    [indexes."news*"]                     # settings by pattern of index names, as in ndd_search.wrap
    text = ["title", "body"]

    [indexes."logs*"]
    enabled = false
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ndd_search.core.presets import collapse_options
from ndd_search.core.setting_values import (
    Kind,
    Seconds,
    Several,
    Text,
    Whole,
    YesNo,
    checked,
    kinds_of,
    setting,
)
from ndd_search.search.flow.client_settings import CLIENT
from ndd_search.search.settings_file import TABLES, preset, read_settings

MEGABYTE = 2**20


@dataclass(frozen=True)
class Node:
    """The address of one node of the engine. prefix: a path that goes before every path, "" for none."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @classmethod
    def parse(cls, url: str) -> Node:
        """Parse http[s]://HOST[:PORT][/PREFIX]. Raises ValueError, whose message hides credentials."""
        if "@" in url:
            what = f"upstream '…@{url.rpartition('@')[2]}' holds credentials, and callers would get that user's rights"
            raise ValueError(f"{what}: leave them out, the credentials of each caller are sent to the engine")
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 9200)
        except ValueError as error:
            raise ValueError(f"upstream {url!r} is not an address ({error}): write https://HOST:9200") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"upstream {url!r} is not an address of an engine: write https://HOST:9200")
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"


@checked
@dataclass(frozen=True, kw_only=True)
class ProxySettings:
    """The settings of the proxy, and of the server that runs it.

    upstream:        addresses of the nodes of one cluster; requests are spread over them in turn.
    ca_certs:        a file of certificates to trust for https, "" for the system's.
    insecure:        do not verify the engine's certificate.
    max_parsed:      bytes of a body, or of one line of a bulk, that are parsed; a larger one passes unchanged, and the
                     answer carries a Warning header.
    max_long:        bodies of more than 64 kB that are parsed at once; a further one waits for its turn.
    max_requests:    requests in flight; one more is answered with status 429.
    connect_seconds: to connect to a node.
    answer_seconds:  between two parts of an answer of the engine; None for no limit, as some requests take hours. A
                     request ends when its caller leaves.
    idle_seconds:    in which a caller has to send the next part of a body, or to accept the next part of an answer.
    listen:          HOST:PORT for callers.
    manage:          HOST:PORT on which `/_ndd/health`, `/_ndd/ready` and `/metrics` are answered, and nothing else;
                     "" for none.
    workers:         processes. Each has a cache of its own.
    certificate, key: files for https from callers, "" for http.
    header_seconds:  in which a caller has to send the head of a request.
    stop_seconds:    that requests in flight get to end in when the server is stopped.
    wrapping:        settings of `ndd_search.wrap` by name.
    """

    upstream: tuple[str, ...] = setting(Several(Text(), one=True), ())
    ca_certs: str = setting(Text(), "")
    insecure: bool = setting(YesNo(), False)
    max_parsed: int = setting(Whole(1), 16 * MEGABYTE)
    max_long: int = setting(Whole(1), 16)
    max_requests: int = setting(Whole(1), 1000)
    connect_seconds: float = setting(Seconds(), 5.0)
    answer_seconds: float | None = setting(Seconds(), None)
    idle_seconds: float = setting(Seconds(), 60.0)
    listen: str = setting(Text(), "127.0.0.1:9201")
    manage: str = setting(Text(), "")
    workers: int = setting(Whole(1), 1)
    certificate: str = setting(Text(), "")
    key: str = setting(Text(), "")
    header_seconds: float = setting(Seconds(), 10.0)
    stop_seconds: int = setting(Whole(1), 30)
    wrapping: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = self.nodes  # raises for what is no address
        port = address_of(self.listen)[1]
        if self.manage and address_of(self.manage)[1] == port:
            raise ValueError(f"manage {self.manage} needs a port of its own, other than that of listen {self.listen}")
        if bool(self.certificate) != bool(self.key):
            raise ValueError("https from callers needs both certificate and key")

    @classmethod
    def of(cls, upstream: str | Sequence[str], settings: Mapping[str, Any]) -> ProxySettings:
        """Create from one address or several, as a list or separated by commas, and settings of both kinds by name.

        An address as `cache`, and names of files as `items` and `preset`, are opened. Raises TypeError or ValueError
        for settings of the proxy that cannot be, OSError or InvalidSettings for a file that cannot be read.
        """
        urls = tuple(url.strip() for url in (upstream.split(",") if isinstance(upstream, str) else upstream))
        if not urls:
            raise ValueError("upstream names no address: write https://HOST:9200")
        own = {name: value for name, value in settings.items() if name in OWN}
        others = {name: value for name, value in settings.items() if name not in OWN}
        opened = {name: OPENED[name].check(name, value) for name, value in others.items() if name in OPENED}
        return cls(upstream=urls, **own, wrapping={**others, **opened})

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The addresses of the engine."""
        return tuple(map(Node.parse, self.upstream))

    def tls(self) -> ssl.SSLContext | None:
        """Return how to verify the engine, None without https. Raises ValueError for a file that cannot be used."""
        if not any(node.scheme == "https" for node in self.nodes):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_certs or None)
        except OSError as error:  # its message does not name the file
            raise ValueError(f"ca_certs {self.ca_certs}: {error.strerror or error}") from None
        if self.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


class _Cache(YesNo):
    """Whether pages are cached, or the address of a server that caches them for all."""

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and "://" in value:
            from ndd_search.plugins.redis_cache import RedisCache  # imported here: only now is the package redis needed

            return RedisCache(value)
        if isinstance(value, str):
            raise TypeError(f"{name} must be true, false, or the address of a Redis server, redis://HOST:6379/0")
        return CLIENT[name].check(name, value)

    def read(self, name: str, text: str) -> Any:
        try:
            return super().read(name, text)
        except ValueError:
            return self.check(name, text)


class _Items(Text):
    """the name of a file with a schema."""

    def check(self, name: str, value: Any) -> Any:
        from ndd_search.items.items import Items  # imported here: only now is rapidfuzz needed

        return Items.read(value) if isinstance(value, str) else value


class _Preset(Text):
    """the name of a preset, or of a file with one."""

    def check(self, name: str, value: Any) -> Any:
        return preset(value) if isinstance(value, str) else value


OWN = kinds_of(ProxySettings)
OPENED: dict[str, Kind] = {"cache": _Cache(), "items": _Items(), "preset": _Preset()}  # by an address or a file
_OF_CLIENT = ("recipe", "enabled", "time_budget", "frequency_table", "cursor_key")
SETTINGS: dict[str, Kind] = {**OWN, **{name: CLIENT[name] for name in _OF_CLIENT}, **OPENED}  # what is no table


def address_of(text: str) -> tuple[str, int]:
    """Parse HOST:PORT. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 <= int(port) < 2**16:
        raise ValueError(f"{text!r} is not an address to listen on: write HOST:PORT, as in 127.0.0.1:9201")
    return host.strip("[]") or "0.0.0.0", int(port)


def read_configuration(file: Path | None, given: Mapping[str, Any]) -> ProxySettings:
    """Return the settings. given: those of the command line, by name.

    Raises OSError, InvalidSettings for a file that cannot be read, ValueError or TypeError for settings that do not go
    together.
    """
    values = {} if file is None else read_settings(file, SETTINGS, TABLES)
    values = _merged(values, given)
    if "upstream" not in values:
        raise ValueError("upstream is not set: name the engine with --upstream https://HOST:9200")
    collapse = values.pop("collapse", {})
    collapse_options(**collapse)  # raises for unknown names
    return ProxySettings.of(values.pop("upstream"), {**values, **collapse})


def text_rules(texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Parse PATTERN:FIELD,FIELD as settings of indexes. Raises ValueError."""
    rules: dict[str, dict[str, Any]] = {}
    for text in texts:
        pattern, colon, names = text.strip().partition(":")
        chosen = [name.strip() for name in names.split(",")]
        if not colon or not pattern or not all(chosen):
            raise ValueError(
                f"{text!r} does not say which fields to sketch: write PATTERN:FIELD,FIELD, as in news*:body"
            )
        if pattern in rules:
            raise ValueError(f"{pattern!r} is given twice: name all its fields in one, {pattern}:FIELD,FIELD")
        rules[pattern] = {"text": chosen}
    return rules


def _merged(before: Any, later: Any) -> Any:
    """Return a later value; tables are merged, member by member."""
    if not isinstance(before, Mapping) or not isinstance(later, Mapping):
        return later
    return {**before, **{name: _merged(before.get(name), value) for name, value in later.items()}}
