"""The plan of a search: which hits are fetched, what is read of them, and with which requests.

To read a document, or only its id, an engine decompresses a block of stored documents. A sketch is read from doc
values, at a tenth of that cost. `ndd.strategy` names the way in which a search is fetched:

one_phase:  one request for the window with its documents.
two_phases: the sketches of the window, with everything that describes all hits, such as aggregations. Then the
            documents to show or list, by the same query with a filter that names their sequence numbers: with such a
            filter an engine looks at few documents, so a query that costs much is paid for once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from ndd_search.core.immutable import cached_property, dataclass
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.fill_page import Fetch, first_window
from ndd_search.core.paging.page import Page
from ndd_search.core.paging.stream import Shown, Stream
from ndd_search.core.presets import unfit_preset
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.search.flow.client_settings import Settings, surrounding
from ndd_search.search.flow.learned_targets import Facts
from ndd_search.search.flow.round_trips import Asking, RoundTrips, goes_together
from ndd_search.search.flow.search_state import State
from ndd_search.search.rest.hide_sketches import SketchFilter
from ndd_search.search.rest.read_answer import Answer, window_limit
from ndd_search.search.rest.read_request import Request, Search
from ndd_search.search.rest.search_body import named_values
from ndd_search.search.rest.wider_requests import (
    Reading,
    asked_for,
    asked_otherwise,
    fields_added,
    sketch_reading,
    widened,
)

_MAPPED = 3600.0  # seconds until we check again whether recipes are mapped as text, or `_source` is disabled
_AS_TEXT = (
    "{} is mapped as text, so searches read it from each document: run ndd-search doctor, which says how to mend it"
)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How one search is carried out.

    search, options: what is searched and how its hits are collapsed.
    of_caller:       what was known of the caller when the search was planned. window_limit: the same of the target.
    settings:        of the client, for the target. field: where the sketches are in a document.
    may_split:       whether the search may be fetched in two phases; False after two phases of it failed.
    is_split:        whether it is: `ndd.strategy` is then two_phases.
    sketch_reading:  how sketches are read of a hit. reading: the same with the fields that guards and `keep` need.
    sketch_fields:   fields of ours that are removed from hits when they arrive.
    added_fields:    fields that were added for guards and `keep`; they are removed from the hits shown.
    shown:           what the caller was shown before. unread: why some of it is not known, "" if all of it is.
    """

    search: Search
    options: CollapseOptions
    of_caller: Facts
    window_limit: int
    settings: Settings
    field: SketchField
    may_split: bool
    is_split: bool
    sketch_reading: Reading
    reading: Reading
    sketch_fields: tuple[str, ...]
    added_fields: tuple[str, ...]
    shown: tuple[Shown, ...] = ()
    unread: str = ""

    @property
    def warnings(self) -> list[str]:
        """Sentences about an unfit preset, a mapping as text, and fields of options that are read as requested."""
        texts = [_AS_TEXT.format(name) for name in self.sketch_reading.fields]
        changes = {**(surrounding() or {}), **self.search.changes}
        if "preset" in changes and self.settings.items is None:
            texts += filter(None, [unfit_preset(changes, self.settings.recipe)])
        told = [self.settings.tell(self.search.request.path, sentence) for sentence in texts]
        if not self.reading.fields or (self.is_split and self.options.members != "all"):
            return told
        return told + [
            f"the field {name!r}, which an option names, is compared as the search requests it: request it in "
            "`_source` or, without a format, in `fields`"
            for name in asked_otherwise(self.search, self.reading.fields)
        ]

    @property
    def has_sketches(self) -> bool:
        """Whether any caller saw a sketch in the target within the last hour."""
        return self.settings.clock() < self.settings.known.about(self.search.target).sketched_until

    @property
    def leaves_unread(self) -> bool:
        """Whether the requests for sketches lack parts of the search that an engine refuses even if it finds no hit."""
        return self.is_split and not _COMPUTED.isdisjoint(self.search.body)

    def requests(self, fetch: Fetch, first: bool) -> list[Request]:
        """Return the requests of one trip. The sketches are in the answer to the last one."""
        search, before = self.search, list[Request]()
        if first and (search.limits.apart or (self.is_split and self._has_other_documents)):
            before.append(widened(search.as_found, 0, 1, self.field, self.sketch_reading))
            first = False
        if self.is_split:
            return [*before, sketches_only(search, fetch, self.field, self.reading, first=first)]
        return [*before, widened(search, fetch.start, fetch.size, self.field, self.reading, first=first)]

    @property
    def _has_other_documents(self) -> bool:
        """Whether the answer has documents beside the hits, of which a request for sketches would change what is read.

        Those of a completion suggester, and of `top_hits`.
        """
        return "suggest" in self.search.body or "top_hits" in self.search.names

    def documents(self, stream: Stream, ranks: Set[int]) -> Documents:
        """Return the request for the documents of some ranks of a stream."""
        request = widened(self.search, 0, 0, self.field, self.sketch_reading, first=False)
        return _limited(request, stream, ranks)

    def hide_sketches(self, answers: Sequence[Answer]) -> None:
        """Remove the sketches from the hits of answers, in place, unless the caller names them."""
        added = fields_added(self.search, self.reading) if self.reading.fields else []
        for answer in answers:
            self.filter.clean(answer.body, added, (*self.sketch_fields, *self.added_fields))

    @cached_property
    def filter(self) -> SketchFilter:
        """What removes the sketches from an answer unless the caller names them."""
        return SketchFilter(self.search.body, self.field)


def plan_of(search: Search, options: CollapseOptions, settings: Settings, may_split: bool = True) -> Plan:
    """Plan a search from what is learned of its target now.

    Its windows are those of the options, unless the engine allows less, or the search finds fewer hits.
    """
    field, now = settings.sketch_field, settings.clock()
    learned = settings.known.about(search.target)
    most = min(learned.window_limit, max(search.limits.found or learned.window_limit, search.start + search.size))
    if most < options.max_window:
        options = replace(options, window=min(options.window, most), max_window=most)
    numbers = [field.numbers] if options.same_numbers else []
    values = options.document_fields
    excludes = learned.sketched and now >= learned.no_source_until
    sketches = sketch_reading(settings.stored_sketches, now < learned.text_until, excludes)
    if settings.items is not None:
        sketches, may_split = Reading(()), False  # the fields of items are read from documents
        values = tuple(dict.fromkeys((*values, *settings.items.paths)))
    reading = sketches.and_of(numbers, values) if numbers or values else sketches
    added = (*values, *numbers)
    requested = asked_for(search, field, (*field.paths, *added))
    return Plan(
        search=search,
        options=options,
        of_caller=settings.known.about(search.target_of_caller),
        window_limit=learned.window_limit,
        settings=settings,
        field=field,
        may_split=may_split,
        is_split=may_split
        and now >= max(learned.whole_until, learned.bare_until)
        and is_worth_splitting(search, options, reading),
        sketch_reading=sketches,
        reading=reading,
        sketch_fields=tuple([name for name in field.paths if name not in added and name not in requested]),
        added_fields=tuple([name for name in added if name not in requested]),
    )


class AskAnew(Exception):
    """The answers to a search cannot be used: it begins again, with other requests (see `planned_anew`).

    learned: whether the engine's complaint shows how to ask instead, which is learned for the target. If not, a request
             was refused or failed in part beside others, or requests of one search returned different hits.
    changed: whether a document changed between two requests, so that the same requests may serve another time.
    """

    def __init__(self, *, learned: bool = False, changed: bool = False) -> None:
        super().__init__(learned, changed)
        self.learned, self.changed = learned, changed


def ask_anew_if_learned(plan: Plan, complaint: str) -> None:
    """Raise AskAnew if the engine's complaint about a request shows how to ask instead."""
    search, known = plan.search, plan.settings.known
    most = window_limit(complaint)
    if most and search.start + search.size <= most < plan.window_limit:
        known.learn(search.target, window_limit=min(most, known.about(search.target).window_limit))
        raise AskAnew(learned=True)
    is_about_text = plan.field.recipe in complaint and "ielddata" in complaint
    if is_about_text and not plan.sketch_reading.fields:
        known.learn(search.target, text_until=plan.settings.clock() + _MAPPED)
        raise AskAnew(learned=True)
    if "_source is disabled" in complaint and plan.sketch_reading.sketched:
        known.learn(search.target, no_source_until=plan.settings.clock() + _MAPPED)
        raise AskAnew(learned=True)


def planned_anew(plan: Plan, refused: AskAnew) -> Plan:
    """Return the next plan of a search whose plan did not serve: in one request, unless something was learned."""
    search = plan.search.as_found if plan.search.limits.apart and not refused.learned else plan.search
    again = plan_of(search, plan.options, plan.settings, plan.may_split and refused.learned)
    return replace(again, is_split=plan.is_split and again.is_split, shown=plan.shown, unread=plan.unread)


def needs_sketches(options: CollapseOptions, steps: Sequence[Step]) -> bool:
    """Return whether a page of hits without sketches is the engine's own: no field groups them, and none was seen."""
    return not options.reads_keys and all(step.needs_sketches for step in steps)


class Step:
    """A part of a search that it has only if it asks for it: see `carry_out_search.steps_of`.

    Its methods are called in this order, and do nothing unless the step needs them.
    is_remembered: whether the page may be read from the cache and stored there.
    needs_ids:     whether every hit of the window needs its id, so that the search is not split.
    """

    is_remembered: ClassVar[bool] = True
    needs_ids: ClassVar[bool] = False

    @property
    def needs_sketches(self) -> bool:
        """Whether the step changes nothing on a page of hits without sketches."""
        return True

    def planned(self, plan: Plan, round_trips: RoundTrips) -> Asking[Plan]:
        """Return the plan before the first trip, also if it begins again with another plan."""
        yield from ()
        return plan

    def beside(self, plan: Plan) -> list[Request]:
        """Return requests to send beside those of the first trip."""
        return []

    def after_first_trip(
        self, state: State, plan: Plan, round_trips: RoundTrips, answers: list[Answer]
    ) -> Asking[State]:
        """Return the state after the first trip. answers: to the requests beside it."""
        yield from ()
        return state

    def after_hits(self, state: State, plan: Plan, round_trips: RoundTrips) -> Asking[State]:
        """Return the state, which may be a cached one, after the hits that the page needs are there."""
        yield from ()
        return state

    def with_page(self, state: State, page: Page, plan: Plan, round_trips: RoundTrips) -> Asking[tuple[State, Page]]:
        """Return the state and the page after the documents of the page are there."""
        yield from ()
        return state, page

    def with_answer(self, body: dict[str, Any], state: State, plan: Plan) -> dict[str, Any]:
        """Return the answer for the caller."""
        return body


# Parts of a body that decide which hits match and in what order, that describe all hits, and that describe each hit.
_WHICH = ("query", "sort", "post_filter", "min_score", "indices_boost", "runtime_mappings", "track_scores", "stats")
_OF_ALL = ("aggs", "aggregations", "suggest", "track_total_hits")
_COMPUTED = {"fields", "docvalue_fields", "stored_fields", "script_fields", "highlight"}
_OF_EACH = ("_source", *sorted(_COMPUTED), "explain", "version")
_APART = {*_WHICH, *_OF_ALL, *_OF_EACH, "from", "size", "seq_no_primary_term"}


# Parts with scores that are not reproducible, scores that need a model, and hits with hits of their own. A field of
# such a name only means that the search is fetched in one phase.
_WHOLE_ONLY = {
    *("script_score", "script", "_script", "percolate", "inner_hits"),
    *("knn", "neural", "neural_sparse", "hybrid", "semantic", "sparse_vector", "text_expansion"),
}

_MAYBE_WHOLE = {*_WHOLE_ONLY, "random_score"}  # names of all parts that may prevent a split

_MOST_SHOWN = 0.4  # of the window: one phase costs less for a longer page


def is_worth_splitting(search: Search, options: CollapseOptions, reading: Reading) -> bool:
    """Return whether a search is fetched in two phases: it can be, and an engine then reads fewer documents."""
    if not can_be_split(search, options):
        return False
    # Fields for guards and `keep` are then requested apart from documents, because ours would replace the caller's.
    if reading.fields and ("top_hits" in search.names or asked_otherwise(search, reading.fields)):
        return True
    window = first_window(search.start + search.size + options.ahead, options)
    return search.size <= _MOST_SHOWN * window and (not reading.fields or options.total == "groups")


def sketches_only(
    search: Search, fetch: Fetch, field: SketchField, reading: Reading, *, first: bool = False, ids: bool = False
) -> Request:
    """Return the request for the sketches and sequence numbers of some hits.

    It reads no stored document, unless `reading` has fields or ids are requested.

    first: also for what describes all hits. ids: also for the ids of the hits.
    """
    asked = search.body
    body = {key: asked[key] for key in (*_WHICH, *(_OF_ALL if first else ())) if key in asked}
    if not first:
        body["track_total_hits"] = False
    body.update(_source=False, docvalue_fields=list(reading.stored), seq_no_primary_term=True)
    if reading.fields:
        body["fields"] = list(reading.fields)
    elif not ids:
        body["stored_fields"] = "_none_"
    body["from"], body["size"] = fetch.start, fetch.size
    params = {
        name: value for name, value in search.request.params.items() if name not in ("from", "size", "filter_path")
    }
    return search.request.asking(body, {"preference": search.preference, **params}, reading.sketches)


class Documents(NamedTuple):
    """A request for documents. wanted: their ranks. found: the ranks of all hits of its answer."""

    request: Request
    wanted: Set[int]
    found: list[int]


def _limited(request: Request, stream: Stream, ranks: Set[int]) -> Documents:
    """Return a request for the hits of a stream that have the sequence numbers of some ranks.

    Each shard counts its own sequence numbers, so hits of other shards may have one of these. Those behind the last
    wanted rank are left out by the size of the answer.

    Raises AskAnew if the engine has not returned sequence numbers.
    """
    last, numbers = max(ranks), set[int]()
    known = [(rank, hit.get("_seq_no")) for rank, hit in zip(stream.ranks.tolist(), stream.hits, strict=True)]
    for rank, number in known:
        if rank in ranks:
            if not isinstance(number, int):
                raise AskAnew
            numbers.add(number)
    found = [rank for rank, number in known if rank <= last and number in numbers]
    only = {"terms": {"_seq_no": sorted(numbers)}}
    query = {"bool": {"must": [request.body.get("query") or {"match_all": {}}], "filter": [only]}}
    body = {**request.body, "query": query, "from": 0, "size": len(found), "seq_no_primary_term": True}
    return Documents(replace(request, body=body), ranks, found)


def can_be_limited(search: Search) -> bool:
    """Return whether a search can be sent again with another clause in its query, for some of the same hits."""
    known = _APART.issuperset(search.body) and "min_score" not in search.body
    return known and not search.limits.bounded and goes_together(search.request)


def can_be_split(search: Search, options: CollapseOptions) -> bool:
    """Return whether two requests for parts of the hits give the same result as one request.

    A filter of ours would be a part of an explanation, and show hits that the engine's own `collapse` hides.
    """
    body = search.body
    if any(map(callable, options.keep)) or body.get("explain"):
        return False
    if not _APART.issuperset(body) or not goes_together(search.request):
        return False
    aggregations = [body.get("aggs"), body.get("aggregations")]
    if "fields" in body and any(name == "top_hits" for name, _ in named_values(aggregations)):
        return False  # Elasticsearch adds the `fields` of the whole search to them
    if _MAYBE_WHOLE.isdisjoint(search.names):
        return True
    which = {key: body[key] for key in _WHICH if key in body}
    return not has_random_scores(which) and all(name not in _WHOLE_ONLY for name, _ in named_values(which))


def has_random_scores(body: Mapping[str, Any]) -> bool:
    """Return whether scores differ from request to request: `random_score` without a seed."""
    return any(
        name == "random_score" and not (isinstance(value, Mapping) and "seed" in value)
        for name, value in named_values(body)
    )
