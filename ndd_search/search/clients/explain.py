"""Asks where documents are in the pages of a search, and why."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from inspect import isawaitable
from typing import Any

from ndd_search.errors import IndexUnusable
from ndd_search.search.clients.wrap import settings_in
from ndd_search.search.flow.explain import explained_ids
from ndd_search.search.rest.reading import info
from ndd_search.search.rest.request import options_in


def explain(
    client: Any, ids: str | Sequence[str], *, index: Any = None, body: Mapping[str, Any] | None = None, **params: Any
) -> Any:
    """Return where documents are in the pages of a search, as a list of dicts; from an asynchronous client, to await.

    client: wrapped by `ndd_search.wrap`. ids: 1..100. index, params: as in its `search`.
    body:   of the search whose page is explained, with its "from", "size", and options in "ndd".
    Each dict has `_id`, `status`, `description` (a sentence), and what is known of `_index`, `page`, `place` (in the
    list that all pages show together, from 1), `rank` (in the engine's list, from 1), `duplicate_of`, and the figures
    of the comparison: `compared_with`, `similarity`, `standard_error`, `compared`, `bar`, `shared_values`, `guards`.
    status: "shown", "hidden" (listed under another), "beyond_window" (it matches, and ranks below the examined hits),
    "not_matched", "not_found", or "unknown" if the request for it failed or this kind of search cannot be limited.
    Raises TypeError for a client that is not wrapped, for ids that are no strings and for an "ndd" without options,
    ValueError for more than 100 ids, IndexUnusable if the search is left alone, so that no page is made.
    """
    settings_in(client)
    given = body or {}
    if given.get("ndd") is False:
        raise _left_alone(index, 'the "ndd" of the search is false')
    asked = {**given, "ndd": {**options_in(given), "explain": list(explained_ids(ids))}}
    answer = client.search(**params, index=index, body=asked)
    return _awaited(answer, index) if isawaitable(answer) else _entries(answer, index)


async def _awaited(answer: Awaitable[Any], index: Any) -> list[dict[str, Any]]:
    return _entries(await answer, index)


def _entries(answer: Any, index: Any) -> list[dict[str, Any]]:
    told = info(answer)
    if "explain" not in told.block:
        raise _left_alone(index, told.reason)
    return told.block["explain"]


def _left_alone(index: Any, reason: str) -> IndexUnusable:
    return IndexUnusable(index or "_all", f"no page is made: {reason}", "see docs/wrapping.md, what is left alone")
