"""Merges several responses, of clusters or of indexes searched one by one, to one deduplicated page.

    sketches = ["ndd.sketch", "ndd.recipe"]
    search = {"index": "news", "query": query, "size": 100, "docvalue_fields": sketches}
    response = ndd_search.merge({name: client.search(**search) for name, client in clients.items()}, size=10)

Hits carry their sketches only if the search requests them, through a wrapped client or another one.

The origin of a response is the cluster that answered. Two clusters may use the same id for different documents, so hits
of two origins are always different documents. If their texts are near-duplicates, they are collapsed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np

from ndd_search.core.document_fields import as_mapping, text_of
from ndd_search.core.matching.frequency_table import FrequencyTable, table_of
from ndd_search.core.paging.collapse import is_counted, page_of_list
from ndd_search.core.paging.hit_reader import HitReader
from ndd_search.core.paging.page import Page
from ndd_search.core.paging.record_schema import RecordSchema, check_schema
from ndd_search.core.paging.stream import Stream
from ndd_search.core.presets import CollapseChanges, collapse_options
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import check_one_of, check_page
from ndd_search.core.sketching.sketches import Lack, Sketch
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.search.rest.read_answer import value_in, without_fields
from ndd_search.search.rest.write_response import (
    DUPLICATE_OF,
    INNER,
    OF_INDEX,
    SHARES,
    SIMILARITY,
    block_of,
    hits_of,
    total_of,
)

By = Literal["score", "reciprocal_rank", "round_robin"]
Hit = dict[str, Any]
Text = str | Sequence[str] | Callable[[Hit], str | None]
Response = Mapping[str, Any]
Origin = str | int

_FIELD = SketchField()
_ORIGIN = "ndd.origin"
_TEXT = "text that was given"  # of a hit of a list, until it is shown
_NO_SKETCH = "no hit has a sketch: search with docvalue_fields ndd.sketch and ndd.recipe, or pass text="


def merge(  # noqa: PLR0913 - all settings of a page in one call
    responses: Sequence[Response | Sequence[Any]] | Mapping[str, Response | Sequence[Any]],
    *,
    by: By = "score",
    size: int = 10,
    from_: int = 0,
    text: Text | None = None,
    recipe: Recipe | str | None = None,
    field: str = "ndd",
    frequency_table: FrequencyTable | bool = True,
    items: RecordSchema | None = None,
    **changes: Unpack[CollapseChanges],
) -> dict[str, Any]:
    """Merge the hits of several responses, collapse their near-duplicates and return one page of the result.

    responses: of searches in Elasticsearch or OpenSearch that asked for sketches ("docvalue_fields": ["ndd.sketch",
               "ndd.recipe"]): a list, or a mapping from the name of each cluster to its response or to a list of
               its responses. Hits of one cluster with the same `_index`, `_id` and `_routing` are one document.
               Each response of a list has an origin of its own, so equal ids there are different documents.
               A hit without a sketch or a text stands alone. A leader that a wrapped client returned with its
               duplicates is merged as if all of them had been separate hits.
               A list of hits may stand in place of a response, best first: texts, mappings, or pairs (any of these,
               score). In the result `_source` is the mapping, or {"text": text}, which is sketched.
    by:        "score" sorts by `_score`, which is comparable only for one kind of query on similar indexes;
               "reciprocal_rank" by the sum of 1 / (60 + rank) over the responses, where rank is the best one of a
               group: a text that two responses hold under different ids counts like one document. "round_robin" takes
               the first of each response, then the second of each. Ties go to the earlier response.
    size, from_: the page, as positions in the merged list without near-duplicates.
    text:      a field of `_source`, several, or a callable(hit), to sketch hits without a sketch of the recipe, and for
               the guard numbers if they have no ndd.numbers. Texts of a list need none.
    recipe, field: of the sketches, and the object that holds them.
    frequency_table, items, changes: as in `collapse`; True counts in all hits.
    Returns a response in the engines' shape: `took` is that of the slowest, `_shards` and totals add up, `_score` is
    the engine's own in every order. If there are several origins, or names, each hit has its own in
    `fields["ndd.origin"]`: the name of its cluster, or the place of its response in the list. `keep` and guards can
    read it (keep=["preferred:ndd.origin=eu,us"]). Raises ValueError or TypeError for invalid arguments, and for
    duplicates that are listed by their ids alone (mode="ids").
    """
    began = perf_counter()
    answers = _answers(responses)
    check_one_of("by", by, ("score", "reciprocal_rank", "round_robin"))
    check_page(size, from_)
    check_schema(items)
    chosen = collapse_options(**changes)
    read = partial(_text_of, text)
    table = table_of(frequency_table)
    reader = _Reader(Recipe.of(recipe), read, frequency_table=table, items=items, field=SketchField(field))
    placed = _ranked(list(_placed(answers)), by)
    hits = [one.hit for one in placed]
    if any(reader.field.has_values(hit.get("fields")) for hit in hits):
        reader = replace(reader, sketch=field)
    if frequency_table is True and is_counted(reader, chosen):
        reader = reader.counted(hits, range(len(hits)))
    ranks = _best_ranks(placed)
    every = replace(chosen, window=max(len(hits), 1), max_window=max(len(hits), 1))  # all hits are in memory

    def arranged(stream: Stream) -> Stream:
        if by != "reciprocal_rank":
            return stream
        return fused_by_group(stream, [ranks[rank] for rank in stream.ranks.tolist()])

    page = page_of_list(hits, size, from_, reader, every, arranged=arranged)
    lacking = _NO_SKETCH if items is None else f"no hit has a field of {', '.join(items.paths)}"
    degraded = lacking if page.info.compares_none else ""
    page = replace(page, info=replace(page.info, took=perf_counter() - began, degraded=degraded))
    return _response(page, answers, reader)


class _Answer(NamedTuple):
    """A response as a dict, and its origin. labelled: whether its hits get a field with the origin."""

    origin: Origin
    body: Response
    labelled: bool

    @property
    def hits(self) -> Sequence[Hit]:
        hits: Sequence[Hit] = self.body["hits"]["hits"]
        return hits


def _answers(responses: Any) -> list[_Answer]:
    """Return the responses with their origins. Raises TypeError for anything else."""
    if isinstance(responses, str) or _is_response(responses):
        raise TypeError(f"responses must be a list of search responses, got one {type(responses).__name__}")
    if isinstance(responses, Mapping):
        named = [_Answer(name, body, labelled=True) for name, one in responses.items() for body in _bodies(one)]
    else:
        bodies = [_listed(one) if isinstance(one, list | tuple) else _body(one) for one in responses]
        named = [_Answer(place, body, labelled=len(bodies) > 1) for place, body in enumerate(bodies)]
    for answer in named:
        if not _is_response(answer.body):
            wanted = "a list of search responses, or of lists of hits"
            raise TypeError(f"responses must be {wanted}, with hits.hits; one is {answer.body!r:.80}")
    return named


def _bodies(given: Any) -> list[Any]:
    """Return what a name stands for as responses: one, several, or a list of hits."""
    if not isinstance(given, list | tuple):
        return [_body(given)]
    return [_body(one) for one in given] if any(map(_is_response, given)) else [_listed(given)]


def _listed(hits: Sequence[Any]) -> Response:
    made: list[Hit] = []
    for one in hits:
        scored = isinstance(one, list | tuple) and len(one) == 2 and not isinstance(one[1], str)
        given, score = one if scored else (one, None)
        given = as_mapping(given)
        if isinstance(given, Mapping) and isinstance(given.get("_source"), Mapping):  # of an engine
            made.append({"_score": score, **given})
        elif isinstance(given, str | Mapping) and (score is None or hasattr(score, "__float__")):
            of_text = {"_source": {"text": given}, _TEXT: given} if isinstance(given, str) else {"_source": dict(given)}
            made.append({"_score": None if score is None else float(score), **of_text})
        else:
            raise TypeError(f"a list holds texts, mappings, or pairs of these and a score, got {str(one)[:80]}")
    return {"hits": {"hits": made}}


def _body(response: Any) -> Any:
    """Return a response as a dict; elasticsearch-py's responses are objects."""
    return getattr(response, "body", response)


def _is_response(response: Any) -> bool:
    body = _body(response)
    found = body.get("hits") if isinstance(body, Mapping) else None
    return isinstance(found, Mapping) and isinstance(found.get("hits"), list)


@dataclass(frozen=True, eq=False)
class _Reader(HitReader):
    """Reads the hits of the responses. field: the object with their sketches."""

    field: SketchField = _FIELD

    def identities(self, hits: Sequence[Hit], ranks: Sequence[int]) -> list[Hashable]:
        return [_identity(hit) or rank for hit, rank in zip(hits, ranks, strict=True)]

    def value(self, hit: Hit, field: str) -> Any:
        return value_in(hit, field)

    def numbers(self, hit: Hit) -> int | None:
        stored = self.field.numbers_in(hit.get("fields") or {})
        return super().numbers(hit) if stored is None else stored

    def plain(self, hit: Hit) -> Hit:
        """Return a new dict: the hit without the sketch."""
        ours = (*self.field.paths, SIMILARITY, DUPLICATE_OF, OF_INDEX, SHARES)
        return without_fields({name: value for name, value in hit.items() if name != _TEXT}, ours)

    def stored(self, hits: Sequence[Hit]) -> Sequence[Sketch | Lack]:
        return self.field.decode(hits, self.recipe)


def _text_of(text: Text | None, hit: Hit) -> str | None:
    """Return what is sketched of a hit without a sketch."""
    if _TEXT in hit:
        return str(hit[_TEXT])
    if callable(text):
        return text(hit)
    return text_of(hit.get("_source") or {}, [text] if isinstance(text, str) else text or ())


class _Place(NamedTuple):
    """A hit of a response. response: index of the response. rank: of the hit there, from 1."""

    hit: Hit
    response: int
    rank: int


def _placed(answers: Sequence[_Answer]) -> Iterator[_Place]:
    """Yield every hit of every response, and its duplicates, each as a new dict."""
    for place, answer in enumerate(answers):
        for rank, hit in enumerate(answer.hits, 1):
            inner = dict(hit.get("inner_hits") or {})
            duplicates = inner.pop(INNER, {"hits": {"hits": []}})["hits"]["hits"]
            rest = {name: value for name, value in hit.items() if name != "inner_hits"}
            leader = _with_origin({**rest, **({"inner_hits": inner} if inner else {})}, answer)
            yield _Place(leader, place, rank)
            for one in duplicates:
                if "_source" not in one and not (one.get("fields") or {}).keys() - {SIMILARITY, SHARES, _ORIGIN}:
                    what = f"document {one.get('_id')!r} is listed by its id alone, and cannot be compared"
                    raise ValueError(f'{what}: search for documents or sketches, not with mode="ids"')
                yield _Place(_with_origin(one, answer), place, rank)


def _with_origin(hit: Hit, answer: _Answer) -> Hit:
    """Return the hit with its origin, in front of the origin from an earlier merge."""
    if not answer.labelled:
        return hit
    fields = hit.get("fields") or {}
    return {**hit, "fields": {**fields, _ORIGIN: [answer.origin, *fields.get(_ORIGIN, ())]}}


def _identity(hit: Hit) -> tuple[Hashable, ...] | None:
    """Return the key of a document, None for a hit without index or id (`filter_path`)."""
    index, id = hit.get("_index"), hit.get("_id")
    if index is None or id is None:
        return None
    return *(hit.get("fields") or {}).get(_ORIGIN, ()), index, id, hit.get("_routing")


def _ranked(placed: list[_Place], by: By) -> list[_Place]:
    """Return all hits in one order. With "reciprocal_rank", a hit of several responses is at the place of its sum."""
    if by == "score":
        return sorted(placed, key=lambda one: -_score(one.hit))
    if by == "round_robin":
        return sorted(placed, key=lambda one: one.rank)
    ranks = _best_ranks(placed)
    return [placed[number] for number in sorted(range(len(placed)), key=lambda number: -reciprocal(ranks[number]))]


def _best_ranks(placed: Sequence[_Place]) -> list[dict[int, int]]:
    """Return for each hit the best rank of its document in each response, which may list it twice."""
    keys: list[Hashable] = [_identity(one.hit) or number for number, one in enumerate(placed)]
    best: defaultdict[Hashable, dict[int, int]] = defaultdict(dict)
    for key, one in zip(keys, placed, strict=True):
        best[key][one.response] = min(one.rank, best[key].get(one.response, one.rank))
    return [best[key] for key in keys]


def _score(hit: Hit) -> float:
    score = hit.get("_score")
    if score is None:
        raise ValueError('a hit has no _score (a search with "sort" gives none): merge by="reciprocal_rank" instead')
    return float(score)


def _response(page: Page, answers: Sequence[_Answer], reader: _Reader) -> dict[str, Any]:
    responses = [one.body for one in answers]
    shards = [one["_shards"] for one in responses if "_shards" in one]
    added = {name: sum(one.get(name, 0) for one in shards) for name in ("total", "successful", "skipped", "failed")}
    scores = [one["hits"]["max_score"] for one in responses if one["hits"].get("max_score") is not None]
    hits: dict[str, Any] = {"max_score": max(scores, default=None), "hits": hits_of(page, reader.plain)}
    whole = all(_all_there(one) for one in responses)
    total = _total(answers)
    if total is not None:
        hits = {"total": total_of(page, total) if whole else total, **hits}
    page = replace(page, info=replace(page.info, exhausted=whole, unique=page.info.unique if whole else None))
    return {
        "took": max((one.get("took", 0) for one in responses), default=0),
        "timed_out": any(one.get("timed_out") for one in responses),
        **({"_shards": added} if shards else {}),
        "hits": hits,
        "ndd": block_of(page, reader.plain),
    }


def _total(answers: Sequence[_Answer]) -> dict[str, Any] | None:
    """Return how many documents match in all clusters, None if a response has no total.

    Several responses of one cluster may match the same documents, so their largest total is a lower bound.
    """
    by_origin: defaultdict[Origin, list[tuple[int, bool]]] = defaultdict(list)
    for answer in answers:
        found = _total_of(answer.body)
        if found is None:
            return None
        by_origin[answer.origin].append(found)
    if not by_origin:
        return None
    value = sum(max(several)[0] for several in by_origin.values())
    exact = all(len(several) == 1 and several[0][1] for several in by_origin.values())
    return {"value": value, "relation": "eq" if exact else "gte"}


def _total_of(response: Response) -> tuple[int, bool] | None:
    """Return a response's total, and whether it is exact.

    None if hits were not counted (also as -1, with rest_total_hits_as_int).
    """
    total = response["hits"].get("total")
    if isinstance(total, Mapping):
        return total["value"], total["relation"] == "eq"
    return None if total is None or total < 0 else (total, True)


def _all_there(response: Response) -> bool:
    """Return whether a response holds every matching document."""
    return _total_of(response) == (len(response["hits"]["hits"]), True)


RANK_CONSTANT = 60  # of the paper, and the engines' default

Ranks = Mapping[int, int]  # list -> rank in it, from 1


def reciprocal(ranks: Ranks) -> float:
    return sum(1 / (RANK_CONSTANT + rank) for rank in ranks.values())


def fused_by_group(stream: Stream, ranks: Sequence[Ranks]) -> Stream:
    """Return a stream in which each leader stands at the place of its group, and every other hit at its own.

    ranks: of each hit. No hit moves before its leader, whose group has at least the reciprocal ranks of each member.
    """
    groups: dict[int, dict[int, int]] = {}
    leader = stream.leader.tolist()
    for index, of in enumerate(leader):
        best = groups.setdefault(of, {})
        for response, rank in ranks[index].items():
            best[response] = min(rank, best.get(response, rank))
    scores = [reciprocal(groups[of] if of == index else ranks[index]) for index, of in enumerate(leader)]
    order = sorted(range(len(leader)), key=lambda index: (-scores[index], index))
    return replace(stream.only(order), ranks=np.arange(len(order)))
