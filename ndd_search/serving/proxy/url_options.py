"""The options in a search that comes by HTTP: those in its URL, and whether its body holds any."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args
from urllib.parse import unquote_plus

from ndd_search.core.options import OF_ONE_SEARCH, Mode
from ndd_search.core.presets import OPTIONS
from ndd_search.core.setting_values import check_one_of, read_named
from ndd_search.search.rest.read_request import Request
from ndd_search.search.rest.request_url import named_pieces
from ndd_search.serving.proxy.http_exchange import Exchange

_SWITCH = {"off": False, "false": False, "on": True, "true": True, "": True}
_MAYBE_NDD = re.compile(rb"ndd|[\\\0]")  # also with escapes, or as UTF-16


def url_options(query: str) -> tuple[str, dict[str, Any] | None, bool]:
    """Return a query string without our parameters, the options that they give, and whether the search is left alone.

    "ndd=drop&ndd.total=groups" gives the options mode and total, "ndd=on" gives {}; without a parameter of ours they
    are None. "ndd=off" leaves the search alone. Raises ValueError for an unknown name or value, and for the token of a
    cursor: no URL is as long.
    """
    if "ndd" not in query:
        return query, None, False
    named = named_pieces(query)
    ours = [(name, unquote_plus(piece.partition("=")[2])) for name, piece in named if name[:4] in ("ndd", "ndd.")]
    if not ours:
        return query, None, False
    own = dict(ours)
    if len(own) < len(ours):
        raise ValueError(f"{', '.join(own)}: each parameter may be given once")
    rest = "&".join(piece for name, piece in named if name not in own)
    switch = own.pop("ndd", "")
    found = {name[4:]: read_named(name[4:], text, OPTIONS | OF_ONE_SEARCH) for name, text in own.items()}
    if isinstance(found.get("cursor"), str):
        what = "ndd.cursor begins a cursor, with true; a token is too long for a URL"
        raise ValueError(f'{what}: send it in the body, {{"ndd": {{"cursor": "..."}}}}')
    if switch not in _SWITCH:
        check_one_of("the parameter ndd", switch, ("on", "off", *get_args(Mode)))
        if "mode" in found:
            raise ValueError(f"ndd={switch} sets the mode, and so does ndd.mode: give one of them")
        found["mode"] = switch
    return rest, found, not _SWITCH.get(switch, True)


def with_options(request: Request, given: Mapping[str, Any]) -> Request:
    """Return a search with the options of its URL beside those in its body, which count more."""
    body = {} if request.body is None else request.body
    own = body.get("ndd")
    if own is False:
        return request
    return replace(request, body={**body, "ndd": {**given, **(own if isinstance(own, Mapping) else {})} or True})


def may_want_options(exchange: Exchange, body: bytes, query: str) -> bool:
    """Return whether a search that was not parsed may hold our key "ndd": in its body or in the parameter `source`."""
    if exchange.header(b"content-encoding") or "source" in query or "%" in query:
        return True
    return _MAYBE_NDD.search(body) is not None


def wants_options(body: Any) -> bool:
    """Return whether a body holds our key "ndd", or may hold it in one of its lines."""
    return b'"ndd"' in body if isinstance(body, bytes) else isinstance(body, Mapping) and "ndd" in body


def wants_cursor(body: Any) -> bool:
    """Return whether a search begins or continues a cursor."""
    own = body.get("ndd") if isinstance(body, Mapping) else None
    return isinstance(own, Mapping) and bool(own.get("cursor"))
