"""Serve a proxy in front of Elasticsearch or OpenSearch: searches through it come without near-duplicates.

examples:
  ndd-search serve --upstream http://localhost:9200
  ndd-search serve --upstream https://es1:9200,https://es2:9200 --ca-certs ca.pem --listen 0.0.0.0:9201 --set workers=2
  ndd-search serve --upstream http://localhost:9200 --text "news*:title,body" --text "shop*:name"
  ndd-search serve --upstream http://localhost:9200 --set cache=redis://localhost:6379/0
  ndd-search serve --config /etc/ndd-search/serve.toml --check

Settings come from --config FILE (TOML) and from the command line, which counts more; --set takes those that have no
flag. The credentials of each caller are sent to the engine; the proxy has none. --check serves nothing: it tests the
settings, and whether each node and the cache answer; ndd-search doctor checks the indexes.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from ndd_search import native
from ndd_search.cli import DONE, FAILED
from ndd_search.cli.output import add_set, add_shared, say, warn
from ndd_search.core.options import KINDS
from ndd_search.serving.proxy.proxy_settings import SETTINGS, ProxySettings, read_configuration, text_rules
from ndd_search.serving.proxy.route_requests import Proxy
from ndd_search.serving.proxy.server import is_loopback, listening, serve, url_of
from ndd_search.serving.proxy.upstream import Upstream

_TEXTS = {
    "upstream": ("URL", "http[s]://HOST[:PORT][/PREFIX] of the engine; several nodes separated by commas"),
    "listen": ("HOST:PORT", "where callers come in (127.0.0.1:9201)"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="read settings from a file")
    for name, (form, what) in _TEXTS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar=form, help=what)
    parser.add_argument(
        "--text",
        action="append",
        metavar="PATTERN:FIELDS",
        help='text fields of indexes whose documents get a sketch when they are written, "news*:title,body"',
    )
    add_shared(parser, "--ca-certs", "--insecure")
    add_set(parser, KINDS | SETTINGS)
    parser.add_argument("--check", action="store_true", help="test the settings and the engine, serve nothing")


def run(arguments: argparse.Namespace) -> int:
    try:
        settings = _settings(arguments)
        Proxy(settings)  # raises for invalid settings, before any worker starts
    except TypeError as error:  # an unknown name
        raise ValueError(str(error)) from None
    if native.core is None:
        warn(f"sketches and pages are computed with {native.in_use()}, which takes 20 to 80 times as long")
    if arguments.check:
        return asyncio.run(_check(settings))
    if settings.insecure:
        warn("the engine's certificate is not verified")
    if not is_loopback(settings.listen) and not settings.certificate:
        warn(f"{settings.listen} is served without https: credentials of callers can be read on the way")
    sockets = listening(settings)
    say(f"serving {', '.join(settings.upstream)} at {url_of(settings, sockets[0])}")
    Thread(target=_warn_of_problems, args=(settings,), daemon=True).start()  # a node may take seconds
    serve(settings, sockets)
    return DONE


def _settings(arguments: argparse.Namespace) -> ProxySettings:
    named = (*_TEXTS, "ca_certs", "insecure")
    given: dict[str, Any] = {name: value for name in named if (value := getattr(arguments, name))}
    given |= {name: value for name, value in arguments.set if name in SETTINGS}
    given["collapse"] = {name: value for name, value in arguments.set if name not in SETTINGS}
    if arguments.text:
        given["indexes"] = text_rules(arguments.text)
    return read_configuration(arguments.config, given)


def _warn_of_problems(settings: ProxySettings) -> None:
    for problem in filter(None, asyncio.run(_problems(settings)).values()):
        warn(problem)


async def _check(settings: ProxySettings) -> int:
    """Ask every node and the cache. Returns the exit code."""
    problems = await _problems(settings)
    for url, problem in problems.items():
        if problem:
            warn(problem)
        else:
            say(f"{url} answers")
    cache = Proxy(settings).driver.settings.cache
    try:
        if cache is not None:
            cache.get(bytes(16))
    except Exception as error:  # of the package redis
        problems["cache"] = f"the cache {cache!r} does not answer ({error}): searches would go on without it"
        warn(problems["cache"])
    return FAILED if any(problems.values()) else DONE


async def _problems(settings: ProxySettings) -> dict[str, str]:
    """Return why each node does not answer, "" if it does. All are asked at the same time."""

    async def problem(url: str) -> str:
        upstream = Upstream(replace(settings, upstream=(url,)))
        try:
            return await upstream.answers(strict=True)
        finally:
            await upstream.close()

    return dict(zip(settings.upstream, await asyncio.gather(*map(problem, settings.upstream)), strict=True))
