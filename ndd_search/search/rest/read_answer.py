"""Reads the answer of an engine to a search: whether it failed, whether it is complete, its parts and sketches.

The doc values of a sketch make up most of the text of a hit, and of the time to parse it. So the native core reads the
sketches out of the text before it is parsed, and leaves a number in the place of each. If the hits do not have all of
these numbers, in their order, the text is parsed as it is, and its sketches stay in the hits. Without the core all do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from itertools import repeat
from operator import contains
from typing import Any

from ndd_search import native
from ndd_search.core.document_fields import splits, value_of
from ndd_search.core.immutable import cached_property, dataclass
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.paging.record_schema import RecordSchema
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Lack, Sketch
from ndd_search.core.sketching.stored_sketch import Cuts, SketchField, StoredSketches, listed

Hit = dict[str, Any]
# For each search of an answer, the sketches that were cut out of its hits, None if it has no hits; () for none.
CutSketches = Sequence[Sequence[Sketch | Lack] | None]

# Errors of code that reads an answer whose parts have other types than an engine gives them, or are not there.
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

_OK = HTTPStatus.OK.value
_KINDS = {"_index": str, "_id": str, "_routing": str, "fields": dict, "_source": dict}  # of the members of a hit
_WINDOW_LIMIT = re.compile(r"from \+ size must be less than or equal to: \[(\d+)\]")


@dataclass(frozen=True)
class Answer:
    """An answer. body: parsed JSON. raw: the client's own object, None for an answer that we made.

    cut: the sketches that were cut out of the body (see `parsed`).
    """

    body: Any
    status: int = 200
    raw: Any = None
    cut: CutSketches = ()

    @property
    def ok(self) -> bool:
        """Whether the status reports success."""
        return 200 <= self.status < 300

    @cached_property
    def has_hits(self) -> bool:
        """Whether this is the answer to a search, in the shape that engines give it: a proxy may have changed it."""
        return self.ok and isinstance(self.body, dict) and _is_answer_to_search(self.body)

    @property
    def hits(self) -> list[Hit]:
        found: list[Hit] = self.body["hits"]["hits"]
        return found

    def sketches(self, field: SketchField, recipe: Recipe) -> Sequence[Sketch | Lack]:
        """Return the sketch of each hit of a search, or why it has none."""
        if self.cut and (cut := self.cut[0]) is not None:
            return cut
        return field.decode(self.hits, recipe)

    @property
    def partial(self) -> bool:
        """Whether a search timed out, or failed on some shards."""
        return bool(self.body.get("timed_out") or self.failed_shards)

    @property
    def failed_shards(self) -> int:
        """Number of shards whose hits are missing."""
        failed = (self.body.get("_shards") or {}).get("failed")
        return failed if isinstance(failed, int) else bool(failed)

    @property
    def complaint(self) -> str:
        """Why the engine, or some shards, refused the search; "" if none did."""
        if not self.has_hits:
            return str(self.body)
        failures = (self.body.get("_shards") or {}).get("failures") or []
        reasons = [one.get("reason") or {} for one in failures]
        return " ".join(str(one.get("reason") or one.get("type")) for one in reasons)

    @property
    def reason(self) -> str:
        """The complaint in one sentence."""
        return self.complaint if self.has_hits else reason_of(self.body)

    @property
    def clusters(self) -> dict[str, int]:
        """Numbers of clusters by outcome (successful, skipped, ...), for a search over several clusters."""
        counts = self.body.get("_clusters")
        return {name: count for name, count in counts.items() if isinstance(count, int)} if counts else {}

    @property
    def whole(self) -> bool:
        """Whether this is the answer to a search, and not partial."""
        return self.has_hits and not self.partial

    @property
    def total(self) -> int | None:
        """Number of documents that match, None if they were not counted."""
        total = self.body["hits"].get("total")
        value = total.get("value") if isinstance(total, dict) else total
        return value if isinstance(value, int) and value >= 0 else None  # -1 with rest_total_hits_as_int

    @property
    def exact_total(self) -> int | None:
        """Number of documents that match, None if it is not known, or only a bound of it."""
        total = self.body["hits"].get("total")
        return None if isinstance(total, dict) and total.get("relation") != "eq" else self.total

    @property
    def took(self) -> int | None:
        """Milliseconds by the engine's clock."""
        took = self.body.get("took")
        return took if isinstance(took, int) else None

    def apart(self, count: int) -> list[Answer]:
        """Return the answers to `count` searches of an `_msearch`; this one, as failed, for each if it is malformed."""
        found = self.body.get("responses") if self.ok and isinstance(self.body, dict) else None
        if not isinstance(found, list) or len(found) != count or not all(isinstance(one, dict) for one in found):
            return [Answer(self.body, HTTPStatus.NOT_IMPLEMENTED if self.ok else self.status, self.raw)] * count
        bodies = [{name: value for name, value in one.items() if name != "status"} for one in found]
        return [
            Answer(body, status_in(one), self.raw, self.cut[at : at + 1])
            for at, (body, one) in enumerate(zip(bodies, found, strict=True))
        ]


@dataclass(frozen=True, eq=False)
class HitReader:
    """Reads the hits of an engine. found: sketches of the hits from rank `start` on. items: compares them instead.

    text: reads the text of a hit, None if no text is wanted.
    """

    recipe: Recipe
    field: SketchField
    frequency_table: FrequencyTable | None
    found: Sequence[Sketch | Lack] = ()
    start: int = 0
    items: RecordSchema | None = None
    text: Callable[[Hit], str | None] | None = None

    def sketches(self, hits: Sequence[Hit], ranks: Sequence[int]) -> Sequence[Sketch | Lack]:
        if isinstance(ranks, range):  # no hit is left out
            first, end = ranks.start - self.start, ranks.stop - self.start
            return self.found if (first, end) == (0, len(self.found)) else self.found[first:end]
        return [self.found[rank - self.start] for rank in ranks]

    def identities(self, hits: Sequence[Hit], ranks: Sequence[int]) -> Sequence[Hashable]:
        if not any(map(contains, hits, repeat("_id"))):  # sketches were fetched without ids
            return ranks
        return [
            (hit.get("_index"), hit.get("_id", rank), hit.get("_routing"))
            for hit, rank in zip(hits, ranks, strict=True)
        ]

    def value(self, hit: Hit, field: str) -> Any:
        return value_in(hit, field)

    def numbers(self, hit: Hit) -> int | None:
        return self.field.numbers_in(hit.get("fields") or {})

    def text_of(self, hit: Hit) -> str | None:
        return self.text(hit) if self.text else None


def status_in(response: dict[str, Any]) -> int:
    """The status of one search of an `_msearch`; 502 where it is no number."""
    status = response.get("status", _OK)
    return status if isinstance(status, int) else HTTPStatus.BAD_GATEWAY


def identity_of(hit: Hit) -> tuple[Any, ...]:
    """Return what names the document of a hit."""
    return hit.get("_index"), hit.get("_id"), hit.get("_routing")


def value_in(hit: Hit, field: str) -> Any:
    """Return the value of a field, from `fields` or else `_source`. A list of one value in `fields` is unwrapped."""
    fields = hit.get("fields") or {}
    found = fields.get(field)
    if found is None and "." in field and fields:
        found = [*_values_within(fields, field)] or None
    if found is None:
        return value_of(hit.get("_source") or {}, field)
    return found[0] if isinstance(found, list) and len(found) == 1 else found


def _values_within(fields: dict[str, Any], path: str) -> Iterator[Any]:
    """Yield the values of a field of nested documents, which Elasticsearch returns as objects: {"a": [{"b": [1]}]}."""
    for head, rest in splits(path):
        for inner in listed(fields.get(head)):
            if isinstance(inner, dict):
                yield from listed(inner.get(rest))
                yield from _values_within(inner, rest)


def envelope_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without its hits, and without the status that one of an `_msearch` has."""
    body = {name: value for name, value in body.items() if name != "status"}
    return {**body, "hits": {name: value for name, value in body["hits"].items() if name != "hits"}}


def envelope_after(envelope: dict[str, Any], answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the first answer's envelope after another trip, whose requests ran in parallel.

    `took` is added up, and `timed_out` is true if it is in any answer.
    """
    took = [one.took for one in answers if one.took is not None]
    before = envelope.get("took")
    joined = {**envelope, **({"took": before + max(took)} if took and isinstance(before, int) else {})}
    if any(one.body.get("timed_out") for one in answers):
        joined["timed_out"] = True
    return joined


def shards_of(body: Mapping[str, Any]) -> int:
    """Return the number of shards that an answer is of."""
    return (body.get("_shards") or {}).get("total") or 1


def error_of(kind: str, reason: str, status: int) -> dict[str, Any]:
    """Return an error of our own in the shape of the engines' errors."""
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": int(status)}


def reason_of(refused: Any) -> str:
    """Return the first cause in the body of a failed answer, or a client's error as text."""
    try:
        return str(refused["error"]["root_cause"][0]["reason"])
    except (TypeError, KeyError, IndexError):
        return str(refused)[:300]


def index_in(refused: Any) -> str:
    """Return the index that the body of a failed answer names, without the arithmetic of dates; "" if it names none."""
    error = refused.get("error") if isinstance(refused, Mapping) else None
    name = error.get("index") if isinstance(error, Mapping) else None
    return name if isinstance(name, str) else ""


def window_limit(complaint: str) -> int | None:
    """Return the smallest `max_result_window` that the complaint names, None if it names none."""
    return min(map(int, _WINDOW_LIMIT.findall(complaint)), default=None)


def without_fields(hit: Hit, names: Sequence[str]) -> Hit:
    """Return a new dict: the hit without some of its fields."""
    copied = dict(hit)
    if fields := hit.get("fields"):
        copied["fields"] = dict(fields)
        drop_fields(copied, names)
    return copied


def drop_fields(hit: Hit, names: Sequence[str]) -> None:
    """Remove some fields from a hit, and `fields` itself if it becomes empty."""
    if fields := hit.get("fields"):
        for name in names:
            if name in fields:
                del fields[name]
            elif "." in name:
                _drop_within(fields, name)
        if not fields:
            del hit["fields"]


def _drop_within(fields: dict[str, Any], path: str) -> None:
    """Remove a field inside nested documents, and those of them that become empty, in new lists."""
    for head, rest in splits(path):
        inner = fields.get(head)
        if isinstance(inner, list) and inner and all(isinstance(one, dict) for one in inner):
            left = [{name: value for name, value in one.items() if name != rest} for one in inner]
            for one in left:
                _drop_within(one, rest)
            if kept := [one for one in left if one]:
                fields[head] = kept
            else:
                del fields[head]


def _is_answer_to_search(body: dict[str, Any]) -> bool:
    hits, shards, clusters = body.get("hits"), body.get("_shards") or {}, body.get("_clusters") or {}
    if not (isinstance(hits, dict) and isinstance(shards, dict) and isinstance(clusters, dict)):
        return False
    total, failures, listed = hits.get("total"), shards.get("failures") or [], hits.get("hits")
    value = total.get("value") if isinstance(total, dict) else total
    if not isinstance(value, int) and total is not None:
        return False
    if not isinstance(failures, list) or not isinstance(listed, list):
        return False
    for one in failures:
        if not isinstance(one, dict) or not isinstance(one.get("reason") or {}, dict):
            return False
    return _are_hits(listed)


def _are_hits(listed: list[Any]) -> bool:
    """Return whether all are hits. The types of a member are compared for all hits together, in a third of the time."""
    if not all(map(issubclass, set(map(type, listed)), repeat(dict))):
        return False
    for name, kind in _KINDS.items():
        kinds = {type(hit[name]) for hit in listed if name in hit}
        if kinds != {kind} and not all(map(issubclass, kinds, repeat(kind))):
            return False
    return all(map(contains, listed, repeat("_index")))


def parsed(text: Any, parse: Callable[..., Any], stored: StoredSketches, *kind: Any) -> tuple[Any, CutSketches]:
    """Return a parsed answer, and the sketches that were cut out of it.

    text: anything but str and bytes is parsed as it is. parse: called with a text, and with `kind`.
    """
    core = native.core if isinstance(text, str | bytes) else None
    if core is not None and (found := core.cut_sketches(text, stored.field.sketch, stored.recipe.k)):
        body, cuts = parse(found[0], *kind), Cuts(*found[1:])
        with suppress(*MALFORMED):
            lists = [one["hits"]["hits"] if "hits" in one else None for one in body.get("responses", [body])]
            decode = stored.field.decode
            sketches = [None if hits is None else decode(hits, stored.recipe, cuts) for hits in lists]
            if cuts.are_all_found:
                return body, sketches
    return parse(text, *kind), ()
