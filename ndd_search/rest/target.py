"""The path and query of a URL, and how they change with a request."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, unquote_plus, urlencode

from ndd_search.rest.request import Request


def params_of(query: str) -> dict[str, str]:
    """Return the parameters of a query string; of a repeated name, the last value."""
    return dict(parse_qsl(query, keep_blank_values=True))


def changed_target(request: Request, original: Request, target: str) -> str:
    """Return path and query of a request. Parameters with the value of the original request keep their bytes.

    target: path and query of the original request.
    """
    if request is original:
        return target
    if not request.params:
        return request.path
    pieces = [(unquote_plus(piece.partition("=")[0]), piece) for piece in target.partition("?")[2].split("&")]
    same = {name for name, value in request.params.items() if original.params.get(name) == value}
    changed = {name: value for name, value in request.params.items() if name not in same}
    kept = [piece for name, piece in pieces if name in same]
    query = kept + [urlencode({name: value}, quote_via=quote, safe=",*") for name, value in changed.items()]
    return f"{request.path}?{'&'.join(query)}" if query else request.path
