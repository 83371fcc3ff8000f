"""The settings of the proxy itself: the engine's addresses, TLS to the engine, and limits."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ndd_search.core.setting_kinds import Seconds, Text, Whole, YesNo, kinds_of, setting

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


@dataclass(frozen=True, kw_only=True)
class ProxySettings:
    """The settings of the proxy itself.

    nodes:           addresses of one cluster; requests are spread over them in turn.
    ca_certs:        a file of certificates to trust for https, "" for the system's.
    client_cert, client_key: files of a certificate that the proxy shows to the engine; "" for none. The engine then
                     gives the rights of that certificate to every caller without credentials.
    insecure:        do not verify the engine's certificate.
    max_parsed:      bytes of a body, or of one line of a bulk, that are parsed; a larger one passes unchanged, and the
                     answer carries a Warning header.
    max_held:        bytes of bodies that are held for parsing at once; a further request waits for its turn.
    max_requests:    requests in flight; one more is answered with status 429.
    connect_seconds: to connect to a node.
    answer_seconds:  between two parts of an answer of the engine; None for no limit, as some requests take hours. A
                     request ends when its caller leaves.
    idle_seconds:    in which a caller has to send the next part of a body, or to accept the next part of an answer.
    manage_port:     the local port on which `/_ndd/health`, `/_ndd/ready`, `/_ndd/mapping` and `/metrics` are answered,
                     and nothing else; None for none.
    search_page:     names or a pattern of the indexes that the page at `/_ndd/search/` searches, "" for no such page.
    access_log:      log one JSON object for each request, to the logger "ndd_search.access".
    """

    nodes: tuple[Node, ...]
    ca_certs: str = setting(Text(), "")
    client_cert: str = setting(Text(), "")
    client_key: str = setting(Text(), "")
    insecure: bool = setting(YesNo(), False)
    max_parsed: int = setting(Whole(1), 16 * MEGABYTE)
    max_held: int = setting(Whole(1), 256 * MEGABYTE)
    max_requests: int = setting(Whole(1), 1000)
    connect_seconds: float = setting(Seconds(), 5.0)
    answer_seconds: float | None = setting(Seconds(), None)
    idle_seconds: float = setting(Seconds(), 60.0)
    manage_port: int | None = None
    search_page: str = setting(Text(), "")
    access_log: bool = setting(YesNo(), False)

    def __post_init__(self) -> None:
        if not self.nodes:
            raise ValueError("upstream names no address: write https://HOST:9200")
        for name, kind in kinds_of(self).items():
            kind.check(name, getattr(self, name))
        if self.client_key and not self.client_cert:
            raise ValueError("client_key is given without client_cert: name the file of the certificate, too")

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
        if self.client_cert:
            try:
                context.load_cert_chain(self.client_cert, self.client_key or None)
            except OSError as error:
                raise ValueError(f"client_cert {self.client_cert}: {error.strerror or error}") from None
        return context


def nodes_of(upstream: str | Sequence[str]) -> tuple[Node, ...]:
    """Parse one address, several in a list, or several in a text, separated by commas. Raises ValueError."""
    urls = upstream.split(",") if isinstance(upstream, str) else upstream
    return tuple(Node.parse(url.strip()) for url in urls)
