"""Adds sketches to the actions of a bulk request.

    helpers.bulk(client, ndd.with_sketches(actions, fields=["title", "body"]))

It works with every bulk helper of both clients, synchronous and asynchronous. What happens to an action:

    index, create            the document gets its sketch
    update with `doc`        all source fields are in `doc`: a new sketch; some of them: the stored sketch is marked
                             stale; none: nothing. A field that is an object makes it "some", because the engine merges
                             objects; so does a key with dots, which it stores beside an object of the same path.
    update with `upsert`     the document to insert gets its sketch
    update with `script`     nothing: the effect of a script is unknown. Run a backfill after scripts that change texts.
    delete, raw text, others nothing

A document without text, or whose text cannot be read, is passed on without a sketch and counted. Each action is passed
on before the next one is read. So the helper sends the same documents as without sketches even if the source raises,
pauses or reuses its objects.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from typing import Any

from ndd_search.core.document_fields import as_mapping
from ndd_search.core.paging.fill_page import run, run_async
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import check_no_table
from ndd_search.core.sketching.stored_sketch import KEYS
from ndd_search.indexing.duplicate_policy import NONE, DuplicateFilter, DuplicatePolicy, Write
from ndd_search.search.flow.client_settings import options
from ndd_search.search.writing.sketch_or_mark_stale import IngestReport, Sketcher, open_action

_BATCH = 500  # actions that are looked up in one request


def sketch_fields(
    document: Mapping[str, Any],
    fields: str | Sequence[str],
    *,
    recipe: Recipe | str | None = None,
    field: str = "ndd",
    keys: int = KEYS,
    numbers: bool = False,
) -> dict[str, Any]:
    """Return a copy of a document with its sketch, or without one if it has no text.

    Arguments and errors are those of with_sketches.
    """
    document = as_mapping(document)
    if not isinstance(document, Mapping):
        raise TypeError(f"a document is a mapping, got {type(document).__name__}")
    actions = [{"_source": document}]
    (action,) = with_sketches(actions, fields, recipe=recipe, field=field, keys=keys, numbers=numbers)
    return dict(action["_source"])


def with_sketches(
    actions: Iterable[Any] | AsyncIterable[Any],
    fields: str | Sequence[str],
    *,
    recipe: Recipe | str | None = None,
    field: str = "ndd",
    keys: int = KEYS,
    numbers: bool = False,
    duplicates: DuplicatePolicy | None = None,
) -> SketchedActions:
    """Return the actions for a bulk helper with the sketches of their documents, for `for` or `async for`.

    actions:    what the helpers accept: documents, {"_op_type", "_id", "_source", ...}, raw JSON; any iterable, also an
                endless one. A document that gets a sketch is copied; the copy shares its other values.
    fields:     names (dotted ones too) of the text fields that make the sketch, joined in this order.
    field:      the object that holds the sketch.
    keys:       how many keys to store with each sketch, for find_duplicates and members="all", 0..64. All writers of an
                index must use the same number: an update without keys leaves the keys of the old text.
    numbers:    store the numbers of the text as one value, for the guard numbers.
    duplicates: what to do with documents that resemble one of the index or of this run, by their sketch. 500
                actions of a list or tuple are looked up in one request. Actions of any other iterable are looked up one
                by one, because reading ahead would delay those already read.
    Iterating raises InvalidDocument if a document has a value of its own under the name of the sketch or its keys.
    If `actions` is an iterator, a second iteration continues it. If it is a list, a second iteration starts again, with
    an empty memory of `duplicates`.
    """
    if not isinstance(duplicates, DuplicatePolicy | None):
        raise TypeError(f"duplicates must be a policy, as DuplicatePolicy(client=client), got {duplicates!r}")
    if isinstance(actions, str | bytes | Mapping):
        raise TypeError(f"actions must be a list or another iterable of them, got one {type(actions).__name__}")
    check_no_table("actions", actions)
    if duplicates and not keys:
        raise ValueError("duplicates needs keys: leave out keys=0")
    sketcher = Sketcher(fields=fields, recipe=recipe, field=field, keys=keys, numbers=numbers)
    return SketchedActions(actions, sketcher, duplicates)


class SketchedActions:
    """The actions that with_sketches returns.

    report: counters, valid during and after the run.
    """

    def __init__(
        self, actions: Iterable[Any] | AsyncIterable[Any], sketcher: Sketcher, duplicates: DuplicatePolicy | None
    ) -> None:
        self._actions, self._sketcher, self._duplicates = actions, sketcher, duplicates
        self._batch_size = _BATCH if isinstance(actions, list | tuple) else 1
        self._filter: DuplicateFilter | None = None
        self._started: AsyncIterator[Any] | None = None

    @property
    def report(self) -> IngestReport:
        return self._sketcher.report

    def __iter__(self) -> Iterator[Any]:
        if not isinstance(self._actions, Iterable):
            raise TypeError("these actions come from an asynchronous iterator: use `async for` or an async helper")
        if self._duplicates is None:
            return (self._write(action).action.content for action in self._actions)
        return self._filtered(self._actions, self._duplicates)

    def __aiter__(self) -> AsyncIterator[Any]:
        if self._duplicates is None:
            return (self._write(action).action.content async for action in _asynchronous(self._actions))
        return self._async_filtered(self._duplicates)

    async def __anext__(self) -> Any:
        """Return the next action of one iteration kept by this object; opensearch-py requires this method."""
        if self._started is None:
            self._started = aiter(self)
        return await anext(self._started)

    def _filtered(self, actions: Iterable[Any], policy: DuplicatePolicy) -> Iterator[Any]:
        chosen, ask = self._memory(policy), partial(_answer, policy.client)
        for batch in self._batches(actions):
            yield from run(chosen.decide(batch), ask)

    async def _async_filtered(self, policy: DuplicatePolicy) -> AsyncIterator[Any]:
        chosen, actions, ask = self._memory(policy), self._actions, partial(_async_answer, policy.client)
        if isinstance(actions, AsyncIterable):
            batches: AsyncIterator[list[Write]] = ([self._write(action)] async for action in actions)
        else:
            batches = _asynchronous(self._batches(actions))
        async for batch in batches:
            for action in await run_async(chosen.decide(batch), ask):
                yield action

    def _memory(self, policy: DuplicatePolicy) -> DuplicateFilter:
        """Return the filter of the run: a new one for a list that is read again, the same for a continued iterator."""
        if self._filter is None or not isinstance(self._actions, Iterator | AsyncIterator):
            self._filter = DuplicateFilter(policy, self._sketcher)
        return self._filter

    def _write(self, action: Any) -> Write:
        opened = open_action(as_mapping(action))
        sketch = self._sketcher.add(opened)
        changes_text = opened.kind != "update" or self._sketcher.changes_text(opened)
        return Write(opened, NONE if sketch is None else sketch, changes_text)

    def _batches(self, actions: Iterable[Any]) -> Iterator[list[Write]]:
        batch: list[Write] = []
        try:
            for action in actions:
                batch.append(self._write(action))
                if len(batch) == self._batch_size:
                    yield batch
                    batch = []
        except Exception:
            if batch:  # pass on the actions before an invalid one, as without a policy
                yield batch
            raise
        if batch:
            yield batch


def _answer(client: Any, searches: list[dict[str, Any]]) -> Any:
    with options(enabled=False):  # a wrapped client would collapse the duplicates
        return client.msearch(body=searches)


async def _async_answer(client: Any, searches: list[dict[str, Any]]) -> Any:
    answer = _answer(client, searches)
    with options(enabled=False):
        return await answer if isawaitable(answer) else answer


async def _asynchronous(actions: Iterable[Any] | AsyncIterable[Any]) -> AsyncIterator[Any]:
    if isinstance(actions, AsyncIterable):
        async for action in actions:
            yield action
    else:
        for action in actions:
            yield action
