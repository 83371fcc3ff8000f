"""Iterates over the pages of a search with a cursor, and says where documents are in the pages of a search, and why."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping, Sequence
from contextlib import suppress
from inspect import isawaitable
from typing import Any

from ndd_search.core.paging.cursor import cursor_of
from ndd_search.errors import CursorUnusable, IndexUnusable
from ndd_search.search.clients.wrap import settings_in
from ndd_search.search.flow.cursor_search import NO_POINT
from ndd_search.search.flow.explain_documents import explained_ids
from ndd_search.search.rest.info_and_copies import info
from ndd_search.search.rest.read_request import options_in


def pages(
    client: Any, *, index: Any = None, body: Mapping[str, Any] | None = None, cursor: str | None = None, **params: Any
) -> Pages:
    """Return the pages of a search as an iterable: with `for` on a client, with `async for` on an asynchronous one.

    client: wrapped by `ndd_search.wrap`. index, params: as in its `search`.
    body:   of the search. Its "size" is that of the pages, its "ndd" holds options.
    cursor: `answer["ndd"]["cursor"]` of an earlier page, to continue after it; None to begin.
    Each page is an answer of `client.search`. All pages are of one point in time: no document is on two pages, none is
    left out, whatever is written meanwhile. To end early, close the iterator; that frees the point in time.
    Raises TypeError for a client that is not wrapped and for an "ndd" that holds no options, CursorUnusable for a
    search that cannot have a cursor, CursorExpired if a page is asked for too late.
    """
    settings_in(client)
    if (body or {}).get("ndd") is False:
        raise CursorUnusable("the search", 'its "ndd" is false, so no page is made of it', "leave it out")
    return Pages(client, {"index": index, **params}, dict(body or {}), cursor)


class Pages:
    """The pages of one search (see `pages`). Each iteration begins at the same place."""

    def __init__(self, client: Any, params: Mapping[str, Any], body: dict[str, Any], cursor: str | None) -> None:
        self._client, self._params, self._body, self._cursor = client, params, body, cursor

    def __iter__(self) -> Generator[Any, None, None]:
        left: str | bool | None = True if self._cursor is None else self._cursor
        latest = self._cursor
        try:
            while left is not None:
                answer = self._client.search(**self._search(left))
                if isawaitable(answer):
                    if hasattr(answer, "close"):
                        answer.close()  # it would warn that nobody awaits it
                    raise TypeError("the client is asynchronous: async for page in pages(...)")
                left = _next(answer)
                latest = left or latest
                yield answer
        finally:
            if latest is not None:
                with suppress(Exception):
                    self._close(latest)

    async def __aiter__(self) -> AsyncGenerator[Any, None]:
        left: str | bool | None = True if self._cursor is None else self._cursor
        latest = self._cursor
        try:
            while left is not None:
                answer = await self._client.search(**self._search(left))
                left = _next(answer)
                latest = left or latest
                yield answer
        finally:
            if latest is not None:
                with suppress(Exception):
                    await self._close(latest)

    def explain(self, ids: str | Sequence[str]) -> Any:
        """Return where documents are in these pages, as a list of dicts; from an asynchronous client, to await.

        ids: 1..100. The page of the search is explained that its body asks for ("from", "size").
        Each dict has `_id`, `status`, `description` (a sentence), and what is known of `_index`, `page`, `place` (in
        the list that all pages show together, from 1), `rank` (in the engine's list, from 1), `duplicate_of`, and the
        figures of the comparison: `compared_with`, `similarity`, `standard_error`, `compared`, `bar`, `shared_values`,
        `guards`.
        status: "shown", "hidden" (listed under another), "beyond_window" (it matches, and ranks below the examined
        hits), "not_matched", "not_found", or "unknown" if the request for it failed or this kind of search cannot be
        limited.
        Raises TypeError for ids that are no strings and for an "ndd" without options, ValueError for more than 100
        ids, IndexUnusable if the search is left alone, so that no page is made.
        """
        asked = {**self._body, "ndd": {**options_in(self._body), "explain": list(explained_ids(ids))}}
        answer, index = self._client.search(**self._params, body=asked), self._params["index"]
        return _awaited(answer, index) if isawaitable(answer) else _entries(answer, index)

    def _search(self, cursor: str | bool) -> dict[str, Any]:
        return {**self._params, "body": {**self._body, "ndd": {**options_in(self._body), "cursor": cursor}}}

    def _close(self, token: str) -> Any:
        """Close the point in time of a cursor. Returns what the client's method returns, perhaps to be awaited."""
        settings = settings_in(self._client)
        pit = cursor_of(token, settings.cursor_key).pit
        if settings.family == "elasticsearch":
            return self._client.close_point_in_time(id=pit)
        return self._client.delete_pit(body={"pit_id": [pit]})


def _next(answer: Any) -> str | None:
    """Return the cursor in an answer, None if there is no next page."""
    try:
        cursor: str | None = answer["ndd"]["cursor"]
    except KeyError:
        remedy = "do not remove ndd.cursor by filter_path, nor switch ndd_search.options off"
        raise CursorUnusable("the answer to a search", "it holds no cursor", remedy) from None
    if cursor is None and answer["ndd"]["degraded"] == NO_POINT:
        problem = "the engine opens no further point in time"
        raise CursorUnusable("the search", problem, "try later, or raise search.max_open_pit_context")
    return cursor


async def _awaited(answer: Awaitable[Any], index: Any) -> list[dict[str, Any]]:
    return _entries(await answer, index)


def _entries(answer: Any, index: Any) -> list[dict[str, Any]]:
    told = info(answer)
    if "explain" not in told.block:
        raise _left_alone(index, told.reason)
    return told.block["explain"]


def _left_alone(index: Any, reason: str) -> IndexUnusable:
    return IndexUnusable(index or "_all", f"no page is made: {reason}", "see docs/wrapping.md, what is left alone")
