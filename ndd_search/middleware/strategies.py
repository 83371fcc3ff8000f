"""How the hits of a page are fetched: with their documents, or their sketches first and few documents after.

Reading a document, or only its id, means unpacking a block of stored documents; a sketch lies open as doc values. For
a window of 100 hits of which ten or twenty are shown, an engine is done in half the time with the sketches of all and
the documents of a few (docs/wrapping.md has figures), so that is what happens where a search can be taken apart:

one_phase:  one request for the window, documents and all.
two_phase:  the sketches of the window by place, nothing else; then the documents of the places that the page shows.
one_trip:   both in one `_msearch`: the user's own request, a little wider than the page, and the sketches of the
            window. A second trip fetches what the page shows from further down, if anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from ndd_search.collapse_options import CollapseOptions, Strategy
from ndd_search.paging.page import Fetch
from ndd_search.paging.stream import Stream
from ndd_search.rest.answers import Hit
from ndd_search.rest.request import Reading, Request, Search, widened
from ndd_search.sketching.field import SketchField
from ndd_search.sketching.sketches import Lack, Sketch

# Parts of a body: what decides which hits there are, what is said of all of them together, what is said of each.
_WHICH = ("query", "sort", "post_filter", "min_score", "indices_boost", "runtime_mappings", "track_scores", "stats")
_OF_ALL = ("aggs", "aggregations", "suggest", "track_total_hits")
_OF_EACH = ("_source", "fields", "docvalue_fields", "stored_fields", "script_fields", "highlight", "explain", "version")
_APART = {*_WHICH, *_OF_ALL, *_OF_EACH, "collapse", "from", "size", "seq_no_primary_term"}

# Parameters of a search that an `_msearch` takes for each of its searches, and those it takes for all of them.
_FOR_EACH = {
    *("preference", "routing", "search_type", "request_cache"),
    *("ignore_unavailable", "allow_no_indices", "expand_wildcards"),
}
_FOR_ALL = {"typed_keys", "rest_total_hits_as_int", "ccs_minimize_roundtrips"}

# Scores that are not the same twice, scores for which a model is asked, and hits that bring hits of their own; a field
# of such a name does no harm but to be fetched in one phase.
_WHOLE_ONLY = {
    *("script_score", "script", "_script", "percolate", "inner_hits"),
    *("knn", "neural", "neural_sparse", "hybrid", "semantic", "sparse_vector", "text_expansion"),
}

_WIDER = 1.75  # documents asked for at once in one trip, for each that a page has: seven in ten pages need no more
_SPARED = 0.4  # share of the window whose documents have to be spared for it to be worth while
_STRETCHES = 4  # requests for documents in one trip, at most
_GAP = 10  # hits between two stretches that cost less than another request
# Milliseconds that a document costs, and each kB of it: the engine unpacks it, the client parses it (docs/wrapping.md).
_OPENING = 0.04
_PER_KILOBYTE = 0.008
_QUERY = 0.5  # of what an engine takes for the sketches of a window; the rest is reading them, which one phase does too
_ENOUGH = 8  # searches of an index before anything is concluded from them
_REMEMBERED = 20  # searches
_MANY_GAPS = 0.5  # share of searches from which the second trip is planned


class DoesNotFit(Exception):
    """A search that was taken apart: refused, failed in part, or two requests do not speak of the same hits."""


@dataclass(frozen=True)
class Seen:
    """What the last searches of an index in one trip were like, as means that forget what is long ago.

    searches:  how many there were. took: milliseconds of the engine for the sketches of a window.
    kilobytes: of one document, as text. gaps: share of the searches that needed a second trip.
    until:     when this is too old to rely on.
    """

    searches: int = 0
    took: float = 0.0
    kilobytes: float = 0.0
    gaps: float = 0.0
    until: float = 0.0

    def after(self, took: float, kilobytes: float, gap: bool, until: float) -> Seen:
        """The same after another search."""
        share = 1 / min(self.searches + 1, _REMEMBERED)

        def mean(old: float, new: float) -> float:
            return old + (new - old) * share

        means = mean(self.took, took), mean(self.kilobytes, kilobytes), mean(self.gaps, gap)
        return Seen(self.searches + 1, *means, until)


def strategy_of(search: Search, options: CollapseOptions, reading: Reading, seen: Seen) -> Strategy:
    """How to fetch a page: anything but "auto". seen: of the same index."""
    if options.strategy == "one_phase" or not _comes_apart(search, options):
        return "one_phase"
    if options.strategy != "auto":
        return options.strategy
    fewer = options.window - own_part(search, options.window).size
    if fewer < _SPARED * options.window or reading.fields:
        return "one_phase"
    if seen.searches < _ENOUGH:
        return "one_trip"
    if seen.took * _QUERY > fewer * (_OPENING + _PER_KILOBYTE * seen.kilobytes):
        return "one_phase"  # the query is what takes time: ask it once
    return "two_phase" if seen.gaps > _MANY_GAPS else "one_trip"


def own_part(search: Search, window: int) -> Fetch:
    """The hits that one trip fetches with their documents: those the engine itself would show, and some after."""
    end = max(ceil((search.start + search.size) * _WIDER), search.start + search.size + 2)
    return Fetch(search.start, min(end, max(window, search.start + search.size)) - search.start)


def sketches_only(search: Search, wish: Fetch, field: SketchField, reading: Reading, alone: bool) -> Request:
    """The request for the sketches of some hits, without anything that would unpack a document unless that is read.

    alone: whether no other request asks for aggregations and the like.
    """
    asked = search.body
    body = {key: asked[key] for key in (*_WHICH, *(_OF_ALL if alone else ())) if key in asked}
    if "collapse" in asked:
        body["collapse"] = {"field": asked["collapse"].get("field")}
    if not alone:
        body["track_total_hits"] = False
    body["_source"] = False
    if not reading.fields:
        body["stored_fields"] = "_none_"
    plain = replace(search, request=replace(search.request, body=body))
    return widened(plain, wish.start, wish.size, field, reading)


def stretches(ranks: Iterable[int]) -> list[Fetch]:
    """Few stretches of the engine's list that hold all of some places."""
    ordered, gap = sorted(ranks), _GAP
    while True:
        heads = [at for at, rank in enumerate(ordered) if not at or rank - ordered[at - 1] > gap]
        if len(heads) <= _STRETCHES:
            break
        gap *= 2
    ends = [*heads[1:], len(ordered)]
    return [Fetch(ordered[at], ordered[end - 1] - ordered[at] + 1) for at, end in zip(heads, ends, strict=True)]


def documents_of(stream: Stream, start: int, hits: list[Hit], sketches: Sequence[Sketch | Lack]) -> dict[int, Hit]:
    """Documents by place, the first at `start`, with the scores and sort values that their sketches came with.

    sketches: those that came with the documents. Raises DoesNotFit if they are others than those of the stream.
    """
    first = int(np.searchsorted(stream.ranks, start))
    if stream.ranks[first : first + len(hits)].tolist() != list(range(start, start + len(hits))):
        raise DoesNotFit
    for at, (hit, sketch) in enumerate(zip(hits, sketches, strict=True), first):
        before = stream.hits[at]
        if isinstance(sketch, str):
            same = sketch == stream.lacking[at] and all(
                hit.get(name) == before.get(name) for name in ("_score", "sort")
            )
        else:
            same = sketch.tobytes() == stream.sketches[at].tobytes()
        if not same or hit["_index"] != before["_index"]:
            raise DoesNotFit
        hit.update({name: before[name] for name in ("_score", "sort") if name in before})
    return dict(enumerate(hits, start))


def together(requests: list[Request]) -> Request:
    """Searches of one target in one request."""
    if len(requests) == 1:
        return requests[0]
    one = requests[0]
    lines: list[Any] = []
    for request in requests:
        lines += [{name: value for name, value in request.params.items() if name in _FOR_EACH}, request.body]
    params = {name: value for name, value in one.params.items() if name in _FOR_ALL}
    path = one.path.removesuffix("_search") + "_msearch"
    return replace(one, method="POST", path=path, params=params, body=lines, parts=tuple(requests))


def goes_together(request: Request) -> bool:
    """Whether an `_msearch` takes all that the URL of a search says."""
    return {*_FOR_EACH, *_FOR_ALL, "from", "size", "filter_path"}.issuperset(request.params)


def _comes_apart(search: Search, options: CollapseOptions) -> bool:
    """Whether two requests for parts of the hits say the same as one request for all of them."""
    body = search.body
    if search.one_window or any(map(callable, options.keep)):
        return False
    if not _APART.issuperset(body) or not goes_together(search.request):
        return False
    if not isinstance(body.get("collapse", {}), Mapping):
        return False
    aggregations = [body.get("aggs"), body.get("aggregations")]
    if "fields" in body and any(name == "top_hits" for name, _ in _names(aggregations)):
        return False  # Elasticsearch gives them the `fields` of the whole search
    for name, value in _names({key: body[key] for key in _WHICH if key in body}):
        if name in _WHOLE_ONLY or (name == "random_score" and not (isinstance(value, Mapping) and "seed" in value)):
            return False
    return True


def _names(node: Any) -> Iterator[tuple[str, Any]]:
    """Every name in a JSON value with what stands under it."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield name, value
            yield from _names(value)
    elif isinstance(node, list | tuple):
        for one in node:
            yield from _names(one)
