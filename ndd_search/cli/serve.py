"""Serve a proxy in front of Elasticsearch or OpenSearch: searches through it come without near-duplicates.

examples:
  ndd-search serve --upstream http://localhost:9200
  ndd-search serve --upstream https://es1:9200,https://es2:9200 --ca-certs ca.pem --listen 0.0.0.0:9201 --workers 2
  ndd-search serve --upstream http://localhost:9200 --sketch "news*:title,body" --sketch "shop*:name"
  ndd-search serve --upstream http://localhost:9200 --search-page "news*"
  ndd-search serve --config /etc/ndd-search/serve.toml --check

Settings come from --config FILE (TOML), from variables NDD_SERVE_UPSTREAM, NDD_SERVE_LISTEN, ..., and from the command
line; the later one counts. The credentials of each caller are sent to the engine; the proxy has none. --check tests the
settings and whether each node answers, and serves nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import Any

from ndd_search.cli import DONE, FAILED
from ndd_search.cli.output import add_min_similarity, number, say, warn
from ndd_search.proxy.application import app
from ndd_search.proxy.configuration import read_configuration, sketch_rules
from ndd_search.proxy.server import ServeSettings, is_loopback, listening, serve, url_of

_TEXTS = {
    "upstream": ("URL", "http[s]://HOST[:PORT][/PREFIX] of the engine; several nodes separated by commas"),
    "listen": ("HOST:PORT", "where callers come in (127.0.0.1:9201)"),
    "manage": ("HOST:PORT", "where /_ndd/health and /_ndd/ready are answered (nowhere)"),
    "certificate": ("FILE", "certificate for https from callers"),
    "key": ("FILE", "its private key"),
    "ca_certs": ("FILE", "certificates to trust of the engine (the system's)"),
    "client_cert": ("FILE", "certificate that the proxy shows to the engine"),
    "client_key": ("FILE", "its private key"),
    "recipe": ("ID", "recipe of the sketches"),
    "field": ("NAME", "the object that holds the sketch (ndd)"),
    "search_page": ("INDEX", "serve a page at /_ndd/search/ that searches this index, or a pattern (no page)"),
    "cache": ("redis://HOST:PORT/0", "remember pages in Redis, for all workers and machines (each worker by itself)"),
    "settings": ("FILE", "options of searches, as tune writes them"),
    "items": ("FILE", "compare hits as records, by a schema that items learn has written"),
}
_SWITCHES = {
    "insecure": "do not verify the engine's certificate",
    "access_log": "print one JSON object for each request",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="read settings from a file")
    for name, (form, what) in _TEXTS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar=form, help=what)
    parser.add_argument("--workers", type=number(int, 1, 1024), metavar="N", help="processes (1)")
    parser.add_argument(
        "--sketch",
        action="append",
        metavar="PATTERN:FIELDS",
        help='text fields of indexes whose documents get a sketch when they are written, "news*:title,body"',
    )
    add_min_similarity(parser)
    parser.add_argument("--mode", choices=("group", "drop", "demote", "annotate"), help="what happens to duplicates")
    parser.add_argument("--window", type=number(int, 1), help="hits examined at first (100)")
    for name, what in _SWITCHES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", default=None, help=what)
    parser.add_argument("--check", action="store_true", help="test the settings and the engine, serve nothing")


def run(arguments: argparse.Namespace) -> int:
    try:
        settings = _settings(arguments)
        settings.application()  # raises for invalid settings, before any worker starts
    except TypeError as error:  # an unknown name
        raise ValueError(str(error)) from None
    if arguments.check:
        return asyncio.run(_check(settings))
    if settings.proxy.get("insecure"):
        warn("the engine's certificate is not verified")
    if not is_loopback(settings.listen) and not settings.certificate:
        warn(f"{settings.listen} is served without https: credentials of callers can be read on the way")
    sockets = listening(settings)
    say(f"serving {', '.join(settings.upstream)} at {url_of(settings, sockets[0])}")
    serve(settings, sockets)
    return DONE


def _settings(arguments: argparse.Namespace) -> ServeSettings:
    given: dict[str, Any] = {
        name: value for name in (*_TEXTS, *_SWITCHES, "workers") if (value := getattr(arguments, name)) is not None
    }
    if arguments.sketch:
        given["sketch"] = sketch_rules(arguments.sketch)
    collapse = {name: getattr(arguments, name) for name in ("min_similarity", "mode", "window")}
    if chosen := {name: value for name, value in collapse.items() if value is not None}:
        given["collapse"] = chosen
    return read_configuration(arguments.config, os.environ, given)


async def _check(settings: ServeSettings) -> int:
    """Ask every node, one by one. Returns the exit code."""
    code = DONE
    for url in settings.upstream:
        proxy = app(url, **settings.proxy)
        problem = await proxy.upstream.answers()
        await proxy.upstream.close()
        if problem:
            warn(problem)
            code = FAILED
        else:
            say(f"{url} answers")
    return code
