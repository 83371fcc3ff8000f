"""Which requests are searches, which change documents; and the parameters of a URL."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import parse_qsl, unquote_plus

INDEX = "/(?:_all|[^_/?#][^/?#]*)"  # in a path; no name of an index starts with an underscore
_SEARCHES = re.compile(f"(?:{INDEX})?/_(search|msearch|search/template)")
_READS = {
    *("_search", "_msearch", "_count", "_mget", "_pit", "_field_caps", "_validate", "_explain", "_analyze", "_eql"),
    *("_termvectors", "_mtermvectors", "_search_shards", "_async_search", "_rank_eval", "_terms_enum", "_query"),
    "_sql",
}


def kind_of_search(method: str, path: str) -> Literal["", "search", "msearch", "search/template"]:
    """Return which search a request is, several in one, or one by a template; "" for any other request."""
    found = _SEARCHES.fullmatch(path) if method in ("GET", "POST") else None
    return found[1] if found else ""  # type: ignore[return-value]


def is_write(method: str, path: str) -> bool:
    """Return whether a request may change the results of searches."""
    if method in ("GET", "HEAD"):
        return False
    parts = path.split("/")
    return next((part for part in parts if part.startswith("_") and part != "_all"), "") not in _READS


def params_of(query: str) -> dict[str, str]:
    """Return the parameters of a query string; of a repeated name, the last value."""
    return dict(parse_qsl(query, keep_blank_values=True))


def named_pieces(query: str) -> list[tuple[str, str]]:
    """Return the pieces of a query string as they are, each with the name of its parameter."""
    return [(unquote_plus(piece.partition("=")[0]), piece) for piece in query.split("&")]


def media_type(kind: str, lines: bool) -> str:
    """Return a media type of JSON for lines of JSON, or for one value."""
    plain = kind.replace("x-ndjson", "json")
    return plain.replace("json", "x-ndjson", 1) if lines else plain
