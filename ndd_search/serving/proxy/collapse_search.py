"""Answers searches with pages without near-duplicates, by the options in their URLs and bodies."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import replace
from http import HTTPStatus
from typing import Any, get_args
from urllib.parse import unquote_plus

from ndd_search.core.options import OF_ONE_SEARCH, Mode
from ndd_search.core.presets import OPTIONS
from ndd_search.core.setting_values import check_one_of, read_named
from ndd_search.search.flow.client_settings import options, options_and_others
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request, named_pieces, option_in, stripped
from ndd_search.serving.proxy.http_exchange import Exchange, Gone, Refused
from ndd_search.serving.proxy.pass_through import PassThrough
from ndd_search.serving.proxy.upstream import ClientResponse, Unreachable, Upstream, sent
from ndd_search.serving.proxy.wire_format import (
    Given,
    PageHeaders,
    Raw,
    dumps,
    given_search,
    packed,
    versioned_type,
)

log = logging.getLogger("ndd_search")

_SWITCH = {"off": False, "false": False, "on": True, "true": True, "": True}


class CollapsedSearches:
    """driver: runs the conversations. pass_through: sends searches that are left alone. most: bytes that are parsed.

    seconds: that the engine may take, None for no limit.
    """

    def __init__(
        self, driver: Driver, upstream: Upstream, pass_through: PassThrough, most: int, seconds: float | None
    ) -> None:
        self._driver, self._upstream, self._pass_through = driver, upstream, pass_through
        self._most, self._seconds = most, seconds
        self._page_headers = PageHeaders()

    async def search(self, exchange: Exchange) -> None:
        """Answer a search with a page without near-duplicates, or pass it on if it is to be left alone."""
        try:
            query, asked, is_off = url_options(exchange.query)
        except ValueError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
        body = await exchange.read(self._most)
        given = given_search(exchange, body, query, self._most) if body is not None else None
        if given is None or (is_off and not wants_options(given.request.body)):
            if body is None and not is_off:
                exchange.note(f"near-duplicates may be shown: the body is longer than {self._most:,} bytes")
            elif asked and not is_off:
                exchange.note("near-duplicates may be shown: the search cannot be read, nor the options of its URL")
            await self._pass_through.pass_on(exchange, query)
            return
        if asked is not None and not is_off and isinstance(given.request.body, Mapping | None):
            given, asked = replace(given, request=with_options(given.request, asked)), None
        vendor = "json" not in exchange.header(b"content-type") and versioned_type(
            given.request.headers.get("accept", "")
        )
        if vendor or option_in(given.request, "cursor"):  # which the two engines take in two ways
            family = self._driver.settings.family = await self._upstream.family(given.request.headers)
            if vendor and family == "opensearch":  # it reads over this type in `accept`, and takes no body of it
                plain = {**given.request.headers, "accept": "application/json"}
                given = replace(given, request=replace(given.request, headers=plain))
        await exchange.while_connected(self._collapse(exchange, given, body, asked, is_off))

    async def _collapse(
        self, exchange: Exchange, given: Given, body: bytes | None, asked: Mapping[str, Any] | None, is_off: bool
    ) -> None:
        """Run the conversation of a search, and send its page; a search that is left alone streams as it is.

        asked: options in the URL of an `_msearch`, for each of its searches.
        """
        left_alone: list[ClientResponse] = []
        async with AsyncExitStack() as stack:

            async def send(request: Request) -> Answer:
                if request is not given.request:
                    return await sent(self._upstream, request, given.kind)
                repeatable = "scroll" not in given.target  # as in `sent`
                response = await self._upstream.request(
                    exchange.method, given.target, exchange.headers, body, repeatable=repeatable, seconds=None
                )
                left_alone.append(await stack.enter_async_context(response))
                return Answer(None, response.status)

            with _scope(asked, is_off):
                answer = await self._handled(given, send)
            if left_alone:
                await self._pass_through.relay(exchange, left_alone[-1], writes=False)
                return
        raw = answer.raw if isinstance(answer.raw, Raw) else None
        if raw is not None and not isinstance(answer.body, dict):  # not the answer of an engine
            headers = [header for header in raw.headers if header[0] != b"content-length"]
            await exchange.answer(raw.status, headers, raw.content)
            return
        headers = self._page_headers.of(raw, exchange.header(b"accept"))
        text = dumps(answer.body, indent=2) + b"\n" if given.pretty else dumps(answer.body)
        await exchange.answer(answer.status, *packed(headers, text, exchange.header(b"accept-encoding")))

    async def _handled(self, given: Given, send: Any) -> Answer:
        """Return the answer to a search. A fault of ours costs the caller no more than near-duplicates."""
        request = given.request
        try:
            return await self._driver.handle_async(request, send, timeout=self._seconds)
        except (Unreachable, Gone, Refused):
            raise
        except Exception as error:
            if wants_options(request.body) and isinstance(error, TypeError | ValueError):
                raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
            log.warning("%s: near-duplicates may be shown: %r", request.path, error, exc_info=True)
            answer: Answer = await send(stripped(request))
            return answer


def _scope(asked: Mapping[str, Any] | None, is_off: bool) -> AbstractContextManager[None]:
    """Return the block of options around a search. Raises Refused for options that an `_msearch` cannot have."""
    if is_off:
        return options(enabled=False)
    try:
        options_and_others(None, asked or {})
    except (TypeError, ValueError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
    return nullcontext() if asked is None else options(**{"enabled": ["unranked"], **asked})


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


def wants_options(body: Any) -> bool:
    """Return whether a body holds our key "ndd", or may hold it in one of its lines."""
    return b'"ndd"' in body if isinstance(body, bytes) else isinstance(body, Mapping) and "ndd" in body
