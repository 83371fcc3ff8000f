"""Sketches for documents on their way into an index.

    helpers.bulk(client, ndd.with_sketches(actions, fields=["title", "body"]))

Works in front of every bulk helper of both clients, synchronous or not. What happens to an action:

    index, create            the document gets its sketch
    update with `doc`        all source fields are in `doc`: a new sketch; some of them: the stored sketch is marked
                             stale; none: nothing. A field that is an object counts as one of some, for the engine
                             merges objects.
    update with `upsert`     the document to insert gets its sketch
    update with `script`     nothing: nobody knows what it will do. Run a backfill after scripts that change texts.
    delete, raw text, others nothing

A document without text, or one whose text cannot be read, goes through as it is and is counted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any

from ndd_search.actions import Path, at, changed, characters, documents_in, touches
from ndd_search.config import Recipe
from ndd_search.documents import text_of
from ndd_search.duplicate_policy import DuplicatePolicy
from ndd_search.engines.hook import options
from ndd_search.errors import MissingExtra
from ndd_search.field import SketchField
from ndd_search.sketch import Sketch, sketch_many

logger = logging.getLogger("ndd_search")

Fields = str | Sequence[str] | Mapping[str, str | Sequence[str]]
MOST_SKETCHES = 16  # per document: each is three fields of the mapping, and an index holds 1,000 by default


@dataclass
class IngestReport:
    """What happened so far. The sum of `sketched`, `stale` and `unchanged` may exceed the actions: one can hold two
    documents, and a document several sketches.

    actions:    read.
    sketched:   sketches stored.
    stale:      sketches marked as no longer fitting.
    unchanged:  documents and actions that went through as they were, by reason.
    duplicates: documents found to be near-duplicates. skipped: those of them left out.
    """

    actions: int = 0
    sketched: int = 0
    stale: int = 0
    unchanged: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    skipped: int = 0


def sketch_fields(
    document: Mapping[str, Any],
    fields: Fields,
    *,
    recipe: Recipe | None = None,
    field: str = "ndd",
    keys: int = 0,
) -> dict[str, Any]:
    """A copy of one document with its sketch; arguments as of with_sketches. Without text it gets none."""
    if not isinstance(document, Mapping):
        raise TypeError(f"a document is a mapping, got {type(document).__name__}")
    (action,) = with_sketches([{"_source": document}], fields, recipe=recipe, field=field, keys=keys)
    return dict(action["_source"])


def with_sketches(
    actions: Iterable[Any] | AsyncIterable[Any],
    fields: Fields,
    *,
    recipe: Recipe | None = None,
    field: str = "ndd",
    keys: int = 0,
    duplicates: DuplicatePolicy | None = None,
    batch_size: int = 256,
    batch_characters: int = 2**21,
) -> SketchedActions:
    """Actions for a bulk helper, with the sketches of their documents; to be iterated with `for` or `async for`.

    actions:    whatever the helpers take: documents, {"_op_type", "_id", "_source", ...}, raw JSON; any iterable,
                endless ones too. Never changed: documents with a sketch are copies.
    fields:     names (dotted ones too) of the text fields that make one sketch, joined in this order, stored under
                `field`; or several sketches, {"title_ndd": ["title"], "ndd": ["title", "body"]}.
    keys:       how many keys to store with each sketch for find_duplicates, 0..64; 8 or 16 are good.
    duplicates: what to do with documents that resemble one of the index or of this run; by the first sketch.
    batch_size, batch_characters: at most so many actions, and about so much text, are read ahead. An object the
                helpers alone understand (BULK_FLUSH) ends a batch.
    """
    chosen = _chosen(fields, field)
    if not 0 <= keys <= 64:
        raise ValueError(f"keys must be 0..64, got {keys}")
    if batch_size < 1 or batch_characters < 1:
        raise ValueError(f"batch_size and batch_characters must be at least 1, got {batch_size} and {batch_characters}")
    if duplicates and not keys:
        raise ValueError("duplicates are found by keys: pass keys=8 as well")
    sketcher = _Sketcher(chosen, recipe or Recipe(), keys, duplicates)
    return SketchedActions(actions, sketcher, batch_size, batch_characters)


class SketchedActions:
    """What with_sketches returns. report: the counters, for reading during and after the run."""

    def __init__(
        self, actions: Iterable[Any] | AsyncIterable[Any], sketcher: _Sketcher, batch_size: int, characters: int
    ) -> None:
        self._actions, self._sketcher = actions, sketcher
        self._batch_size, self._characters = batch_size, characters

    @property
    def report(self) -> IngestReport:
        """The counters."""
        return self._sketcher.report

    def __iter__(self) -> Iterator[Any]:
        if not isinstance(self._actions, Iterable):
            raise TypeError("these actions come from an asynchronous iterator: use `async for` or an async helper")
        batch = _Batch(self._batch_size, self._characters)
        for action in self._actions:
            if batch.add(action):
                yield from self._finish(batch.take())
        yield from self._finish(batch.take())

    async def __aiter__(self) -> AsyncIterator[Any]:
        batch = _Batch(self._batch_size, self._characters)
        async for action in _asynchronous(self._actions):
            if batch.add(action):
                for done in await self._finish_async(batch.take()):
                    yield done
        for done in await self._finish_async(batch.take()):
            yield done

    def _finish(self, batch: list[Any]) -> list[Any]:
        flow = self._sketcher.finish(batch)
        try:
            request = next(flow)
            while True:
                with options(enabled=False):
                    response = self._client.msearch(body=request)
                if isawaitable(response):
                    raise TypeError(
                        "the client of `duplicates` is asynchronous: use an async helper, or another client"
                    )
                request = flow.send(response["responses"])
        except StopIteration as finished:
            return list(finished.value)

    async def _finish_async(self, batch: list[Any]) -> list[Any]:
        flow = self._sketcher.finish(batch)
        try:
            request = next(flow)
            while True:
                with options(enabled=False):
                    response = self._client.msearch(body=request)
                    response = await response if isawaitable(response) else response
                request = flow.send(response["responses"])
        except StopIteration as finished:
            return list(finished.value)

    @property
    def _client(self) -> Any:
        return self._sketcher.duplicates and self._sketcher.duplicates.client


class _Batch:
    """Actions read ahead."""

    def __init__(self, size: int, characters: int) -> None:
        self._size, self._most = size, characters
        self._actions: list[Any] = []
        self._characters = 0

    def add(self, action: Any) -> bool:
        """Whether the batch is full now."""
        self._actions.append(action)
        self._characters += characters(action)
        opaque = not isinstance(action, str | bytes | Mapping)
        return opaque or len(self._actions) >= self._size or self._characters >= self._most

    def take(self) -> list[Any]:
        """The actions, which the batch forgets."""
        taken, self._actions, self._characters = self._actions, [], 0
        return taken


@dataclass
class _Wanted:
    """One sketch to be made, or marked stale, and where in its action it belongs."""

    action: int  # in the batch
    path: Path  # of the document in the action
    name: str
    text: str | None  # None: mark it stale
    sketch: Sketch | None = None


class _Sketcher:
    """What is done with a batch; all of it without I/O."""

    def __init__(
        self, fields: dict[str, tuple[str, ...]], recipe: Recipe, keys: int, duplicates: DuplicatePolicy | None
    ) -> None:
        self.fields, self.recipe, self.keys, self.duplicates = fields, recipe, keys, duplicates
        self.report = IngestReport()
        self._recent = duplicates.recent(recipe, next(iter(fields)), keys) if duplicates else None

    def finish(self, batch: list[Any]) -> Generator[list[dict[str, Any]], list[dict[str, Any]], list[Any]]:
        """Yields the body of a multi search when duplicates are to be looked for; returns the actions."""
        self.report.actions += len(batch)
        wanted = [one for number, action in enumerate(batch) for one in self._plan(number, action)]
        self._make([one for one in wanted if one.text is not None], batch)
        extra: dict[int, dict[Path, dict[str, Any]]] = {}
        for one in wanted:
            if one.sketch is not None or one.text is None:
                parts = SketchField(one.name).parts(one.sketch, self.recipe, self.keys)
                extra.setdefault(one.action, {}).setdefault(one.path, {}).update(parts)
        left_out = yield from self._duplicates(batch, wanted, extra)
        return [changed(action, extra.get(number, {})) for number, action in enumerate(batch) if number not in left_out]

    def _plan(self, number: int, action: Any) -> Iterator[_Wanted]:
        """What is to be made for an action."""
        documents = documents_in(action)
        if isinstance(documents, str):
            self._pass(action, documents)
            return
        for path, partial in documents:
            document = at(action, path)
            for name, sources in self.fields.items():
                touched = [touches(document, source) for source in sources] if partial else ["whole"]
                if not any(touched):
                    continue
                known = all(one == "whole" for one in touched)
                text = self._text(action, document, sources, partial) if known else None
                if text is not None or partial:
                    self.report.stale += text is None
                    yield _Wanted(number, path, name, text)

    def _text(self, action: Any, document: Mapping[str, Any], sources: Sequence[str], partial: bool) -> str | None:
        """The text to sketch, None when there is none; "" for an update that takes the text away."""
        try:
            text = text_of(document, sources)
        except Exception as error:  # whatever is wrong with one document, the others go on
            self._pass(action, "unreadable", error)
            return None
        if text is None and not partial:
            self._pass(action, "no text")
        return "" if text is None and partial else text

    def _make(self, wanted: list[_Wanted], batch: list[Any]) -> None:
        """Sketch in one call, or one by one when one of them cannot be."""
        texts = [one.text or "" for one in wanted]
        try:
            sketches: Iterable[Sketch | None] = sketch_many(texts, self.recipe)
        except MissingExtra:
            raise
        except Exception:
            sketches = [self._one(batch[one.action], text) for one, text in zip(wanted, texts, strict=True)]
        for one, sketch in zip(wanted, sketches, strict=True):
            one.sketch = sketch
            self.report.sketched += sketch is not None

    def _one(self, action: Any, text: str) -> Sketch | None:
        try:
            return sketch_many([text], self.recipe)[0]
        except Exception as error:
            self._pass(action, "unreadable", error)
            return None

    def _pass(self, action: Any, reason: str, error: Exception | None = None) -> None:
        self.report.unchanged[reason] += 1
        if reason in ("no text", "unreadable") and self.report.unchanged[reason] == 1:
            which = f"document {action.get('_id', '(without _id)')}"
            what = f"has no text in {self.fields}" if error is None else f"cannot be sketched ({error!r})"
            logger.warning("%s %s and goes without a sketch; the next ones are only counted, in report", which, what)

    def _duplicates(
        self, batch: list[Any], wanted: list[_Wanted], extra: dict[int, dict[Path, dict[str, Any]]]
    ) -> Generator[list[dict[str, Any]], list[dict[str, Any]], set[int]]:
        """Look for near-duplicates of the new documents; returns those to leave out."""
        if self.duplicates is None or self._recent is None:
            return set()
        name = next(iter(self.fields))
        asked = [
            one
            for one in wanted
            if one.name == name
            and one.sketch is not None
            and len(one.sketch)
            and batch[one.action].get("_op_type", "index") != "update"
        ]
        if not asked:
            return set()
        targets = [self.duplicates.target(batch[one.action]) for one in asked]
        sketches = [one.sketch for one in asked if one.sketch is not None]
        responses = yield self._recent.request(sketches, targets)
        left_out: set[int] = set()
        for one, found in zip(asked, self._recent.settle(sketches, targets, responses), strict=True):
            if found is None:
                continue
            self.report.duplicates += 1
            if self.duplicates.on_duplicate:
                self.duplicates.on_duplicate(found)
            if self.duplicates.action == "skip":
                left_out.add(one.action)
                self.report.skipped += 1
            elif self.duplicates.action == "mark" and found.of is not None:
                extra[one.action][one.path][name]["duplicate_of"] = found.of
        return left_out


def _chosen(fields: Fields, field: str) -> dict[str, tuple[str, ...]]:
    """The source fields of each sketch, checked."""
    named = fields if isinstance(fields, Mapping) else {field: fields}
    chosen = {name: (of,) if isinstance(of, str) else tuple(of) for name, of in named.items()}
    if not chosen or not all(chosen.values()):
        raise ValueError(f"fields must name at least one text field for each sketch, got {fields!r}")
    if len(chosen) > MOST_SKETCHES:
        raise ValueError(f"a document may have {MOST_SKETCHES} sketches, got {len(chosen)}: each adds to the mapping")
    for name, sources in chosen.items():
        if not isinstance(name, str) or not name or "." in name or name.startswith("_"):
            raise ValueError(f"a sketch needs a top-level name without dots or a leading underscore, got {name!r}")
        for source in sources:
            if not isinstance(source, str) or source.partition(".")[0] in chosen:
                raise ValueError(f"{source!r} is no text field a sketch ({', '.join(chosen)}) can be made of")
    return chosen


async def _asynchronous(actions: Iterable[Any] | AsyncIterable[Any]) -> AsyncIterator[Any]:
    if isinstance(actions, AsyncIterable):
        async for action in actions:
            yield action
    else:
        for action in actions:
            yield action
