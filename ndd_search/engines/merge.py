"""One deduplicated page out of several responses: of several clusters, or of indexes that were searched one by one.

    sketches = ["ndd.sketch", "ndd.recipe"]
    responses = [client.search(index="news", query=query, size=100, docvalue_fields=sketches) for client in clients]
    response = ndd_search.merge(responses, by="reciprocal_rank", size=10)

Hits carry their sketches only when the search asked for them, through a wrapped client or another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal

from ndd_search.census import count_in_list
from ndd_search.common_values import CommonValues
from ndd_search.config import Recipe, check_page, collapse_options
from ndd_search.documents import text_of
from ndd_search.engines.answers import value_in
from ndd_search.engines.response import DUPLICATE_OF, INNER, SIMILARITY, block_of, hits_of, total_of
from ndd_search.field import SketchField
from ndd_search.numbers import numbers_value
from ndd_search.page import Page, cut
from ndd_search.sketches import Sketch, sketch_many
from ndd_search.stream import Stream

By = Literal["score", "reciprocal_rank", "round_robin"]
Hit = dict[str, Any]
Text = str | Sequence[str] | Callable[[Hit], str | None]

_RANK_CONSTANT = 60  # of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009), and the engines' default
_NO_SKETCH = "no hit brings a sketch: search with docvalue_fields ndd.sketch and ndd.recipe, or say text="


def merge(
    responses: Sequence[Mapping[str, Any]],
    *,
    by: By = "score",
    size: int = 10,
    from_: int = 0,
    text: Text | None = None,
    recipe: Recipe | str | None = None,
    field: str = "ndd",
    common: CommonValues | bool = True,
    **changes: Any,
) -> dict[str, Any]:
    """Merge the hits of several responses, collapse their near-duplicates and cut one page out of what is left.

    responses: of searches in Elasticsearch or OpenSearch, their hits with sketches among the doc values (see above).
               A hit of several responses, the same `_index` and `_id`, is one hit; a hit without a sketch stands alone.
               What was collapsed already is collapsed anew, together with what it stood for.
    by:        "score" sorts by `_score`, which compares only within one kind of query on like indexes;
               "reciprocal_rank" by the sum of 1 / (60 + rank) over the responses that have the hit; "round_robin" takes
               the first of each response, then the second of each. Ties go to the earlier response.
    size, from_: the page, as positions in the merged list without near-duplicates.
    text:      a field of `_source`, several, or a callable(hit), to sketch hits that bring no sketch; for
               numbers_must_match where they bring no ndd.numbers.
    recipe, field: whose sketches, and the object that holds them.
    common, changes: as in `collapse`; True counts in all hits.
    Returns a response in the engines' shape: `took` is that of the slowest, `_shards` and totals add up, `_score` is
    the engine's own whatever the order. Raises ValueError and TypeError for what cannot be.
    """
    began = perf_counter()
    if isinstance(responses, Mapping | str):
        raise TypeError(f"responses must be a list of search responses, got one {type(responses).__name__}")
    bodies = [getattr(one, "body", one) for one in responses]  # elasticsearch-py's answers are objects
    for one in bodies:
        found = one.get("hits") if isinstance(one, Mapping) else None
        if not (isinstance(found, Mapping) and isinstance(found.get("hits"), list)):
            raise TypeError(f"responses must be a list of search responses, with hits.hits; one is {str(one)[:80]}")
    if by not in ("score", "reciprocal_rank", "round_robin"):
        raise ValueError(f"by must be one of score, reciprocal_rank, round_robin, got {by!r}")
    check_page(size, from_)
    chosen = collapse_options(**changes)
    reader = _Reader(Recipe.of(recipe), None if isinstance(common, bool) else common, SketchField(field), text)
    hits = _ranked([one["hits"]["hits"] for one in bodies], by)
    if common is True and chosen.min_similarity == "auto":
        reader = reader.counted(hits)
    stream = Stream().extend(hits, len(hits) + 1, reader, chosen)
    every = replace(chosen, window=max(len(hits), 1), max_window=max(len(hits), 1))  # all of them are there already
    page = cut(stream, from_, size, reader, every)
    degraded = _NO_SKETCH if hits and set(stream.lacking) == {"missing"} else ""
    page = replace(page, info=replace(page.info, took=perf_counter() - began, degraded=degraded))
    return _response(page, bodies, reader)


@dataclass(frozen=True)
class _Reader:
    """Hits as the engines give them. text: what is sketched of a hit that brings no sketch."""

    recipe: Recipe
    common: CommonValues | None
    field: SketchField
    text: Text | None

    def counted(self, hits: Sequence[Hit]) -> _Reader:
        """With a table of its own, counted in the hits."""
        sketches = [one for one in self.sketches(hits, range(len(hits))) if not isinstance(one, str)]
        return replace(self, common=count_in_list(sketches, self.recipe))

    def sketches(self, hits: Sequence[Hit], ranks: Sequence[int]) -> list[Sketch | str]:
        found = self.field.decode([hit.get("fields") or {} for hit in hits], self.recipe)
        if self.text is None:
            return found
        missing = [isinstance(one, str) and one == "missing" for one in found]
        texts = [self._text(hit) if lacks else None for hit, lacks in zip(hits, missing, strict=True)]
        made = iter(sketch_many((text for text in texts if text is not None), self.recipe))
        return [one if text is None else _or_empty(next(made)) for one, text in zip(found, texts, strict=True)]

    def identity(self, hit: Hit, rank: int) -> tuple[Any, Any]:
        return hit.get("_index"), hit.get("_id")

    def value(self, hit: Hit, field: str) -> Any:
        return value_in(hit, field)

    def numbers(self, hit: Hit) -> int | None:
        stored = self.field.numbers_in(hit.get("fields") or {})
        text = self._text(hit) if stored is None else None
        return stored if text is None else numbers_value(text, self.recipe)

    def plain(self, hit: Hit) -> Hit:
        """A new dict: the hit without the sketch."""
        ours = (self.field.sketch, self.field.recipe, self.field.numbers, SIMILARITY, DUPLICATE_OF)
        fields = {name: value for name, value in (hit.get("fields") or {}).items() if name not in ours}
        rest = {name: value for name, value in hit.items() if name != "fields"}
        return {**rest, **({"fields": fields} if fields else {})}

    def _text(self, hit: Hit) -> str | None:
        if callable(self.text):
            return self.text(hit)
        paths = [self.text] if isinstance(self.text, str) else self.text or ()
        return text_of(hit.get("_source") or {}, paths)


def _or_empty(sketch: Sketch) -> Sketch | str:
    return sketch if len(sketch) else "empty"


def _ranked(lists: Sequence[Sequence[Hit]], by: By) -> list[Hit]:
    """All hits in one order; a hit of several lists at its best place, or at the place of its sum."""
    placed = list(_placed(lists))
    if by == "score":
        placed.sort(key=lambda one: -_score(one.hit))
    elif by == "round_robin":
        placed.sort(key=lambda one: one.rank)
    else:
        sums: dict[tuple[Any, Any], float] = {}
        for one in placed:
            key = one.hit.get("_index"), one.hit.get("_id")
            sums[key] = sums.get(key, 0.0) + 1 / (_RANK_CONSTANT + one.rank)
        placed.sort(key=lambda one: -sums[one.hit.get("_index"), one.hit.get("_id")])
    return [one.hit for one in placed]


@dataclass(frozen=True)
class _Place:
    """A hit of a response. rank: its place there, from 1."""

    hit: Hit
    rank: int


def _placed(lists: Sequence[Sequence[Hit]]) -> Iterator[_Place]:
    for hits in lists:
        for rank, hit in enumerate(hits, 1):
            inner = dict(hit.get("inner_hits") or {})
            stood_for = inner.pop(INNER, {"hits": {"hits": []}})["hits"]["hits"]
            rest = {name: value for name, value in hit.items() if name != "inner_hits"}
            yield _Place({**rest, **({"inner_hits": inner} if inner else {})}, rank)
            yield from (_Place(one, rank) for one in stood_for)


def _score(hit: Hit) -> float:
    score = hit.get("_score")
    if score is None:
        raise ValueError('a hit has no _score (a search with "sort" gives none): merge by="reciprocal_rank" instead')
    return float(score)


def _response(page: Page, responses: Sequence[Mapping[str, Any]], reader: _Reader) -> dict[str, Any]:
    shards = [one["_shards"] for one in responses if "_shards" in one]
    added = {name: sum(one.get(name, 0) for one in shards) for name in ("total", "successful", "skipped", "failed")}
    scores = [one["hits"]["max_score"] for one in responses if one["hits"].get("max_score") is not None]
    hits: dict[str, Any] = {"max_score": max(scores, default=None), "hits": hits_of(page, reader.plain)}
    whole = all(_all_there(one) for one in responses)
    total = _total(responses)
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


def _total(responses: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The sum of what the engines say match, None when one of them does not say."""
    totals = [one["hits"].get("total") for one in responses]
    if not totals or None in totals or -1 in totals:  # with rest_total_hits_as_int, for hits that were not counted
        return None
    objects = [{"value": one, "relation": "eq"} if isinstance(one, int) else one for one in totals]
    relation = "eq" if all(one["relation"] == "eq" for one in objects) else "gte"
    return {"value": sum(one["value"] for one in objects), "relation": relation}


def _all_there(response: Mapping[str, Any]) -> bool:
    """Whether a response holds every hit that matches."""
    total = _total([response])
    return total is not None and total == {"value": len(response["hits"]["hits"]), "relation": "eq"}
