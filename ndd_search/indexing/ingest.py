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

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from inspect import isawaitable
from itertools import chain
from typing import Any

from ndd_search.config import Recipe
from ndd_search.documents import text_of
from ndd_search.engines.hook import options
from ndd_search.field import SketchField
from ndd_search.indexing.actions import Action, open_action, touches
from ndd_search.indexing.duplicate_policy import DuplicatePolicy, FoundDuplicate, Target
from ndd_search.numbers import numbers_value
from ndd_search.sketches import Sketch, sketch_many

logger = logging.getLogger("ndd_search")

Fields = str | Sequence[str] | Mapping[str, str | Sequence[str]]
MOST_SKETCHES = 16  # per document: each is five fields of the mapping, and an index holds 1,000 by default


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
    recipe: Recipe | str | None = None,
    field: str = "ndd",
    keys: int = 0,
    numbers: bool = False,
) -> dict[str, Any]:
    """A copy of one document with its sketch; arguments as of with_sketches. Without text it gets none."""
    if not isinstance(document, Mapping):
        raise TypeError(f"a document is a mapping, got {type(document).__name__}")
    given = [{"_source": document}]
    (action,) = with_sketches(given, fields, recipe=recipe, field=field, keys=keys, numbers=numbers)
    return dict(action["_source"])


def with_sketches(  # noqa: PLR0913 - one call says all there is to say about an import
    actions: Iterable[Any] | AsyncIterable[Any],
    fields: Fields,
    *,
    recipe: Recipe | str | None = None,
    field: str = "ndd",
    keys: int = 0,
    numbers: bool = False,
    duplicates: DuplicatePolicy | None = None,
    batch_size: int = 500,
    batch_characters: int = 2**21,
) -> SketchedActions:
    """Actions for a bulk helper, with the sketches of their documents; to be iterated with `for` or `async for`.

    actions:    whatever the helpers take: documents, {"_op_type", "_id", "_source", ...}, raw JSON; any iterable,
                endless ones too. What comes out are copies, so a generator may use one dict again and again.
    fields:     names (dotted ones too) of the text fields that make one sketch, joined in this order, stored under
                `field`; or several sketches, {"title_ndd": ["title"], "ndd": ["title", "body"]}.
    keys:       how many keys to store with each sketch for find_duplicates, 0..64; 8 or 16 are good.
    numbers:    store the numbers of the text as one value, for the guard numbers_must_match.
    duplicates: what to do with documents that resemble one of the index or of this run; by the first sketch.
    batch_size, batch_characters: at most so many actions, and about so much text, are sketched at a time, in a thread,
                while the helper sends those before; so two batches are read ahead. An object that only the helper
                understands (BULK_FLUSH) waits for nothing more, and with batch_size=1 nothing does.
    """
    chosen = _chosen(fields, field)
    if not 0 <= keys <= 64:
        raise ValueError(f"keys must be 0..64, got {keys}")
    if batch_size < 1 or batch_characters < 1:
        raise ValueError(f"batch_size and batch_characters must be at least 1, got {batch_size} and {batch_characters}")
    if duplicates and not keys:
        raise ValueError("duplicates are found by keys: pass keys=8 as well")
    sketcher = _Sketcher(chosen, Recipe.of(recipe), keys, numbers, duplicates)
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
        with self._ahead() as ahead:
            for action in chain(self._actions, [_END]):
                for batch in ahead.add(action):
                    yield from self._finished(batch.result())

    async def __aiter__(self) -> AsyncIterator[Any]:
        with self._ahead() as ahead:
            async for action in _asynchronous(self._actions):
                for batch in ahead.add(action):
                    for done in await self._finished_async(await asyncio.wrap_future(batch)):
                        yield done

    def _ahead(self) -> _Ahead:
        return _Ahead(self._sketcher, self._batch_size, self._characters)

    def _finished(self, made: list[_Opened]) -> list[Any]:
        question, client = self._sketcher.question(made), self._sketcher.client
        answer = None
        if question:
            try:
                with options(enabled=False):
                    answer = client.msearch(body=question)
            except Exception as error:
                answer = error
        if isawaitable(answer):
            raise TypeError("the client of `duplicates` is asynchronous: use an async helper, or another one")
        return self._sketcher.settled(made, answer)

    async def _finished_async(self, made: list[_Opened]) -> list[Any]:
        question, client = self._sketcher.question(made), self._sketcher.client
        answer = None
        if question:
            try:
                with options(enabled=False):
                    answer = client.msearch(body=question)
                    answer = await answer if isawaitable(answer) else answer
            except Exception as error:
                answer = error
        return self._sketcher.settled(made, answer)


_END = object()  # after the last action


class _Ahead:
    """Reads actions in batches, and one batch further than it hands on: a thread sketches that one meanwhile."""

    def __init__(self, sketcher: _Sketcher, size: int, characters: int) -> None:
        self._sketcher, self._limits = sketcher, (size, characters)
        self._batch = _Batch(size, characters)
        self._making: list[Future[list[_Opened]]] = []
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="ndd-search")

    def __enter__(self) -> _Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.shutdown(cancel_futures=True)

    def add(self, action: Any) -> list[Future[list[_Opened]]]:
        """Take an action, or _END; returns the batches whose turn has come, in order."""
        if action is not _END and not self._batch.add(action):
            return []
        batch, self._batch = self._batch, _Batch(*self._limits)
        self._making.append(self._worker.submit(self._sketcher.make, batch.actions))
        waiting = 0 if batch.urgent or action is _END else 1
        ready = self._making[: len(self._making) - waiting]
        self._making = self._making[len(ready) :]
        return ready


class _Batch:
    """Actions read ahead. urgent: they are not to wait for the next batch."""

    def __init__(self, size: int, characters: int) -> None:
        self.actions: list[Action] = []
        self.urgent = size == 1
        self._size, self._left = size, characters

    def add(self, action: Any) -> bool:
        """Whether the batch is full now."""
        opened = open_action(action)
        self.actions.append(opened)
        self._left -= opened.characters
        self.urgent |= not isinstance(action, str | bytes | Mapping)  # something for the helper, such as BULK_FLUSH
        return self.urgent or len(self.actions) >= self._size or self._left <= 0


@dataclass
class _Opened:
    """An action with the first sketch of its new document, by which duplicates are looked for."""

    action: Action
    sketch: Sketch | None = None


@dataclass
class _Wanted:
    """One sketch to be made."""

    number: int  # of the action in its batch
    document: dict[str, Any]
    name: str
    text: str
    partial: bool


class _Sketcher:
    """What is done with a batch; all of it without I/O."""

    def __init__(
        self,
        fields: dict[str, tuple[str, ...]],
        recipe: Recipe,
        keys: int,
        numbers: bool,
        duplicates: DuplicatePolicy | None,
    ) -> None:
        self.fields, self.recipe, self.keys, self.numbers = fields, recipe, keys, numbers
        self.duplicates = duplicates
        self.report = IngestReport()
        self._where = {name: SketchField(name) for name in fields}
        self._first = next(iter(fields))
        self._recent = duplicates.recent(recipe, self._first, keys) if duplicates else None

    def make(self, batch: list[Action]) -> list[_Opened]:
        """Put the sketches into the documents of a batch."""
        self.report.actions += len(batch)
        made = [_Opened(action) for action in batch]
        wanted = [one for number, action in enumerate(batch) for one in self._plan(number, action)]
        for one, sketch in zip(wanted, self._sketches(wanted, batch), strict=True):
            if sketch is not None:
                self.report.sketched += 1
                numbers = numbers_value(one.text, self.recipe) if self.numbers else None
                one.document.update(self._where[one.name].parts(sketch, self.recipe, self.keys, numbers))
                if one.name == self._first and not one.partial:
                    made[one.number].sketch = sketch
            elif one.partial:
                self._mark_stale(one.document, one.name)
        return made

    @property
    def client(self) -> Any:
        """Who answers questions."""
        return self.duplicates and self.duplicates.client

    def question(self, made: list[_Opened]) -> list[dict[str, Any]]:
        """The body of a multi search for what a batch may duplicate; empty when nothing is to be looked for."""
        asked = self._asked(made)
        if not asked or self.duplicates is None or self._recent is None:
            return []
        return self._recent.request(*self._wanted(asked, self.duplicates))

    def settled(self, made: list[_Opened], answer: Any) -> list[Any]:
        """The actions to hand on. answer: to the question, or the exception in its place; None where there was none."""
        left_out: set[int] = set()
        if answer is not None and self.duplicates is not None and self._recent is not None:
            asked = self._asked(made)
            sketches, targets = self._wanted(asked, self.duplicates)
            responses = [{"error": answer}] * len(asked) if isinstance(answer, Exception) else answer["responses"]
            for one, found in zip(asked, self._recent.settle(sketches, targets, responses), strict=True):
                if found and self._settle(one, found, self.duplicates):
                    left_out.add(id(one))
        return [one.action.content for one in made if id(one) not in left_out]

    def _asked(self, made: list[_Opened]) -> list[_Opened]:
        return [one for one in made if one.sketch is not None and len(one.sketch) and one.action.kind != "update"]

    def _wanted(self, asked: list[_Opened], policy: DuplicatePolicy) -> tuple[list[Sketch], list[Target]]:
        sketches = [one.sketch for one in asked if one.sketch is not None]
        return sketches, [policy.target(one.action.content) for one in asked]

    def _settle(self, one: _Opened, found: FoundDuplicate, policy: DuplicatePolicy) -> bool:
        """Do with a duplicate what the policy says; whether it is left out."""
        self.report.duplicates += 1
        if policy.on_duplicate:
            policy.on_duplicate(found)
        if policy.action == "mark" and found.of is not None:
            for document, _ in one.action.documents:
                document[self._first]["duplicate_of"] = found.of
        self.report.skipped += policy.action == "skip"
        return policy.action == "skip"

    def _plan(self, number: int, action: Action) -> Iterator[_Wanted]:
        """What is to be made for an action; marks what can only be marked."""
        if not action.documents:
            self._pass(action, action.reason)
        for document, partial in action.documents:
            for name, sources in self.fields.items():
                touched = [touches(document, source) for source in sources] if partial else ["whole"]
                if not any(touched):
                    continue
                known = all(one == "whole" for one in touched)
                text = self._text(action, document, sources, partial) if known else None
                if text is not None:
                    yield _Wanted(number, document, name, text, partial)
                elif partial:
                    self._mark_stale(document, name)

    def _mark_stale(self, document: dict[str, Any], name: str) -> None:
        self.report.stale += 1
        document.update(self._where[name].parts(None, self.recipe, self.keys))

    def _text(self, action: Action, document: Mapping[str, Any], sources: Sequence[str], partial: bool) -> str | None:
        """The text to sketch, None when there is none; "" for an update that takes the text away."""
        try:
            text = text_of(document, sources)
        except Exception as error:  # whatever is wrong with one document, the others go on
            self._pass(action, "unreadable", error)
            return None
        if text is None and not partial:
            self._pass(action, "no text")
        return "" if text is None and partial else text

    def _sketches(self, wanted: list[_Wanted], batch: list[Action]) -> Iterable[Sketch | None]:
        """All in one call, or one by one when one of them cannot be made: None for that one."""
        try:
            return sketch_many([one.text for one in wanted], self.recipe)
        except ImportError:  # MissingExtra, or an extra whose installation is broken
            raise
        except Exception:
            return [self._sketch(batch[one.number], one.text) for one in wanted]

    def _sketch(self, action: Action, text: str) -> Sketch | None:
        try:
            return sketch_many([text], self.recipe)[0]
        except Exception as error:
            self._pass(action, "unreadable", error)
            return None

    def _pass(self, action: Action, reason: str, error: Exception | None = None) -> None:
        self.report.unchanged[reason] += 1
        if reason in ("no text", "unreadable") and self.report.unchanged[reason] == 1:
            which = f"document {action.content.get('_id', '(without _id)')}"
            names = ", ".join(dict.fromkeys(chain.from_iterable(self.fields.values())))
            what = f"has no text in {names}" if error is None else f"cannot be sketched ({error!r})"
            logger.warning("%s %s and goes without a sketch; the next ones are only counted, in report", which, what)


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
    yield _END
