"""Finds the members of a page's groups wherever they rank: members="all".

One `_msearch` holds one search for each hit of the page whose group may have members beyond the examined hits. It is
the caller's own search, with its filters and the caller's rights, limited to documents that share stored keys with the
leader. Those that share most keys come first. The leader has to be among its own candidates: if it is not, no keys are
stored for it, or the index has changed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ndd_search.matching.decision import Decision
from ndd_search.middleware.extending import reader_of, sketches_of
from ndd_search.middleware.fetch_strategies import can_be_limited
from ndd_search.middleware.plan import Plan
from ndd_search.middleware.sampling import LISTED
from ndd_search.middleware.sending import RoundTrips, trouble
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import State
from ndd_search.middleware.tables import counted_in_list
from ndd_search.paging.members import groups_of_members, members_of
from ndd_search.paging.page import Page
from ndd_search.paging.stream import Stream
from ndd_search.rest.answers import Answer, Hit, after, drop_fields
from ndd_search.rest.request import Request, widened
from ndd_search.rest.stored_keys import shares_keys

KEYS = 8  # in a search for members
MOST_CANDIDATES = 100  # documents compared with one leader

_UNSUITABLE = "this kind of search cannot be limited to the copies of a hit"
_FAILED = "the search for members failed"
_NO_KEYS = "no keys are stored for it: run ndd-search backfill --keys 8"
_MORE = f"more than {MOST_CANDIDATES} documents share keys with it"

_Found = tuple[list[Hit], dict[int, str]]


def with_whole_groups(
    state: State, page: Page, plan: Plan, settings: Settings, round_trips: RoundTrips
) -> Generator[Request, Answer, tuple[State, Page]]:
    """Return the page with all members of its groups, and the state with their documents.

    `info.members` of the page says how many were found beyond the examined hits, and which groups may have more.
    """
    stream = _examined(state, page.info.examined)
    shown = [stream.index_of(group.rank) for group in page.groups if group.rank in state.documents]
    leaders = [] if page.info.exhausted else [int(stream.leader[index]) for index in shown]
    leaders = [index for index in leaders if len(stream.sketches[index])]
    state = comparing(state, plan, settings)
    reasons: dict[int, str] = {}
    hits: list[Hit] = []
    if leaders and not can_be_limited(plan.search):
        reasons = dict.fromkeys(leaders, _UNSUITABLE)
    elif leaders:
        requests = [_request(stream, index, state, plan, settings) for index in leaders]
        answers = yield from round_trips.later(requests)
        if trouble(answers, like=Answer(state.envelope)):
            reasons, state = dict.fromkeys(leaders, _FAILED), replace(state, lasting=False)
        else:
            hits, reasons = _read(answers, stream, leaders, plan)
            state = replace(state, envelope=after(state.envelope or {}, answers))
    sketches = sketches_of(hits, settings)
    for hit in hits:
        drop_fields(hit, plan.sketch_fields)
    start, size, known = plan.search.start, plan.search.size, len(stream.hits)
    reader = reader_of(state, settings, sketches)
    longer = members_of(stream, hits, reader, plan.options)
    groups = groups_of_members(longer, start, size, reader, plan.options, reasons)
    added = dict(zip(longer.ranks[known:].tolist(), longer.hits[known:], strict=True))
    facts = {
        "found": len(added),
        "incomplete": [{"_id": stream.hits[index].get("_id"), "reason": reason} for index, reason in reasons.items()],
    }
    info = replace(page.info, members=facts)
    return replace(state, documents={**state.documents, **added}), replace(page, groups=groups, info=info)


def _examined(state: State, count: int) -> Stream:
    """Return the first hits of the stream, with their documents where these were fetched."""
    stream = state.stream
    hits = zip(stream.ranks[:count].tolist(), stream.hits[:count], strict=True)
    return replace(
        stream,
        hits=tuple([state.documents.get(rank, hit) for rank, hit in hits]),
        sketches=stream.sketches[:count],
        lacking=stream.lacking[:count],
        ranks=stream.ranks[:count],
        leader=stream.leader[:count],
        similarity=stream.similarity[:count],
    )


def comparing(state: State, plan: Plan, settings: Settings) -> State:
    """Return the state with its frequency table, which a cached state counts only when hits are added."""
    if state.table != LISTED or state.frequency_table is not None:
        return state
    return state.comparing_with(counted_in_list(state.stream, (), plan, settings))


def _request(stream: Stream, index: int, state: State, plan: Plan, settings: Settings) -> Request:
    """Return the caller's search, limited to documents that share keys with a leader."""
    request = widened(plan.search, 0, MOST_CANDIDATES, plan.field, plan.reading, first=False)
    decision = Decision.of(plan.options.min_similarity, settings.recipe, state.frequency_table)
    sharing = shares_keys(stream.sketches[index], KEYS, decision, plan.field, settings.recipe)
    body, asked = dict(request.body), plan.search.body.get("query")
    if asked:
        sharing["filter"] = [*sharing["filter"], asked]
    body["query"] = {"bool": sharing}
    if body.get("sort"):
        body["sort"] = [{"_score": "desc"}, *_as_list(body["sort"])]
    elif asked:  # the candidates that share most keys, with the scores of the caller's own query
        weights = {"query_weight": 0, "rescore_query_weight": 1}
        body["rescore"] = {"window_size": MOST_CANDIDATES, "query": {"rescore_query": asked, **weights}}
    return replace(request, body=body)


def _read(answers: Sequence[Answer], stream: Stream, leaders: Sequence[int], plan: Plan) -> _Found:
    """Return the candidates of all leaders, and why leaders may have more members, by their indexes."""
    plan.hide_sketches(answers)
    reasons: dict[int, str] = {}
    for index, answer in zip(leaders, answers, strict=True):
        if _name(stream.hits[index]) not in map(_name, answer.hits):
            reasons[index] = _NO_KEYS
        elif len(answer.hits) >= MOST_CANDIDATES:
            reasons[index] = _MORE
    hits = [hit for answer in answers for hit in answer.hits]
    if asked := _as_list(plan.search.body.get("sort") or []):
        by_score = any(one == "_score" or (isinstance(one, Mapping) and "_score" in one) for one in asked)
        for hit in hits:  # its score is the number of shared keys
            hit["_score"] = None
            hit["sort"] = hit["sort"][1:]
            if by_score:
                del hit["sort"]
    return hits, reasons


def _name(hit: Hit) -> tuple[Any, ...]:
    return hit["_index"], hit.get("_id"), hit.get("_routing")


def _as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]
