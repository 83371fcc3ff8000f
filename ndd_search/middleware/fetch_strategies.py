"""Strategies of fetching a page: all documents at once, or sketches first and then few documents.

To read a document, or only its id, an engine decompresses a block of stored documents. A sketch is read from doc
values. For a window of 100 hits of which 10 to 20 are shown, an engine needs half the time for the sketches of all hits
and the documents of the shown ones (figures in docs/fetching.md). So a search that can be split is fetched that way:

one_phase: one request for the window with its documents.
one_trip:  both in one `_msearch`: the user's own request, a little wider than the page, and the sketches of the
           window. A second trip fetches documents that the page shows from further down, if there are any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from statistics import median
from typing import Any

from ndd_search.collapse_options import CollapseOptions, Strategy
from ndd_search.immutable import dataclass
from ndd_search.paging.stream import Stream
from ndd_search.paging.windows import Fetch
from ndd_search.rest.answers import Hit
from ndd_search.rest.request import Request, Search
from ndd_search.rest.wider_requests import Reading, asked_otherwise
from ndd_search.sketching.field import SketchField
from ndd_search.sketching.sketches import Lack, Sketch, Sketches

# Parts of a body that decide which hits match and in what order, that describe all hits, and that describe each hit.
_WHICH = ("query", "sort", "post_filter", "min_score", "indices_boost", "runtime_mappings", "track_scores", "stats")
_OF_ALL = ("aggs", "aggregations", "suggest", "track_total_hits")
_OF_EACH = ("_source", "fields", "docvalue_fields", "stored_fields", "script_fields", "highlight", "explain", "version")
_APART = {*_WHICH, *_OF_ALL, *_OF_EACH, "collapse", "from", "size", "seq_no_primary_term"}

# Parameters of a search that an `_msearch` takes per search, and those that it takes once for all searches.
FOR_EACH = {
    *("preference", "routing", "search_type", "request_cache"),
    *("ignore_unavailable", "allow_no_indices", "expand_wildcards"),
}
_FOR_ALL = {"typed_keys", "rest_total_hits_as_int", "ccs_minimize_roundtrips"}
_ACCEPTED = {*FOR_EACH, *_FOR_ALL, "from", "size", "filter_path"}  # `filter_path` is applied here

# Parts with scores that are not reproducible, scores that need a model, and hits with hits of their own. A field of
# such a name only means that the search is fetched in one phase.
_WHOLE_ONLY = {
    *("script_score", "script", "_script", "percolate", "inner_hits"),
    *("knn", "neural", "neural_sparse", "hybrid", "semantic", "sparse_vector", "text_expansion"),
}

_MAYBE_WHOLE = {*_WHOLE_ONLY, "random_score"}  # names of all parts that may prevent a split

_WIDER = 1.75  # width of the first request of one_trip before pages say what they need: enough for 70 % of them
_TRIP = 50  # documents that an engine and a client process in the time of a further trip (docs/fetching.md)
_SPARED = 0.4  # least share of the window whose documents must not be fetched for splitting to pay off
_MOST_RANGES = 4  # most requests for documents in one trip
_GAP = 10  # so many unneeded hits between two ranges cost less than another request
_ENOUGH = 8  # searches in one trip before their reaches are used, and before any is timed: the first ones are slower
_TRIED = 4  # searches with each strategy before the two are compared
_COMPARED = 8  # latest searches with each strategy that are compared
_REMEMBERED = 20  # searches whose figures are kept, and between two searches with the slower strategy


class DoesNotFit(Exception):
    """A split search was refused, failed in part, or its requests returned different hits."""


@dataclass(frozen=True)
class Timings:
    """Figures of the last searches of a caller in a target, of which the first page could be fetched with any strategy.

    one_trip, one_phase: seconds from a search to its page, with each strategy, without the first searches. searches:
        number of all.
    reaches: the end of the hits that each page showed or listed, in multiples of the end of the page.
    until:   time at which the figures expire.
    """

    one_trip: tuple[float, ...] = ()
    one_phase: tuple[float, ...] = ()
    reaches: tuple[float, ...] = ()
    searches: int = 0
    until: float = 0.0

    def after(self, strategy: Strategy, seconds: float | None, reach: float, until: float) -> Timings:
        """Return the figures after another search. seconds: None for a time that is not compared."""
        times = {"one_trip": self.one_trip, "one_phase": self.one_phase}
        if seconds is not None and len(self.reaches) >= _ENOUGH:
            times[strategy] = (*times[strategy], seconds)[-_REMEMBERED:]
        reaches, searches = (*self.reaches, reach)[-_REMEMBERED:], self.searches + (seconds is not None)
        return Timings(**times, reaches=reaches, searches=searches, until=until)

    @property
    def faster(self) -> Strategy:
        """The strategy that was faster, one_trip until both were compared.

        Nothing but a comparison under the same load tells which is faster: with a slow query one_phase, which runs it
        once, and with large documents one_trip, which reads few of them.
        """
        if not self._are_compared:
            return "one_trip"
        one_phase, one_trip = (median(times[-_COMPARED:]) for times in (self.one_phase, self.one_trip))
        return "one_phase" if one_phase < one_trip else "one_trip"

    @property
    def strategy(self) -> Strategy:
        """The strategy for the next search that is measured.

        The first ones use one_trip, then both strategies take turns, then mostly the faster one is used.
        """
        if not self._are_compared:
            return "one_phase" if len(self.one_trip) > len(self.one_phase) else "one_trip"
        tries_other = self.searches % _REMEMBERED == 0
        return "one_phase" if (self.faster == "one_phase") != tries_other else "one_trip"

    @property
    def _are_compared(self) -> bool:
        return min(len(self.one_trip), len(self.one_phase)) >= _TRIED

    def width(self, page: int) -> float:
        """Return where the documents of the first trip should end, in multiples of the end of the page.

        page: end of the page. The cheapest of the former reaches is chosen, or the page alone, to which `own_part` adds
        two hits: a wider request fetches more documents, and a narrower one needs a second trip more often.
        """
        if len(self.reaches) < _ENOUGH:
            return _WIDER
        each = _TRIP / len(self.reaches)  # what a page spares that needs no second trip
        widths = enumerate((1.0, *sorted(self.reaches)))
        return min((width * page - each * pages, width) for pages, width in widths)[1]


def strategies_of(search: Search, options: CollapseOptions, reading: Reading, width: float) -> tuple[Strategy, ...]:
    """Return the strategies among which "auto" chooses; one if the options or the search leave no choice."""
    # Fields for guards and `keep` are then requested apart from documents, because ours would replace the caller's.
    apart = reading.fields and ("top_hits" in search.names or asked_otherwise(search, reading.fields))
    if (options.strategy == "one_phase" and not apart) or not can_be_split(search, options):
        return ("one_phase",)
    if options.strategy == "one_trip" or apart:
        return ("one_trip",)
    window = options.initial_window
    fewer = window - own_part(search, window, width).size
    if fewer < _SPARED * window or (reading.fields and options.total != "groups"):
        return ("one_phase",)
    return "one_trip", "one_phase"


def own_part(search: Search, window: int, width: float) -> Fetch:
    """Return the hits that one_trip fetches with documents: those of the engine's own page, and some after.

    width: end of these hits, in multiples of the end of the page.
    """
    end = max(ceil((search.start + search.size) * width), search.start + search.size + 2)
    return Fetch(search.start, min(end, max(window, search.start + search.size)) - search.start)


def sketches_only(search: Search, fetch: Fetch, field: SketchField, reading: Reading, *, ids: bool = False) -> Request:
    """Return the request for the sketches of some hits. ids: also for their ids.

    It reads no stored document, unless `reading` has fields or ids are requested.
    """
    asked = search.body
    body = {key: asked[key] for key in _WHICH if key in asked}
    if "collapse" in asked:
        body["collapse"] = {"field": asked["collapse"].get("field")}
    body.update(track_total_hits=False, _source=False, docvalue_fields=list(reading.stored))
    if reading.fields:
        body["fields"] = list(reading.fields)
    elif not ids:
        body["stored_fields"] = "_none_"
    body["from"], body["size"] = fetch.start, fetch.size
    params = {
        name: value for name, value in search.request.params.items() if name not in ("from", "size", "filter_path")
    }
    return search.request.asking(body, {"preference": search.preference, **params}, reading.sketches)


def ranges_of(ranks: Iterable[int]) -> list[Fetch]:
    """Return at most four ranges of the engine's list that cover all of these ranks."""
    ordered, gap = sorted(ranks), _GAP
    while True:
        heads = [at for at, rank in enumerate(ordered) if not at or rank - ordered[at - 1] > gap]
        if len(heads) <= _MOST_RANGES:
            break
        gap *= 2
    ends = [*heads[1:], len(ordered)]
    return [Fetch(ordered[at], ordered[end - 1] - ordered[at] + 1) for at, end in zip(heads, ends, strict=True)]


def documents_of(stream: Stream, start: int, hits: list[Hit], sketches: Sequence[Sketch | Lack]) -> dict[int, Hit]:
    """Return documents by rank, with the scores and sort values of the answer that brought their sketches.

    start: rank of the first hit. sketches: those that came with the documents.
    Raises DoesNotFit if they differ from those of the stream.
    """
    first = int(stream.ranks.searchsorted(start))
    if stream.ranks[first : first + len(hits)].tolist() != list(range(start, start + len(hits))):
        raise DoesNotFit
    if not _are_of(stream, first, hits, sketches):
        raise DoesNotFit
    for hit, before in zip(hits, stream.hits[first:], strict=False):
        if hit["_index"] != before["_index"]:
            raise DoesNotFit
        for name in ("_score", "sort"):
            if name in before:
                hit[name] = before[name]
    return dict(enumerate(hits, start))


def _are_of(stream: Stream, first: int, hits: Sequence[Hit], sketches: Sequence[Sketch | Lack]) -> bool:
    """Return whether these are the sketches of a stream from index `first` on. Hits without one have equal scores."""
    if isinstance(sketches, Sketches) and isinstance(stream.sketches, Sketches):
        return stream.sketches.holds(sketches, first)
    for at, (hit, sketch) in enumerate(zip(hits, sketches, strict=True), first):
        if isinstance(sketch, str):
            before = stream.hits[at]
            same = sketch == stream.lacking[at] and all(
                hit.get(name) == before.get(name) for name in ("_score", "sort")
            )
        else:
            same = sketch.tobytes() == stream.sketches[at].tobytes()
        if not same:
            return False
    return True


def together(requests: list[Request]) -> Request:
    """Combine searches of one target in one `_msearch`."""
    if len(requests) == 1:
        return requests[0]
    first = requests[0]
    lines: list[Any] = []
    for request in requests:
        lines += [{name: value for name, value in request.params.items() if name in FOR_EACH}, request.body]
    params = {name: value for name, value in first.params.items() if name in _FOR_ALL}
    path = first.path.removesuffix("_search") + "_msearch"
    cut = first.cut if all(request.cut == first.cut for request in requests) else None
    return Request("POST", path, params, first.headers, lines, first.timeout, tuple(requests), cut)


def goes_together(request: Request) -> bool:
    """Return whether an `_msearch` accepts every URL parameter of a search."""
    return _ACCEPTED.issuperset(request.params)


def can_be_limited(search: Search) -> bool:
    """Return whether a search can be sent again with another clause in its query, for some of the same hits."""
    known = _APART.issuperset(search.body) and {"collapse", "min_score"}.isdisjoint(search.body)
    return known and not search.one_window and goes_together(search.request)


def can_be_split(search: Search, options: CollapseOptions) -> bool:
    """Return whether two requests for parts of the hits give the same result as one request."""
    body = search.body
    if search.one_window or any(map(callable, options.keep)):
        return False
    if not _APART.issuperset(body) or not goes_together(search.request):
        return False
    if "collapse" in body and not isinstance(body["collapse"], Mapping):
        return False
    aggregations = [body.get("aggs"), body.get("aggregations")]
    if "fields" in body and any(name == "top_hits" for name, _ in _names(aggregations)):
        return False  # Elasticsearch adds the `fields` of the whole search to them
    if _MAYBE_WHOLE.isdisjoint(search.names):
        return True
    which = {key: body[key] for key in _WHICH if key in body}
    return not has_random_scores(which) and all(name not in _WHOLE_ONLY for name, _ in _names(which))


def has_random_scores(body: Mapping[str, Any]) -> bool:
    """Return whether scores differ from request to request: `random_score` without a seed."""
    return any(
        name == "random_score" and not (isinstance(value, Mapping) and "seed" in value) for name, value in _names(body)
    )


def _names(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield every name in a JSON value with its value."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield name, value
            yield from _names(value)
    elif isinstance(node, list | tuple):
        for item in node:
            yield from _names(item)
