"""Says where documents are in the pages of a search, and why: `"ndd": {"explain": ["42"]}`.

A document that is not among the examined hits takes one `_msearch` for all of them: the caller's own search and a
search for the documents alone, both limited to their ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ndd_search.core.document_fields import text_of
from ndd_search.core.paging.explain_hit import explain
from ndd_search.core.paging.page import Group, Page, slice_page
from ndd_search.core.paging.stream import Stream
from ndd_search.search.flow.choose_frequency_table import with_counted_table
from ndd_search.search.flow.fetch_hits import reader_of, sketches_in
from ndd_search.search.flow.plan import Plan, Step, can_be_limited
from ndd_search.search.flow.round_trips import FOR_EACH, Asking, RoundTrips, trouble
from ndd_search.search.flow.search_state import State
from ndd_search.search.rest.read_answer import MALFORMED, Answer, Hit, HitReader, identity_of
from ndd_search.search.rest.wider_requests import widened

MOST_IDS = 100  # in one request
_SAME_ID = 5  # most indexes of one search in which the same id is looked for
_NOT_FOUND = "there is no document with this id, or the caller may not read it"
_NOT_MATCHED = "the search does not match it"
_UNSUITABLE = "it is not among the examined hits; this kind of search cannot be limited to one document"
_FAILED = "it is not among the examined hits; the request for it failed"

Entry = dict[str, Any]


def explained_ids(given: Any) -> tuple[str, ...]:
    """Return the ids that "explain" names. Raises TypeError or ValueError for anything but a list of 1..100 ids."""
    if given is None or given is False:
        return ()
    ids = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not all(isinstance(one, str) for one in ids):
        raise TypeError(f'"explain" must be a list of ids of documents, as strings, got {given!r}')
    if not 1 <= len(ids) <= MOST_IDS:
        raise ValueError(f'"explain" takes 1..{MOST_IDS} ids, got {len(ids)}')
    return tuple(dict.fromkeys(ids))


class Explanations(Step):
    """Says where documents are. ids: of these documents, which are looked for among the hits."""

    is_remembered = False
    needs_ids = True

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = ids

    def with_page(self, state: State, page: Page, plan: Plan, round_trips: RoundTrips) -> Asking[tuple[State, Page]]:
        """Return the page with an entry for each id: several if documents of several indexes have it."""
        examined, counted = {hit.get("_id") for hit in state.stream.hits}, with_counted_table(state, plan)
        absent = [id for id in self._ids if id not in examined]
        answers = (yield from _look_up(absent, plan, round_trips)) if absent else []
        if trouble(answers, like=Answer(state.envelope)):
            answers = []
        try:
            found = _entries(self._ids, absent, answers, counted, page, plan)
        except MALFORMED:
            found = _entries(self._ids, absent, [], counted, page, plan)
        return state, replace(page, info=replace(page.info, explain=found))


def _entries(
    ids: Sequence[str], absent: Sequence[str], answers: Sequence[Answer], state: State, page: Page, plan: Plan,
) -> list[Entry]:  # fmt: skip
    """Return the entries of ids. answers: to the requests for the ids that are absent, none if they failed."""
    stream = state.stream
    matching, others = _read(absent, answers, plan)
    reader = reader_of(state, plan, sketches_in(answers[0], plan) if matching else ())
    longer = stream.extend(matching, len(matching), reader, plan.options)
    is_whole = "_source" not in plan.search.body

    def text(hit: Hit) -> str | None:
        fields = plan.settings.indexes.text_fields_of(hit.get("_index", "")) if is_whole else ()
        return text_of(hit.get("_source") or {}, fields)

    places = _Places(page, stream, longer, replace(reader, text=text), plan, state.before)
    again = {index for index in range(stream.earlier) if stream.leader[index] != index}  # stand for other hits
    wanted = [index for index, hit in enumerate(longer.hits) if hit.get("_id") in ids and index not in again]
    order = {id: at for at, id in enumerate(ids)}
    return sorted([*map(places.entry, wanted), *others], key=lambda one: order[one["_id"]])


def _look_up(ids: Sequence[str], plan: Plan, round_trips: RoundTrips) -> Asking[list[Answer]]:
    """Return the answers to the search limited to some ids, if it can be limited, and to a search for these ids."""
    names = {"ids": {"values": list(ids)}}
    request = widened(plan.search, 0, _SAME_ID * len(ids), plan.field, plan.reading, first=False)
    request = replace(request, params={name: value for name, value in request.params.items() if name in FOR_EACH})
    body = dict(request.body)
    asked = [body["query"]] if body.get("query") else []
    limited = {**body, "query": {"bool": {"must": asked, "filter": [names]}}}
    alone = {"query": names, "size": body["size"], "_source": False}
    bodies = [limited, alone] if can_be_limited(plan.search) else [alone]
    return (yield from round_trips.later([replace(request, body=one) for one in bodies]))


def _read(ids: Sequence[str], answers: Sequence[Answer], plan: Plan) -> tuple[list[Hit], list[Entry]]:
    """Return the hits of the search that have some ids, and the entries of those that are no hits."""
    if not answers:
        return [], [_entry({"_id": id}, "unknown", _FAILED) for id in ids]
    fits = len(answers) > 1
    plan.hide_sketches(answers)
    matching = answers[0].hits if fits else []
    matched = {(hit["_index"], hit["_id"]) for hit in matching}
    rest = [hit for hit in answers[-1].hits if (hit["_index"], hit["_id"]) not in matched]
    found = {hit["_id"] for hit in answers[-1].hits} | {id for _, id in matched}
    status, why = ("not_matched", _NOT_MATCHED) if fits else ("unknown", _UNSUITABLE)
    entries = [_entry(hit, status, why) for hit in rest]
    return matching, [*entries, *(_entry({"_id": id}, "not_found", _NOT_FOUND) for id in ids if id not in found)]


class _Places:
    """The places of hits in the list that all pages show together.

    stream: the examined hits. longer: the same with further hits. page: of the answer. before: see State.
    """

    def __init__(self, page: Page, stream: Stream, longer: Stream, reader: HitReader, plan: Plan, before: int) -> None:
        self._longer, self._reader, self._plan = longer, reader, plan
        self._examined = len(stream.hits)
        options = plan.options if plan.options.mode != "drop" else replace(plan.options, mode="group")
        limits = plan.search.limits
        self._most = limits.shown if limits.total is None else limits.total
        whole = slice_page(stream, 0, self._examined if self._most is None else self._most, reader, options)
        self._of: dict[tuple[Any, ...], tuple[int, Group]] = {}
        start = plan.search.start
        here = range(start + 1, start + len(page.groups) + 1)  # where a page of a cursor may have chosen otherwise
        for first, groups in ((0, whole.groups), (start, page.groups)):
            for place, group in enumerate(groups, first + 1):
                if groups is whole.groups and place in here:
                    continue
                for hit in (*(copy.hit for copy in group.duplicates), group.hit):
                    self._of[identity_of(hit)] = place, group
        self._earlier, self._before = stream.earlier, before

    def entry(self, index: int) -> Entry:
        """Return the entry of a hit of the longer stream."""
        hit, rank = self._longer.hits[index], int(self._longer.ranks[index])
        place, group = self._of.get(identity_of(hit), (0, None))
        if group is None:
            either = "an earlier page has dealt with it, or " if self._earlier else ""
            beyond = "is for a later page" if self._most is None else f"ranks below the {self._most:,} that it asks for"
            if index >= self._examined:
                beyond = f"ranks below the {self._examined - self._earlier:,} hits examined for this page"
            return self._judged(hit, "beyond_window", rank, f"the search matches it, but {either}it {beyond}")
        where, at = self._at(place)
        if index < self._examined and not self._earlier:
            at["rank"] = rank + 1
        if identity_of(group.hit) == identity_of(hit):
            return self._judged(hit, "shown", rank, f"shown {where}") | at
        above = f"hidden: listed under {group.hit.get('_id')!r} {where}"
        if self._longer.leader[index] == index:  # `keep` prefers another copy
            above += ", which keep prefers"
            ranked = zip(self._longer.ranks.tolist(), self._longer.hits, strict=True)
            rank = next((at for at, other in ranked if identity_of(other) == identity_of(group.hit)), rank)
        return {**self._judged(hit, "hidden", rank, above), **_leader(group.hit), **at}

    def _judged(self, hit: Hit, status: str, rank: int, fate: str) -> Entry:
        """Return an entry with the figures of the decision about the hit at a rank of the longer stream."""
        found = explain(self._longer, rank, self._reader, self._plan.options, self._id_at)
        figures: Entry = {}
        if found.leader != rank:
            figures |= _leader(self._longer.hits[self._longer.index_of(found.leader)])
        if found.nearest is not None:
            figures |= {
                "compared_with": self._longer.hits[self._longer.index_of(found.nearest)].get("_id"),
                "similarity": round(found.similarity, 4),
                "standard_error": round(found.standard_error, 4),
                "compared": round(found.compared, 4),
                "bar": None if found.bar is None else round(found.bar, 4),
                "shared_values": found.shared,
                "guards": list(found.guards),
            }
        return {**_entry(hit, status, f"{fate}; {found.rule}"), **figures}

    def _at(self, place: int) -> tuple[str, Entry]:
        """Return where a place is, in words and in fields of an entry: not for places before the page of a cursor."""
        if place <= self._earlier:
            return "on an earlier page", {}
        search, counted = self._plan.search, place - self._earlier + self._before
        page = {} if self._earlier else {"page": (counted - 1) // search.limits.size + 1}  # others may be short
        elsewhere = f"page {page['page']:,}" if page else "a later page"
        is_here = search.start < place <= search.start + search.size
        return f"on {'this page' if is_here else elsewhere}, at place {counted:,}", {**page, "place": counted}

    def _id_at(self, rank: int) -> str:
        return repr(self._longer.hits[self._longer.index_of(rank)].get("_id"))


def _entry(hit: Mapping[str, Any], status: str, description: str) -> Entry:
    index = {"_index": hit["_index"]} if "_index" in hit else {}
    return {**index, "_id": hit["_id"], "status": status, "description": description}


def _leader(hit: Hit) -> Entry:
    """Return the fields of an entry that name the leader of its document."""
    return {"duplicate_of": hit.get("_id"), "duplicate_of_index": hit.get("_index")}
