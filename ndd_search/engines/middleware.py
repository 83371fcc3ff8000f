"""One search on its way to an engine and back, without any I/O: requests come out, answers are sent in.

An exception of the client is thrown into the flow at the place where its request came out. On the first request it
passes through untouched; later it ends the search for more hits, and the caller gets the page made of what is there.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from time import perf_counter
from typing import Any

from ndd_search.cache import cache_key
from ndd_search.config import CollapseOptions, Recipe, collapse_options
from ndd_search.decision import CommonValues
from ndd_search.documents import value_of
from ndd_search.engines.filter_path import filtered
from ndd_search.engines.limits import raised
from ndd_search.engines.request import Request, Search, any_sketch, asked_for, read_search, sample, widened
from ndd_search.engines.response import block_of, hits_of, total_of
from ndd_search.engines.settings import Settings
from ndd_search.field import SketchField
from ndd_search.keep import fields_of
from ndd_search.page import Fetch, cut, next_fetch
from ndd_search.sketch import Sketch
from ndd_search.stream import Stream

MAX_RESULT_WINDOW = 10_000  # the engines' default
_COUNT_AGAIN = 3600.0  # seconds
_TRACING = {"traceparent", "tracestate", "x-opaque-id", "user-agent", "x-elastic-client-meta", "content-length"}
_WINDOW_LIMIT = re.compile(r"from \+ size must be less than or equal to: \[(\d+)\]")

_NO_NUMBERS = (
    "hits without stored numbers stand alone: run ndd-search backfill --numbers, or turn numbers_must_match off"
)

Hit = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What came back. body: parsed JSON. raw: the client's own object, None for what we made."""

    body: Any
    status: int = 200
    raw: Any = None

    @property
    def ok(self) -> bool:
        """Whether the engine did what it was asked."""
        return 200 <= self.status < 300


Flow = Generator[Request, Answer, Answer]


def conversation(request: Request, settings: Settings, changes: Mapping[str, Any] | None) -> Conversation | None:
    """How to answer a request, None when it is left alone.

    changes: options of the surrounding `ndd_search.options`; None switches us off.
    Raises TypeError or ValueError for options that cannot be.
    """
    search = None if changes is None else read_search(request)
    if search is None or changes is None:
        return None
    path = search.request.path
    wishes = {**changes, **search.changes}
    remember = bool(wishes.pop("cache", True))
    options = collapse_options(settings.options, **wishes)
    if settings.clock() < settings.plain_until.get(path, 0):
        return None
    wanted = search.start + search.size
    limit = min(settings.window_limit.get(path, MAX_RESULT_WINDOW), search.limit or MAX_RESULT_WINDOW)
    if wanted > limit:
        return None  # so deep that the engine itself has to say what it can do
    most = min(options.max_window, limit)
    if search.one_window:
        doublings = max(0, (wanted - 1) // options.window).bit_length()
        most = min(most, options.window << doublings)
        options = replace(options, window=most, max_window=most)
    return Conversation(search, replace(options, window=min(options.window, most), max_window=most), settings, remember)


class Conversation:
    """What is said to the engine for one search, and what the caller gets."""

    def __init__(self, search: Search, options: CollapseOptions, settings: Settings, remember: bool) -> None:
        self.search, self.options, self.settings = search, options, settings
        self._began, self._waited = perf_counter(), 0.0
        self._values = fields_of(options)
        self._numbers = [self._field.numbers] if options.numbers_must_match else []
        self._sketch_fields = [name for name in (self._field.sketch, self._field.recipe) if not asked_for(search, name)]
        self._not_asked_for = [name for name in (*self._values, *self._numbers) if not asked_for(search, name)]
        self.key: bytes | None = None
        self._stream_key: bytes | None = None
        if remember and settings.cache is not None:
            self._stream_key = self._make_key(replace(options, keep=("score",)), self._values)
            if not any(map(callable, options.keep)):
                self.key = self._make_key(options, search.start, search.size)

    def remembered(self) -> Answer | None:
        """The finished page, if it is in the cache."""
        value = self._get(self.key)
        if value is None:
            return None
        body = pickle.loads(value)
        if "ndd" in body:
            body["ndd"]["cache"] = "hit"
        return Answer(body)

    def flow(self) -> Flow:
        """Ask for hits until the page is full; the generator's value is the answer for the caller."""
        state, fresh = self._known_state() or _State(), False
        while (wish := next_fetch(state.stream, self.search.start, self.search.size, self.options)) is not None:
            first = state.envelope is None
            if not first and self._seconds_left() <= 0:
                state = self._degraded(state, "out of time, the page is made of the first hits")
                break
            wider = widened(self.search, wish.start, wish.size, self._field, self._values, self._numbers)
            answer = yield from self._ask(wider, first)
            if first and not _is_response(answer):
                return (yield from self._as_asked(answer))
            if not _is_response(answer) or (not first and _is_partial(answer.body)):
                state = self._degraded(state, "a later round failed, the page is made of the first hits")
                break
            if first:
                yield from self._count_common(answer)
            state, fresh = self._extended(state, answer, wish), True
            if first and state.stream.lacking and set(state.stream.lacking) == {"missing"}:
                return (yield from self._without_us(state))
        if fresh and state.lasting:
            self._put(self._stream_key, state)
        body = self._response(state, "off" if self._stream_key is None else "miss" if fresh else "hit")
        if state.lasting:
            self._put(self.key, body)
        return Answer(body, raw=state.raw)

    @property
    def path(self) -> str:
        """What is searched, as the URL says it: what is learnt about an index is kept under it."""
        return self.search.request.path

    def _count_common(self, answer: Answer) -> Generator[Request, Answer, None]:
        """Have the common values of what is searched counted, if the decision wants them and the index has sketches."""
        until, _ = self.settings.counted.get(self.path, (0.0, None))
        if self.options.min_similarity != "auto" or self.settings.common is not True or self.settings.clock() < until:
            return
        if not any(self._field.sketch in (hit.get("fields") or {}) for hit in answer.body["hits"]["hits"]):
            return
        sampled = yield from self._ask(sample(self.search, self._field, self.settings.recipe), first=False)
        common = None
        if _is_response(sampled):
            stored = [hit.get("fields") or {} for hit in sampled.body["hits"]["hits"]]
            found = self._field.decode(stored, self.settings.recipe)
            common = CommonValues.count([one for one in found if not isinstance(one, str)], self.settings.recipe)
        self.settings.counted[self.path] = self.settings.clock() + _COUNT_AGAIN, common

    @property
    def _common(self) -> CommonValues | None:
        common = self.settings.common
        return self.settings.counted.get(self.path, (0.0, None))[1] if isinstance(common, bool) else common

    @property
    def _field(self) -> SketchField:
        return self.settings.sketch_field

    def _ask(self, request: Request, first: bool) -> Generator[Request, Answer, Answer]:
        """One request. Exceptions of the client become failed answers, except where the user would have got them."""
        began = perf_counter()
        try:
            return (yield request if first else replace(request, timeout=self._timeout()))
        except Exception as error:
            status = getattr(error, "status_code", None)
            if first and status != HTTPStatus.BAD_REQUEST:
                raise
            return Answer(str(error), status if isinstance(status, int) else HTTPStatus.SERVICE_UNAVAILABLE)
        finally:
            self._waited += perf_counter() - began

    def _as_asked(self, refused: Answer) -> Flow:
        """The engine would not have the wider request: make it narrower if that helps, else send what the user sent."""
        if refused.status != HTTPStatus.BAD_REQUEST and not refused.ok:
            return refused
        limit = _WINDOW_LIMIT.search(str(refused.body))
        if limit and self.search.start + self.search.size <= int(limit[1]) < self.options.max_window:
            most = self.settings.window_limit[self.path] = int(limit[1])
            self.options = replace(self.options, window=min(self.options.window, most), max_window=most)
            return (yield from self.flow())
        answer = yield self.search.request
        if not _is_response(answer):
            return answer
        why = _reason(refused.body)
        if self._field.recipe in str(refused.body) and "ielddata" in str(refused.body):  # so will the next one be
            why = f"{self._field.recipe} is a text field: put the template or mapping in before the first document"
            self.settings.plain_until[self.path] = self.settings.clock() + self.settings.plain_for
        degraded = self.settings.degrade(self.path, f"the engine refused the wider request: {why}")
        return replace(answer, body={**answer.body, "ndd": {"degraded": degraded}})

    def _extended(self, state: _State, answer: Answer, wish: Fetch) -> _State:
        """The state after a round."""
        hits = answer.body["hits"]["hits"]
        sketches = self._field.decode([hit.get("fields") or {} for hit in hits], self.settings.recipe)
        reader = _Reader(self.settings.recipe, self._field, self._common, sketches, state.stream.fetched)
        stream = state.stream.extend(
            [_without_fields(hit, self._sketch_fields) for hit in hits],
            wish.size,
            reader,
            self.options,
            total=_total(answer.body),
            find=self.settings.pairs,
        )
        envelope = _envelope(answer.body) if state.envelope is None else _joined(state.envelope, answer.body)
        unknown = self._numbers and any(
            not isinstance(sketch, str) and reader.numbers(hit) is None
            for hit, sketch in zip(hits, sketches, strict=True)
        )
        return replace(
            state,
            degraded=self.settings.degrade(self.path, _NO_NUMBERS) if unknown else state.degraded,
            stream=stream,
            envelope=envelope,
            raw=state.raw or answer.raw,
            lasting=state.lasting and not _is_partial(answer.body),
        )

    def _degraded(self, state: _State, reason: str) -> _State:
        return replace(state, degraded=self.settings.degrade(self.path, reason), lasting=False)

    def _response(self, state: _State, cache: str) -> dict[str, Any]:
        """The answer in the engine's own shape, with our page and block."""
        reader = _Reader(self.settings.recipe, self._field, self._common)
        page = cut(state.stream, self.search.start, self.search.size, reader, self.options)
        took = perf_counter() - self._began - self._waited
        page = replace(page, info=replace(page.info, took=took, cache=cache, degraded=state.degraded))
        body = dict(state.envelope or {})
        body["hits"] = {**body["hits"], "hits": hits_of(page, self._plain)}
        if "total" in body["hits"]:
            body["hits"]["total"] = total_of(page, body["hits"]["total"])
        body["ndd"] = block_of(page, self._plain)
        if notes := raised(self.search.body, self.options.window)[1]:
            body["ndd"]["raised"] = notes
        return self._filtered(body)

    def _without_us(self, state: _State) -> Flow:
        """The page as the engine ranks it, for a window that holds no sketch."""
        found = yield from self._ask(any_sketch(self.search, self._field), first=False)
        if _is_response(found) and not found.body["hits"]["hits"]:
            self.settings.plain_until[self.path] = self.settings.clock() + self.settings.plain_for
        if self.search.one_window:
            return (yield self.search.request)
        body, stop = dict(state.envelope or {}), self.search.start + self.search.size
        hits = [self._plain(hit) for hit in state.stream.hits[self.search.start : stop]]
        body["hits"] = {**body["hits"], "hits": hits}
        return Answer(self._filtered(body), raw=state.raw)

    def _filtered(self, body: dict[str, Any]) -> dict[str, Any]:
        paths = self.search.request.params.get("filter_path")
        return filtered(body, f"{paths},ndd" if paths and not paths.startswith("-") else paths) if paths else body

    def _plain(self, hit: Hit) -> Hit:
        """A new dict: the hit as the user would have got it."""
        return _without_fields(hit, self._not_asked_for)

    def _seconds_left(self) -> float:
        budget = self.settings.time_budget
        return float("inf") if budget is None else budget - (perf_counter() - self._began)

    def _timeout(self) -> float | None:
        return None if self.settings.time_budget is None else self._seconds_left()

    def _make_key(self, *parts: Any) -> bytes:
        request = self.search.request
        caller = {name.lower(): value for name, value in request.headers.items() if name.lower() not in _TRACING}
        body = {key: value for key, value in self.search.body.items() if key not in ("from", "size")}
        params = {name: value for name, value in request.params.items() if name not in ("from", "size")}
        settings = (self.settings.scope, self.settings.recipe.id, self.settings.sketch_field.name)
        return cache_key(settings, caller, self.path, params, body, repr(parts))

    def _known_state(self) -> _State | None:
        value = self._get(self._stream_key)
        return None if value is None else pickle.loads(value)

    def _get(self, key: bytes | None) -> bytes | None:
        return None if key is None or self.settings.cache is None else self.settings.cache.get(key)

    def _put(self, key: bytes | None, value: Any) -> None:
        if key is not None and self.settings.cache is not None:
            if isinstance(value, _State):
                value = replace(value, raw=None)
            self.settings.cache.put(key, pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


@dataclass(frozen=True)
class _State:
    """What is known of a search. envelope: the first answer without its hits. raw: the client's own first answer.

    lasting: whether it may be remembered: nothing timed out, failed or was cut short.
    """

    stream: Stream = field(default_factory=Stream)
    envelope: dict[str, Any] | None = None
    raw: Any = None
    degraded: str = ""
    lasting: bool = True


@dataclass(frozen=True)
class _Reader:
    """Hits of an engine. found: the sketches of the hits from place `start` of the engine's list on."""

    recipe: Recipe
    field: SketchField
    common: CommonValues | None
    found: Sequence[Sketch | str] = ()
    start: int = 0

    def sketches(self, hits: Sequence[Hit], ranks: Sequence[int]) -> list[Sketch | str]:
        return [self.found[rank - self.start] for rank in ranks]

    def identity(self, hit: Hit, rank: int) -> tuple[Any, Any]:
        return hit.get("_index"), hit.get("_id")

    def value(self, hit: Hit, field: str) -> Any:
        found = (hit.get("fields") or {}).get(field)
        if found is None:
            return value_of(hit.get("_source") or {}, field)
        return found[0] if isinstance(found, list) and len(found) == 1 else found

    def numbers(self, hit: Hit) -> int | None:
        return self.field.numbers_in(hit.get("fields") or {})


def _is_response(answer: Answer) -> bool:
    hits = answer.body.get("hits") if answer.ok and isinstance(answer.body, dict) else None
    return isinstance(hits, dict) and isinstance(hits.get("hits"), list)


def _envelope(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "hits": {name: value for name, value in body["hits"].items() if name != "hits"}}


def _joined(envelope: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """The first answer's envelope after another round: time adds up, and one that timed out is one that timed out."""
    took = [one["took"] for one in (envelope, later) if isinstance(one.get("took"), int)]
    joined = {**envelope, **({"took": sum(took)} if took else {})}
    if later.get("timed_out"):
        joined["timed_out"] = True
    return joined


def _is_partial(body: dict[str, Any]) -> bool:
    shards = body.get("_shards") or {}
    return bool(body.get("timed_out") or body.get("terminated_early") or shards.get("failed"))


def _without_fields(hit: Hit, names: Sequence[str]) -> Hit:
    """A new dict: the hit without some of its fields."""
    fields = hit.get("fields")
    if not fields:
        return dict(hit)
    left = {name: value for name, value in fields.items() if name not in names}
    rest = {name: value for name, value in hit.items() if name != "fields"}
    return {**rest, "fields": left} if left else rest


def _reason(refused: Any) -> str:
    """What the engine says is wrong: the first cause in the body of its answer, or a client's error as text."""
    try:
        return str(refused["error"]["root_cause"][0]["reason"])
    except (TypeError, KeyError, IndexError):
        return str(refused)[:300]


def _total(body: dict[str, Any]) -> int | None:
    total = body["hits"].get("total")
    value = total.get("value") if isinstance(total, dict) else total
    return value if isinstance(value, int) else None
