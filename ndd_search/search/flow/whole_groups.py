"""Finds the members of a page's groups wherever they rank: members="all".

One more search finds the candidates for all hits of the page whose groups may have members beyond the examined hits.
It is the caller's own search, with its filters and the caller's rights, limited to documents that share stored keys
with one of the leaders. Those that share most keys come first. Each leader has to be among the candidates: if it is
not, no keys are stored for it, or the index has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.group_by_keys import full_values, values_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.page import Group, Page, slice_page
from ndd_search.core.paging.stream import Reader, Stream
from ndd_search.core.sketching.sketches import Lack, Sketch
from ndd_search.core.sketching.stored_sketch import KEYS, listed
from ndd_search.search.flow.choose_frequency_table import with_counted_table
from ndd_search.search.flow.fetch_hits import reader_of, sketches_in
from ndd_search.search.flow.plan import Plan, Step, ask_anew_if_learned, can_be_limited
from ndd_search.search.flow.round_trips import Asking, RoundTrips, trouble
from ndd_search.search.flow.search_state import State
from ndd_search.search.rest.read_answer import MALFORMED, Answer, Hit, drop_fields, envelope_after, identity_of
from ndd_search.search.rest.read_request import Request
from ndd_search.search.rest.stored_keys import shares_keys
from ndd_search.search.rest.wider_requests import widened

MOST_CANDIDATES = 100  # documents for each leader
_TOGETHER = 50  # leaders of one search, whose clauses an engine limits (1,024)

_UNSUITABLE = "this kind of search cannot be limited to the copies of a hit"
_FAILED = "the search for members failed"
_NO_KEYS = "no keys are stored: run ndd-search backfill"
_MORE = f"more than {MOST_CANDIDATES} documents for each hit share keys with the hits of the page"
_LISTED = "max_per may have listed a copy on an earlier page"

_FEW_KEYS = 4  # with fewer rare ones, common keys are used as well

_Found = tuple[list[Hit], dict[int, str]]


class AllMembers(Step):
    """Lists all members of the groups of a page, for members="all"."""

    def with_page(self, state: State, page: Page, plan: Plan, round_trips: RoundTrips) -> Asking[tuple[State, Page]]:
        """Return the page with all members of its groups, and the state with their documents.

        `info.members` of the page says how many were found beyond them, and which groups may have more.
        """
        state = with_counted_table(state, plan)
        stream = _examined(state, state.stream.earlier + page.info.examined)
        leaders: list[int] = []
        answers: list[Answer] | str = []
        if not page.info.exhausted:
            shown = [stream.index_of(group.rank) for group in page.groups if group.rank in state.documents]
            leaders = [index for index in stream.leader[shown].tolist() if len(stream.sketches[index])]
            answers = yield from _candidates(state, stream, leaders, plan, round_trips)
        try:
            longer, groups, reasons = _grouped(state, stream, leaders, answers, plan)
        except MALFORMED:
            answers = _FAILED
            longer, groups, reasons = _grouped(state, stream, leaders, answers, plan)
        if answers == _FAILED:
            state = replace(state, lasting=False)
        elif not isinstance(answers, str):
            state = replace(state, envelope=envelope_after(state.envelope or {}, answers))
        known = len(stream.hits)
        documents = dict(zip(longer.ranks[known:].tolist(), longer.hits[known:], strict=True))
        incomplete: dict[str, list[Any]] = {}
        for index, reason in reasons.items():
            incomplete.setdefault(reason, []).append(stream.hits[index].get("_id"))
        warnings = page.info.warnings
        if incomplete.keys() == {_NO_KEYS}:
            warnings = (*warnings, plan.settings.tell(plan.search.request.path, _NO_KEYS))
        told = [{"reason": reason, "ids": ids} for reason, ids in incomplete.items()]
        info = replace(page.info, members={"found": len(documents), "incomplete": told}, warnings=warnings)
        state = replace(state, documents={**state.documents, **documents})
        return state, replace(page, groups=groups, info=info)


def _candidates(
    state: State, stream: Stream, leaders: Sequence[int], plan: Plan, round_trips: RoundTrips
) -> Asking[list[Answer] | str]:
    """Return the answers with the documents that may be members, one for each part of the leaders; or why not."""
    if not leaders:
        return []
    if not can_be_limited(plan.search):
        return _UNSUITABLE
    requests = [_request([stream.sketches[index] for index in part], state, plan) for part in _parts(leaders)]
    answers = yield from round_trips.later(requests)
    if not trouble(answers, like=Answer(state.envelope)):
        return answers
    for one in answers:
        ask_anew_if_learned(plan, one.complaint)
    return _FAILED


def _grouped(
    state: State, stream: Stream, leaders: Sequence[int], answers: list[Answer] | str, plan: Plan
) -> tuple[Stream, tuple[Group, ...], dict[int, str]]:
    """Return the stream with further members, the groups of the page, and why leaders may have more members."""
    hits: list[Hit] = []
    sketches: list[Sketch | Lack] = []
    if isinstance(answers, str):
        reasons = dict.fromkeys(leaders, answers)
    else:
        hits, reasons = _read(answers, stream, leaders, plan)
        sketches = [one for answer in answers for one in sketches_in(answer, plan)]
    reader = reader_of(state, plan, sketches)
    for hit in hits:
        drop_fields(hit, plan.sketch_fields)
    longer, passed = members_of(stream, leaders, hits, reader, plan.options)
    reasons = {**dict.fromkeys(passed, _LISTED), **reasons}
    groups = groups_of_members(longer, plan.search.start, plan.search.size, reader, plan.options, reasons)
    return longer, groups, reasons


def _parts(leaders: Sequence[int]) -> list[Sequence[int]]:
    """Return the leaders of each search."""
    return [leaders[start : start + _TOGETHER] for start in range(0, len(leaders), _TOGETHER)]


def _most(leaders: Sequence[Any], plan: Plan) -> int:
    """Return how many candidates one search finds for these leaders."""
    return min(MOST_CANDIDATES * len(leaders), plan.window_limit)


def _request(leaders: Sequence[Sketch], state: State, plan: Plan) -> Request:
    """Return the caller's search, limited to documents that share keys with one of some leaders."""
    recipe, most = plan.settings.recipe, _most(leaders, plan)
    request = widened(plan.search, 0, most, plan.field, plan.reading, first=False)
    decision = Decision.of(plan.options.min_similarity, recipe, state.frequency_table)
    sharing = [shares_keys(_telling(one[:KEYS], state), KEYS, decision, plan.field, recipe) for one in leaders]
    body, asked = dict(request.body), plan.search.body.get("query") or {"match_all": {}}
    body.pop("explain", None)  # it would explain a query of ours
    any_of = [{"bool": one} for one in sharing]
    body["query"] = {"bool": {"should": any_of, "minimum_should_match": 1, "filter": [asked]}}
    if isinstance(highlight := body.get("highlight"), Mapping):  # else the keys may be highlighted
        body["highlight"] = {"highlight_query": asked, **highlight}
    if body.get("sort"):
        body["sort"] = [{"_score": "desc"}, *listed(body["sort"])]
    else:  # the candidates that share most keys, with the scores of the caller's own query
        weights = {"query_weight": 0, "rescore_query_weight": 1}
        body["rescore"] = {"window_size": most, "query": {"rescore_query": asked, **weights}}
    return replace(request, body=body)


def _telling(keys: Sketch, state: State) -> Sketch:
    """Return the keys that are not common in the index, all of them if few are left."""
    if state.frequency_table is None:
        return keys
    rare = np.delete(keys, state.frequency_table.find(keys)[0])
    return rare if len(rare) >= _FEW_KEYS else keys


def _examined(state: State, count: int) -> Stream:
    """Return the first hits of the stream, with their documents where these were fetched.

    A document that was fetched in a second phase lacks what the first one read for guards.
    """
    first = state.stream.only(range(count))
    hits = list(first.hits)
    for place, rank in enumerate(first.ranks.tolist()):
        if (document := state.documents.get(rank)) is not None:
            fields = {**hits[place].get("fields", {}), **document.get("fields", {})}
            hits[place] = {**document, "fields": fields} if fields else document
    return replace(first, hits=tuple(hits))


def _read(answers: Sequence[Answer], stream: Stream, leaders: Sequence[int], plan: Plan) -> _Found:
    """Return the candidates of all leaders, and why leaders may have more members, by their indexes."""
    plan.hide_sketches(answers)
    reasons: dict[int, str] = {}
    for part, answer in zip(_parts(leaders), answers, strict=True):
        found, is_full = set(map(identity_of, answer.hits)), len(answer.hits) >= _most(part, plan)
        for index in part:
            if identity_of(stream.hits[index]) not in found:
                reasons[index] = _NO_KEYS
            elif is_full:
                reasons[index] = _MORE
    hits = [hit for answer in answers for hit in answer.hits]
    if asked := listed(plan.search.body.get("sort")):
        by_score = any(one == "_score" or (isinstance(one, Mapping) and "_score" in one) for one in asked)
        for hit in hits:  # its score is the number of shared keys
            hit["_score"] = None
            hit["sort"] = hit["sort"][1 : 1 + len(asked)]
            if by_score:
                del hit["sort"]
    elif plan.search.body.get("indices_boost"):  # engines do not boost what they rescore
        for hit in hits:
            hit["_score"] = None
    return hits, reasons


def members_of(
    stream: Stream, leaders: Sequence[int], hits: Sequence[Any], reader: Reader, options: CollapseOptions
) -> tuple[Stream, set[int]]:
    """Return the stream with those of some later hits that belong to the groups of some leaders.

    leaders: their indexes. hits: in any order; a hit of the stream is ignored. Each joins the best-ranked leader that
    it resembles, as if it had been examined, and gets a rank beyond those fetched. reader: gives their sketches.
    A hit that `max_per` would put under a leader is left out: whether its value leads too many groups depends on the
    hits between, which are unknown.

    If hits of earlier pages lead as many groups of a hit's value as `max_per` allows, one of these pages, whose other
    hits are not in the stream, may have listed the hit under one of them.
    Such a hit is left out, too. The second result are the leaders of these hits.
    """
    whole = stream.extend(hits, len(hits), reader, replace(options, max_per=()))
    known = len(stream.hits)
    added = (known + np.flatnonzero(np.isin(whole.leader[known:], leaders))).tolist()
    before = (stream.hits[index] for index in range(stream.earlier) if stream.leader[index] == index)
    full = full_values(before, options.most_per, reader.value)
    listed = {
        index
        for index in added
        if any(
            (name, one) in full for name in options.most_per for one in values_of(whole.hits[index], name, reader.value)
        )
    }
    kept = [*range(known), *(index for index in added if index not in listed)]
    return whole.only(kept), {int(whole.leader[index]) for index in listed}


def groups_of_members(
    stream: Stream, start: int, size: int, reader: Reader, options: CollapseOptions, unsure: Collection[int]
) -> tuple[Group, ...]:
    """Return the groups of a page with the members that `members_of` has added to the stream.

    unsure: indexes of leaders that may have more members.
    """
    most = max(1, stream.fetched)
    page = slice_page(stream, start, size, reader, replace(options, window=most, max_window=most))
    return tuple(
        group._replace(whole=int(stream.leader[stream.index_of(group.rank)]) not in unsure) for group in page.groups
    )
