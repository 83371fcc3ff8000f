"""Serve a search page for the browser: results without near-duplicates, and why each duplicate is one.

examples:
  ndd-search ui news.idx
  ndd-search ui http://localhost:9200 "news*"
  ndd-search ui https://user:password@es:9200 news --ca-certs ca.pem --listen 127.0.0.1:8080

The page is served on this machine only (127.0.0.1). Credentials come from the address or from NDD_SEARCH_API_KEY, and
everybody who reaches the page searches with them. Without any, the browser asks for those of the engine, and each
caller has their own rights: serve a page for other people so, behind a server with https.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ndd_search.cli import DONE
from ndd_search.cli.cluster import Address
from ndd_search.cli.output import add_set, add_shared, say, warn
from ndd_search.cli.search import open_index
from ndd_search.core.presets import collapse_options
from ndd_search.errors import IndexUnusable
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.serving.proxy.proxy_settings import ProxySettings, address_of
from ndd_search.serving.proxy.search_engine import UpstreamSearcher
from ndd_search.serving.proxy.server import is_loopback, serve_application
from ndd_search.serving.proxy.upstream import Upstream
from ndd_search.serving.ui.application import SearchPage
from ndd_search.serving.ui.searcher import Searcher

_LISTEN = "127.0.0.1:8000"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def configure(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--listen", default=_LISTEN, metavar="HOST:PORT", help=f"where the page is served ({_LISTEN})")


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add what `searcher_of` reads."""
    parser.add_argument("place", metavar="FOLDER|URL", help="an index folder, or http[s]://[USER:PASSWORD@]HOST[:PORT]")
    parser.add_argument("index", nargs="?", help="with a URL: an index, several (a,b), or a pattern (news*)")
    add_shared(parser, "--ca-certs", "--insecure", "--recipe", "--preset")
    add_set(parser)


def run(arguments: argparse.Namespace) -> int:
    host, _ = address_of(arguments.listen)
    loopback = is_loopback(arguments.listen)
    if not loopback:
        warn(f"{arguments.listen} is served without https to everybody who can reach it")
    hosts = {*_LOOPBACK, host, f"[{host}]"} if loopback else None
    page = SearchPage(searcher_of(arguments), hosts)
    serve_application(page, arguments.listen, lambda url: say(f"the search page is at {url}/ (Ctrl-C ends it)"))
    return DONE


def searcher_of(arguments: argparse.Namespace) -> Searcher:
    """Return what searches the place of a command."""
    changes: dict[str, Any] = {"preset": arguments.preset, **dict(arguments.set)}
    if "://" not in arguments.place:
        from ndd_search.serving.ui.search_folder import FolderSearcher

        if arguments.index:
            raise ValueError(f"{arguments.place} is a folder and holds one index: leave out {arguments.index!r}")
        index = open_index(Path(arguments.place))
        index.options = collapse_options(index.options, **changes)
        return FolderSearcher(index)
    if not arguments.index:
        raise ValueError(f'name what to search at {arguments.place}: an index, or a pattern such as "news*"')
    address = Address.of(arguments, arguments.place)
    settings = ProxySettings(upstream=(address.url,), ca_certs=address.ca_certs, insecure=address.insecure)
    upstream, driver = Upstream(settings), Driver(settings_of(recipe=arguments.recipe, **changes))
    driver.settings.memory.serve(upstream)
    searcher = UpstreamSearcher(driver, upstream, arguments.index, address.authorization)
    try:
        address.detect()
    except IndexUnusable as error:
        warn(str(error))  # and serve: the engine may start later, or ask the browser for a user
    return searcher
