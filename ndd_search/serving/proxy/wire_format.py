"""Searches between the wire and the middleware: a caller's bytes become a Request, an Answer becomes bytes again.

JSON is read and written with numbers as they are: what a Python float cannot hold exactly keeps its text.
"""

from __future__ import annotations

import gzip
import json
import re
import secrets
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from numbers import Number
from typing import Any

from ndd_search.core.exact_numbers import exact_float
from ndd_search.core.sketching.stored_sketch import StoredSketches
from ndd_search.errors import importing
from ndd_search.search.flow.msearch import unique
from ndd_search.search.rest.read_answer import Answer, parsed
from ndd_search.search.rest.read_request import Request, named_pieces, params_of
from ndd_search.serving.proxy.http_exchange import Exchange, Header, Refused, end_to_end

with importing("orjson", "the proxy or the search page", "orjson", "proxy"):
    import orjson

READ = ("", "gzip", "x-gzip")  # content encodings
_PIECE = 2**16  # bytes that are unpacked at once
_WORTH_PACKING = 1400  # bytes: less fits in one packet
_GZIP = zlib.MAX_WBITS | 16  # the format that zlib reads
_OF_THE_BODY = {b"content-length", b"content-encoding", b"content-type"}
_NOT_FOR_US = _OF_THE_BODY | {b"accept-encoding", b"accept"}
_OF_EVERY_PAGE = (b"content-type", b"x-elastic-product", b"x-opensearch-version")
_MOST_KNOWN = 100  # values of `accept` whose headers are kept
_VENDOR = re.compile(r"application/vnd\.elasticsearch\+json(?:\s*;\s*compatible-with=\d+)?")
_MARK = secrets.token_hex(8)  # so that no text of a document is taken for a number
_MARKED = re.compile(f'"{_MARK}([^"]*)"')


@dataclass(frozen=True)
class Given:
    """A search as the caller sent it.

    request:  what the middleware reads. target: path and query, without our own parameters. kind: media type of its
              body, "" for one without.
    pretty:   whether the caller wants an answer with line breaks.
    """

    request: Request
    target: str
    kind: str
    pretty: bool


@dataclass(frozen=True)
class Raw:
    """An answer of the engine as it came, `raw` of an Answer. headers: end to end."""

    status: int
    headers: list[Header]
    content: bytes


def plain_path(path: str) -> str:
    """Return a path without the slashes at its end, which engines ignore, too. They refuse other empty segments."""
    return path.rstrip("/")


def versioned_type(accept: str) -> str:
    """Return the media type of Elasticsearch in `accept`, "" if it names another or several, which is read as none."""
    return accept.strip() if _VENDOR.fullmatch(accept.strip()) else ""


def given_search(exchange: Exchange, body: bytes, query: str, most: int) -> Given | None:
    """Return the search in a request, None if it is left alone because only the engine can read it.

    body: as it came. query: the query string without our parameter. most: bytes of the body without its encoding.
    """
    names = [name for name, _ in named_pieces(query)]
    if ";" in query or len(set(names)) < len(names):  # engines differ in how they read these
        return None
    params = params_of(query)
    path = plain_path(exchange.path)
    kind = exchange.header(b"content-type")
    if not body and "source" in params:
        kind, text = params.pop("source_content_type", ""), params.pop("source")
        body = text.encode()
    parsed: Any = None
    if body:
        plain = unpacked(body, exchange.encoding, most)
        if plain is None or "json" not in kind or "," in kind:  # engines refuse two types
            return None
        lines = path.endswith("_msearch")
        parsed = plain if lines else _json(plain)
        if parsed is None or (lines and not plain.endswith(b"\n")):  # the engine refuses a last line without an end
            return None
    headers = {name.decode(): exchange.header(name) for name, _ in exchange.headers if name not in _NOT_FOR_US}
    accept = exchange.header(b"accept")
    given = any(name == b"accept" for name, _ in exchange.headers)  # Elasticsearch refuses an empty one
    if given and not ("json" not in accept and "*/*" in accept):  # "anything" means JSON
        headers["accept"] = accept
    request = Request(exchange.method, path, params, headers, parsed)
    target = f"{exchange.path}?{query}" if query else exchange.path
    return Given(request, target, exchange.header(b"content-type"), params.get("pretty", "false") != "false")


def sent_body(request: Request) -> bytes | None:
    """Return the body of a request of the middleware."""
    if request.body is None or isinstance(request.body, bytes):
        return request.body
    if isinstance(request.body, str):
        return encoded(request.body)
    if isinstance(request.body, list):
        return b"".join((encoded(line) if isinstance(line, str) else dumps(line)) + b"\n" for line in request.body)
    return dumps(request.body)


def read_answer(status: int, headers: list[Header], content: bytes, stored: StoredSketches | None = None) -> Answer:
    """Parse an answer. Its body is text if it is not JSON, so that the middleware does not take it for hits.

    stored: the sketches that are cut out of the hits (see `rest.read_answer`), None for none.
    """
    kept = end_to_end(headers)
    try:
        body, cut = (loads(content), ()) if stored is None else parsed(content, loads, stored)
    except (ValueError, RecursionError):
        body, cut = content.decode("latin-1"), ()
    return Answer(body, status, Raw(status, kept, content), cut)


class PageHeaders:
    """The headers of pages. For a page out of the cache they are those that the engine gave for the same `accept`."""

    def __init__(self) -> None:
        self._known: dict[str, list[Header]] = {}

    def of(self, raw: Raw | None, accept: str) -> list[Header]:
        """Return the headers of a page. raw: the first answer of the engine, None for a page out of the cache."""
        if raw is not None:
            if raw.status == HTTPStatus.OK and (accept in self._known or len(self._known) < _MOST_KNOWN):
                self._known[accept] = [header for header in raw.headers if header[0] in _OF_EVERY_PAGE]
            return [header for header in raw.headers if header[0] not in (b"content-length", b"content-encoding")]
        if accept in self._known:
            return self._known[accept]
        vendor = versioned_type(accept)
        kind = vendor.replace(" ", "") or "application/json"
        product = [(b"x-elastic-product", b"Elasticsearch")] if vendor else []
        return [(b"content-type", kind.encode("latin-1")), *product]


def _json(text: bytes) -> Any:
    """Parse a JSON object, None for anything else, and for an object that names a key twice: the engine refuses it."""
    try:
        parsed = loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


@dataclass(frozen=True)
class ExactNumber:
    """A number by its text.

    It is no float, as a WrittenNumber is: whatever else writes JSON would round one in silence, and refuses this.
    """

    text: str

    def __str__(self) -> str:
        return self.text


Number.register(ExactNumber)


def loads(text: bytes | str, **hooks: Any) -> Any:
    """Parse JSON. Raises ValueError, or RecursionError for JSON that nests too deep."""
    return json.loads(text, parse_float=_number, parse_constant=ExactNumber, **hooks)


def dumps(value: Any, indent: int | None = None) -> bytes:
    """Return JSON in UTF-8. A lone surrogate, which UTF-8 cannot hold, is escaped, as it was when it was read.

    orjson writes a page of 60 kB in a fortieth of the time. It refuses lone surrogates, numbers beyond 64 bits and deep
    nesting; Python's own writer takes these.
    """
    if indent is None:
        try:
            return orjson.dumps(value, _fragment, orjson.OPT_PASSTHROUGH_DATACLASS)
        except TypeError:
            pass
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=False, separators=separators, indent=indent, default=_marked)
    if _MARK in text:
        text = _MARKED.sub(r"\1", text)
    return encoded(text)


def encoded(text: str) -> bytes:
    """Encode JSON text, with lone surrogates escaped."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _number(text: str) -> float | ExactNumber:
    number = exact_float(text)
    return ExactNumber(text) if number is None else number


def _fragment(value: Any) -> orjson.Fragment:
    if isinstance(value, ExactNumber):
        return orjson.Fragment(value.text)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _marked(value: Any) -> str:
    if isinstance(value, ExactNumber):
        return _MARK + value.text
    raise TypeError(f"{type(value).__name__} is not JSON")


def unpacked(body: bytes, encoding: str, most: int) -> bytes | None:
    """Return a body without its content encoding, None if it cannot be read or is longer than `most` bytes."""
    if encoding not in READ:
        return None
    try:
        plain = gzip.GzipFile(fileobj=BytesIO(body)).read(most + 1) if encoding else body
    except (OSError, EOFError, zlib.error):
        return None
    return plain if len(plain) <= most else None


async def unpacking(parts: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield a body without its content encoding, one of READ, in pieces.

    Raises Refused for a damaged one; the engine then gets no complete request.
    """
    if not encoding:
        async for part in parts:
            yield part
        return
    unpacker = None
    async for part in parts:
        rest = part
        while rest:
            if unpacker is None or unpacker.eof:  # a body may have several members, one after the other
                unpacker = zlib.decompressobj(_GZIP)
            try:
                piece = unpacker.decompress(rest, _PIECE)
                yield piece
                while len(piece) == _PIECE and not unpacker.unconsumed_tail:
                    piece = unpacker.decompress(b"", _PIECE)
                    yield piece
            except zlib.error as error:
                what = f"the compressed body is damaged ({error}): send it again"
                raise Refused(HTTPStatus.BAD_REQUEST, what) from None
            rest = unpacker.unconsumed_tail or unpacker.unused_data
    if unpacker is not None and not unpacker.eof:
        raise Refused(HTTPStatus.BAD_REQUEST, "the compressed body does not end where it should: send it again")


def packed(headers: list[Header], content: bytes, accepted: str) -> tuple[list[Header], bytes]:
    """Return headers and body of our own answer, with gzip for a caller who accepts it."""
    if len(content) < _WORTH_PACKING or not re.search(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", accepted):
        return headers, content
    return [*headers, (b"content-encoding", b"gzip")], gzip.compress(content, 1, mtime=0)
