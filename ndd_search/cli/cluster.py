"""Connects commands to a cluster: parses its address, creates a client of its engine, translates its errors."""

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
from http import HTTPStatus
from importlib import import_module
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from ndd_search.cli.output import add_shared, shorten, warn
from ndd_search.core.text.printable import many, safe
from ndd_search.errors import IndexUnusable, importing
from ndd_search.indexing.concurrent_updates import EXAMPLES, Tally
from ndd_search.indexing.rate_and_retries import server_reason, status_of

ADDRESSES = ("http://", "https://")  # what those of an index begin with
API_KEY = "NDD_SEARCH_API_KEY"
_CLIENTS = {
    "elasticsearch": ("elasticsearch", "Elasticsearch", "request_timeout"),
    "opensearch": ("opensearchpy", "OpenSearch", "timeout"),
}
_REMEDIES: dict[int | None, str] = {404: "check its name", 400: "nothing is lost: correct what the server refuses"}
_LONGEST = 500  # characters of a reason: a client's own may hold the whole answer
_SECONDS = 120  # timeout of a request: a page of large documents takes long on a busy server


@dataclass(frozen=True)
class Address:
    """The address of a cluster, and credentials. url: without credentials. ca_certs: a file, "" for the system's.

    `repr` omits the password and the API key, so that no log or traceback shows them.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    ca_certs: str = ""
    insecure: bool = False

    @classmethod
    def parse(cls, url: str, *, api_key: str = "", ca_certs: str = "", insecure: bool = False) -> Address:
        """Parse http[s]://[USER:PASSWORD@]HOST[:PORT][/PREFIX]. Raises ValueError, whose message hides a password."""
        wrong = (
            f"{_without_credentials(url)!r} is not an address of a cluster; write it as https://USER:PASSWORD@HOST:9200"
        )
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 9200)
        except ValueError as error:  # a port, or the brackets of an IPv6 address
            reason = str(error)
            if "@" in url:  # urllib reads a part of a password with "/" as the port, and quotes it in its message
                reason = 'write "/", "?", "#" and "@" of a password as %2F, %3F, %23 and %40'
            raise ValueError(f"{wrong} ({reason})") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(wrong)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        bare = urlunsplit((parts.scheme, f"{host}:{port}", parts.path.rstrip("/"), "", ""))
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        return cls(bare, user, password, "" if user else api_key, ca_certs, insecure)

    @classmethod
    def of(cls, arguments: argparse.Namespace, url: str) -> Address:
        """The address that a command names, with its options and the API key of the environment."""
        key = os.environ.get(API_KEY, "")
        return cls.parse(url, api_key=key, ca_certs=arguments.ca_certs, insecure=arguments.insecure)

    @property
    def authorization(self) -> dict[str, str]:
        if self.user:
            credentials = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return {"authorization": f"Basic {credentials}"}
        return {"authorization": f"ApiKey {self.api_key}"} if self.api_key else {}

    def detect(self) -> str:
        """Ask the cluster for its engine: "elasticsearch" or "opensearch".

        Elasticsearch names itself in the head of every answer, also to a user who may not see this one.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca_certs or None)
        except OSError as error:  # its message does not name the file
            raise ValueError(f"--ca-certs {self.ca_certs}: {error.strerror or error}") from None
        if self.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirect())
        request = urllib.request.Request(f"{self.url}/", headers={**self.authorization, "accept": "application/json"})
        try:
            with opener.open(request, timeout=30) as answer:
                info = json.load(answer)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == HTTPStatus.FORBIDDEN:
                return "elasticsearch" if "x-elastic-product" in error.headers else "opensearch"
            if 300 <= error.code < 400 and (target := error.headers.get("location")):
                what = f"it answers {error.code} and redirects to {_without_credentials(target)}"
                raise IndexUnusable(self.url, what, "give that address if it belongs to the cluster") from None
            remedies = {401: f"check user and password, or {API_KEY}", 404: "check the path: no engine is there"}
            remedy = remedies.get(error.code, "run the same command again when it answers")
            raise IndexUnusable(self.url, f"it answers {error.code} {error.reason}", remedy) from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise IndexUnusable(self.url, f"there is no answer ({reason})", "check the address") from None
        except ValueError:
            raise IndexUnusable(
                self.url, "the server at this address is not a search engine", "check the address"
            ) from None
        if info.get("version", {}).get("distribution") == "opensearch" or "OpenSearch" in info.get("tagline", ""):
            return "opensearch"
        if "You Know, for Search" in info.get("tagline", ""):
            return "elasticsearch"
        raise IndexUnusable(self.url, "its answer does not name the engine", "check the address")

    def client(self, engine: str) -> Any:
        """Create a client of the library of an engine. Raises MissingExtra if it is not installed."""
        package, name, _ = _CLIENTS[engine]
        with importing(package, f"a cluster of {engine}", package, engine):
            library = import_module(package)
        return getattr(library, name)(self.url, **self.arguments(engine))

    def arguments(self, engine: str) -> dict[str, Any]:
        """The arguments of a client of an engine, beside the address."""
        tls: dict[str, Any] = {}
        if self.url.startswith("https:"):
            tls = {"verify_certs": not self.insecure, "ssl_show_warn": False}
            tls |= {"ca_certs": self.ca_certs} if self.ca_certs else {}
        return {_CLIENTS[engine][2]: _SECONDS, "headers": self.authorization, **tls}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would send the credentials to the host that the response names."""

    def redirect_request(self, *_: Any) -> None:
        """Return None, which makes urllib raise HTTPError."""


def _without_credentials(url: str) -> str:
    """Replace the credentials in an address, between "//" and the last "@", by "…"."""
    before, at, host = url.rpartition("@")
    scheme, slashes, _ = before.partition("//")
    return f"{scheme if slashes else ''}{slashes}…@{host}" if at else url


def add_cluster(parser: argparse.ArgumentParser, *, positional: bool = True, optional: bool = False) -> None:
    """Add the options of an address and its credentials. positional: and the address and an index as arguments."""
    if positional:
        lack: dict[str, Any] = {"nargs": "?"} if optional else {}
        parser.add_argument("url", metavar="URL", help="http[s]://[USER:PASSWORD@]HOST[:PORT]", **lack)
        parser.add_argument("index", metavar="INDEX", help="an index, alias, data stream or pattern", **lack)
    add_shared(parser, "--ca-certs", "--insecure")


@contextmanager
def connected(arguments: argparse.Namespace, url: str) -> Iterator[Any]:
    """Yield a client. Its errors inside the block become IndexUnusable with the reason that the server gave."""
    address = Address.of(arguments, url)
    with address.client(address.detect()) as client:
        try:
            yield client
        except Exception as error:
            if (reason := server_reason(error)) is None:
                raise
            remedy = _REMEDIES.get(status_of(error), "nothing is lost: run the same command again")
            raise IndexUnusable(address.url, shorten(reason, _LONGEST), remedy) from error


def warn_of_undone(tally: Tally) -> None:
    """Print which documents the server refused, and which were left alone."""
    for reason, count in tally.refused.most_common(5):
        warn(f"the server refused {many(count, 'document')}: {reason}")
    for reason, ids in tally.left.items():
        examples = ", ".join(map(safe, ids[:EXAMPLES])) + (", ..." if len(ids) > EXAMPLES else "")
        warn(f"not changed: {many(len(ids), 'document')} ({examples}): {reason}")


def parts_of(name: str) -> tuple[str, str]:
    """Split URL/INDEX. Raises ValueError."""
    parts = urlsplit(name)
    prefix, _, index = parts.path.rstrip("/").rpartition("/")
    if not index:
        raise ValueError(
            f"{_without_credentials(name)} names no index: expected http[s]://[USER:PASSWORD@]HOST[:PORT]/INDEX"
        )
    return parts._replace(path=prefix, query="", fragment="").geturl(), index
