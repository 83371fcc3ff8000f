"""What the commands that talk to a cluster share: its address, the right client for it, its errors in a sentence."""

from __future__ import annotations

import argparse
import base64
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from ndd_search.errors import IndexUnusable, importing
from ndd_search.indexing.templates import ENGINES

API_KEY = "NDD_SEARCH_API_KEY"
_CLIENTS = {
    "elasticsearch": ("elasticsearch", "Elasticsearch", "request_timeout"),
    "opensearch": ("opensearchpy", "OpenSearch", "timeout"),
}
_SECONDS = 120  # for one request: a page of large documents on a busy server takes long


@dataclass(frozen=True)
class Address:
    """Where a cluster is, and who asks. url: without credentials. ca_certs: a file, "" for the system's own.

    The password and the API key are left out of `repr`, so that no log and no traceback shows them.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    ca_certs: str = ""
    insecure: bool = False

    @classmethod
    def parse(cls, url: str, *, api_key: str = "", ca_certs: str = "", insecure: bool = False) -> Address:
        """http[s]://[USER:PASSWORD@]HOST[:PORT][/PREFIX]. Raises ValueError, without a password, for anything else."""
        wrong = (
            f"{_without_credentials(url)!r} is no address of a cluster; one looks like https://USER:PASSWORD@HOST:9200"
        )
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 9200)
        except ValueError as error:  # a port, or the brackets of an IPv6 address
            reason = str(error)
            if "@" in url:  # urllib takes what precedes a "/" in a password for a port, and quotes it
                reason = 'write "/", "?", "#" and "@" of a password as %2F, %3F, %23 and %40'
            raise ValueError(f"{wrong} ({reason})") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(wrong)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        bare = urlunsplit((parts.scheme, f"{host}:{port}", parts.path.rstrip("/"), "", ""))
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        return cls(bare, user, password, "" if user else api_key, ca_certs, insecure)

    @property
    def authorization(self) -> dict[str, str]:
        """The header that says who asks."""
        if self.user:
            told = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return {"authorization": f"Basic {told}"}
        return {"authorization": f"ApiKey {self.api_key}"} if self.api_key else {}

    def detect(self) -> str:
        """Ask the cluster what it is: "elasticsearch" or "opensearch"."""
        try:
            context = ssl.create_default_context(cafile=self.ca_certs or None)
        except OSError as error:  # which does not name the file
            raise ValueError(f"--ca-certs {self.ca_certs}: {error.strerror or error}") from None
        if self.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirect())
        request = urllib.request.Request(f"{self.url}/", headers={**self.authorization, "accept": "application/json"})
        try:
            with opener.open(request, timeout=30) as answer:
                told = json.load(answer)
        except urllib.error.HTTPError as error:
            error.close()
            if 300 <= error.code < 400 and (target := error.headers.get("location")):
                what = f"it answers {error.code} and points to {_without_credentials(target)}"
                raise IndexUnusable(self.url, what, "give that address if it is the cluster's") from None
            remedy = f"check the user, or {API_KEY}; with --engine this question is not asked"
            raise IndexUnusable(self.url, f"it answers {error.code} {error.reason}", remedy) from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise IndexUnusable(self.url, f"nothing answers there ({reason})", "is the address right?") from None
        except ValueError:
            raise IndexUnusable(self.url, "what answers there is no search engine", "is the address right?") from None
        if told.get("version", {}).get("distribution") == "opensearch" or "OpenSearch" in told.get("tagline", ""):
            return "opensearch"
        if "You Know, for Search" in told.get("tagline", ""):
            return "elasticsearch"
        raise IndexUnusable(self.url, "it does not say which engine it is", "say so with --engine")

    def client(self, engine: str) -> Any:
        """A client of the engine's own library. Raises MissingExtra."""
        package, name, timeout = _CLIENTS[engine]
        with importing(package, f"a cluster of {engine}", package, engine):
            library = import_module(package)
        tls: dict[str, Any] = {}
        if self.url.startswith("https:"):
            tls = {"verify_certs": not self.insecure, "ssl_show_warn": False}
            tls |= {"ca_certs": self.ca_certs} if self.ca_certs else {}
        settings = {timeout: _SECONDS, "headers": self.authorization, **tls}
        return getattr(library, name)(self.url, **settings)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the credentials would be sent to whatever host the answer names."""

    def redirect_request(self, *_: Any) -> None:
        """As in urllib: None makes the redirect an HTTPError."""


def _without_credentials(url: str) -> str:
    """An address as a message may show it: what stands between "//" and the last "@" becomes "…"."""
    before, at, host = url.rpartition("@")
    scheme, slashes, _ = before.partition("//")
    return f"{scheme if slashes else ''}{slashes}…@{host}" if at else url


def add_cluster(parser: argparse.ArgumentParser, *, positional: bool = True) -> None:
    """The address and what belongs to it."""
    if positional:
        parser.add_argument("url", metavar="URL", help="http[s]://[USER:PASSWORD@]HOST[:PORT]")
    parser.add_argument("--engine", choices=ENGINES, help="what runs there (asked of the server itself)")
    parser.add_argument("--ca-certs", default="", metavar="FILE", help="certificates to trust (the system's)")
    parser.add_argument("--insecure", action="store_true", help="take any certificate")


@contextmanager
def connected(arguments: argparse.Namespace, url: str) -> Iterator[Any]:
    """A client for the block; what the client raises inside becomes a sentence."""
    key = os.environ.get(API_KEY, "")
    address = Address.parse(url, api_key=key, ca_certs=arguments.ca_certs, insecure=arguments.insecure)
    with address.client(arguments.engine or address.detect()) as client:
        try:
            yield client
        except Exception as error:
            if (told := told_by_server(error)) is None:
                raise
            raise IndexUnusable(address.url, told, "nothing is lost: the same command may be run again") from error


def told_by_server(error: Exception) -> str | None:
    """The server's own words, without the wrapping; None for an error that is not of a client's library."""
    if type(error).__module__.partition(".")[0] not in ("elasticsearch", "elastic_transport", "opensearchpy"):
        return None
    body = getattr(error, "body", None) or getattr(error, "info", None)
    try:
        cause = body["error"]["root_cause"][0]  # type: ignore[index]
        return f"{cause['type']}: {cause['reason']}"
    except (TypeError, KeyError, IndexError):
        return str(error)
