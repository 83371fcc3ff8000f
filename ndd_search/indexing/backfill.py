"""Sketches for an index that was filled without them, while it is searched and written to.

A query finds the documents that have no sketch of the recipe yet. So a second run does nothing, and a run that was
killed is continued by running it again. Documents without any text in the source fields get an empty sketch, so that
the query finds them no more.

A document that somebody else changes during the run is found again in a later pass. If it was written as a whole, it
has no recipe any more. If an update changed only its text, the recipe is still there. Such updates show in the sequence
numbers of the index: when more of them were used than this run used, every sketch that was written since the start is
compared with its text once more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ndd_search.documents import text_of
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.indexes import IndexFacts, look_up
from ndd_search.indexing.jobs import RemoveSketches, SketchDocuments, own_field
from ndd_search.indexing.retry import Retry, status_of
from ndd_search.indexing.rewrite import Rewriter, Tally
from ndd_search.indexing.scan import snapshot
from ndd_search.indexing.templates import check_mapping, holds_sketches, is_mapped, kept_out_of_source, properties
from ndd_search.middleware.scope import options
from ndd_search.recipe import Recipe
from ndd_search.sketching.field import SketchField, is_sketch_object

_PAGE = 500  # documents
_PAGE_BYTES = 8 * 2**20  # of an index's average documents
_PAGE_SECONDS = 1.0  # at a rate: no bursts
_LOOKED_AT = 100  # documents, for text
_NAMED = 12  # fields with text, where none was found in those that were asked for
_ROUNDS = 5  # of looking for what others changed meanwhile

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a backfill found to do in one index. problem: why it does nothing there, "" when it works."""

    index: str
    documents: int
    waiting: int
    problem: str = ""
    facts: IndexFacts = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class BackfillReport:
    """What a backfill did.

    work:      what there was to do, by index.
    tally:     what became of the documents.
    corrected: of those written, how many had a sketch that no longer fitted their text.
    remaining: documents that still have no sketch of the recipe (or still have one, when it was to be removed).
    notes:     what the user should know, in sentences.
    """

    work: tuple[Work, ...]
    tally: Tally
    corrected: int
    remaining: int
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Backfill:
    """A backfill, or with `remove` the opposite.

    index:   an index, alias, data stream, pattern, or several joined by commas.
    fields:  the text fields that make the sketch, in the order with_sketches has them; none to remove.
    recipe, field, keys, numbers: of the sketches to make, as in with_sketches.
    remove:  take away what is stored under `field`, and its keys, instead.
    query:   only documents that match it, in the engine's own query language.
    rate:    documents a second, None for as many as the server takes.
    slices:  threads that work side by side on an index, 1..64.
    recheck: compare all sketches that are there with their texts, too: after a run that was killed while others wrote.
    """

    index: str
    fields: Sequence[str] = ()
    recipe: Recipe = dataclasses.field(default_factory=Recipe)
    field: str = "ndd"
    keys: int = 0
    numbers: bool = False
    remove: bool = False
    query: Mapping[str, Any] | None = None
    rate: float | None = None
    slices: int = 1
    recheck: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", Recipe.of(self.recipe))
        if isinstance(self.fields, str):
            raise TypeError(f"fields must be a list of names, got {self.fields!r}")
        if bool(self.fields) == self.remove:
            raise ValueError("say of which fields the sketch is made, fields=[...]; and none to remove it")
        if not 1 <= self.slices <= 64 or not 0 <= self.keys <= 64:
            raise ValueError(f"slices must be 1..64 and keys 0..64, got {self.slices} and {self.keys}")
        Retry(self.rate)  # checks it

    def plan(self, client: Any) -> list[Work]:
        """What there is to do, without doing any of it. client: synchronous."""
        return [self._plan(client, facts) for facts in look_up(client, self.index)]

    def run(self, client: Any, on_progress: Progress | None = None) -> BackfillReport:
        """Do it. on_progress: called with the documents done and to do, as far as known.

        Raises IndexUnusable when nothing can be done in any of the indexes, or the server refuses to write. The
        client's own errors pass through. Whatever ends it, what was written stays, and the next run continues.
        """
        work = self.plan(client)
        able = [one for one in work if not one.problem]
        if not able:
            first = work[0]
            raise IndexUnusable(first.index, first.problem, "nothing was changed")
        total, done, retry = sum(one.waiting for one in able), 0, Retry(self.rate)

        def advance(documents: int) -> None:
            nonlocal done, total
            done += documents
            total = max(total, done)
            if on_progress:
                on_progress(done, total)

        tally, corrected = Tally(), 0
        for one in able:
            single = _Single(self, client, one.facts, retry, advance)
            corrected += single.run(tally)
        remaining = sum(self._count(client, one.facts) for one in able)
        return BackfillReport(tuple(work), tally, corrected, remaining, tuple(self._notes(work)))

    def waiting(self, facts: IndexFacts) -> dict[str, Any]:
        """The query for the documents still to do."""
        where = SketchField(self.field)
        only = [query for query in (self.query, facts.filter) if query is not None]
        if self.remove:
            stored = [{"exists": {"field": path}} for path in (where.recipe, where.sketch)]
            return {"bool": {"should": stored, "minimum_should_match": 1, "filter": only}}
        lacking: list[dict[str, Any]] = [{"bool": {"must_not": [{"term": {where.recipe: self.recipe.id}}]}}]
        wanted = [path for path, on in ((where.keys, self.keys), (where.numbers, self.numbers)) if on]
        for path in wanted:  # a sketch made before they were
            without = {"filter": [{"exists": {"field": where.sketch}}], "must_not": [{"exists": {"field": path}}]}
            lacking.append({"bool": without})
        return {"bool": {"should": lacking, "minimum_should_match": 1, "filter": only}}

    def _plan(self, client: Any, facts: IndexFacts) -> Work:
        problem = self._problem(facts)
        waiting = 0 if problem else self._count(client, facts)
        if waiting and not self.remove:
            problem = self._problem_with_fields(client, facts) or self._problem_with_own_field(client, facts)
        return Work(index=facts.name, documents=facts.documents, waiting=waiting, problem=problem, facts=facts)

    def _problem(self, facts: IndexFacts) -> str:
        if facts.not_writable:
            return f"{facts.not_writable}, so its documents cannot be changed"
        if facts.routed_by:
            return f"the alias {facts.routed_by} routes searches to some of its shards; name the index itself"
        if lost := kept_out_of_source(facts.mapping, self.field):
            return f"_source leaves out {', '.join(lost)}, which every update of a document would lose"
        if self.remove:
            foreign = self.field in facts.mapping.get("properties", {}) and not holds_sketches(
                facts.mapping, self.field
            )
            return f"{self.field} is not mapped as sketches are, so it is somebody else's" if foreign else ""
        mapping = {**facts.mapping, "properties": {**self._missing(facts), **facts.mapping.get("properties", {})}}
        return next((str(one) for one in check_mapping(mapping, self.field) if one.level == "error"), "")

    def _problem_with_fields(self, client: Any, facts: IndexFacts) -> str:
        """Why no document would get a sketch: all would get an empty one, and so count as done ever after."""
        with options(enabled=False):
            body = {"query": self.waiting(facts), "size": _LOOKED_AT}
            sources = [hit.get("_source", {}) for hit in client.search(index=facts.name, body=body)["hits"]["hits"]]
            if not sources or any(text_of(source, self.fields) for source in sources):
                return ""
            mapped = [{"exists": {"field": path}} for path in self.fields if is_mapped(facts.mapping, path)]
            query = {"query": {"bool": {"should": mapped, "minimum_should_match": 1}}}
            if mapped and client.count(index=facts.name, body=query)["count"]:
                return ""
        there = sorted({path for source in sources for path in _texts_in(source)} - {SketchField(self.field).keys})
        named = ", ".join(there[:_NAMED]) + (", ..." if len(there) > _NAMED else "")
        looked_at = f"no document of {len(sources)} looked at has text in {', '.join(self.fields)}"
        return f"{looked_at} (there is text in {named})" if there else looked_at

    def _problem_with_own_field(self, client: Any, facts: IndexFacts) -> str:
        """Why the sketch would overwrite a field of the user's that the mapping does not tell of."""
        where, mapping = SketchField(self.field), facts.mapping
        other = "choose another name: --field"
        for path in mapping.get("runtime", {}):
            if path.partition(".")[0] in (where.name, where.keys):
                return f"it has a runtime field {path} of its own; {other}"
        names = [where.name, where.keys] if self.keys else [where.name]
        unmapped = [name for name in names if name not in mapping.get("properties", {})]
        if not unmapped or str(mapping.get("dynamic", "true")).lower() in ("true", "strict"):
            return ""  # whatever documents hold is mapped
        retry = Retry(self.rate)
        body = {"query": self.waiting(facts), "_source": [where.name, where.keys]}
        with options(enabled=False), snapshot(client, facts.name, retry) as now:
            for hits in now.pages(body, _PAGE):
                for hit in hits:
                    if name := own_field(hit.get("_source", {}), where, with_keys=self.keys > 0):
                        return f"document {hit['_id']} has a field {name} of its own, which is no sketch; {other}"
        return ""

    def _missing(self, facts: IndexFacts) -> dict[str, Any]:
        """What of our mapping the index does not have."""
        known = facts.mapping.get("properties", {})
        missing = {name: one for name, one in properties(self.field, self.keys > 0).items() if name not in known}
        if self.numbers and "numbers" not in known.get(self.field, {}).get("properties", {"numbers": None}):
            ours = properties(self.field)[self.field]["properties"]
            missing[self.field] = {"properties": {"numbers": ours["numbers"]}}  # a mapping made before there were any
        return missing

    def _count(self, client: Any, facts: IndexFacts) -> int:
        client.indices.refresh(index=facts.name)
        return int(client.count(index=facts.name, body={"query": self.waiting(facts)})["count"])

    def _notes(self, work: Sequence[Work]) -> list[str]:
        notes = [f"{one.index} was left as it is: {one.problem}" for one in work if one.problem]
        for one in work if not self.remove else ():
            unknown = [path for path in self.fields if not is_mapped(one.facts.mapping, path)]
            if unknown and not one.problem and one.facts.mapping.get("dynamic", "true") not in (False, "false"):
                notes.append(f"the mapping of {one.index} has no field {', '.join(unknown)}: is that the right name?")
        streams = {one.facts.data_stream for one in work if one.facts.data_stream and self._missing(one.facts)}
        if self.remove:
            notes.append(f"the mapping of {self.field} stays: the engine cannot take a field out of a mapping")
        elif streams:
            names = ", ".join(sorted(map(str, streams)))
            notes.append(
                f"the next backing index of {names} will not know the field {self.field}: "
                "add it to the index template (ndd-search template ... --add-to)"
            )
        return notes


class _Single:
    """One index."""

    def __init__(
        self, settings: Backfill, client: Any, facts: IndexFacts, retry: Retry, advance: Callable[[int], None]
    ) -> None:
        self.settings, self.client, self.facts = settings, client, facts
        average = max(facts.bytes / facts.documents, 1.0) if facts.documents else 1.0
        at_rate = settings.rate * _PAGE_SECONDS / settings.slices if settings.rate else _PAGE
        size = min(_PAGE, _PAGE_BYTES / average, at_rate)
        self._rewriter = Rewriter(
            client,
            facts.name,
            size=max(int(size), 1),
            slices=settings.slices,
            retry=retry,
            on_progress=advance,
        )

    def run(self, tally: Tally) -> int:
        """Do what there is to do, adding to the tally; returns how many sketches had to be corrected."""
        if self.settings.remove:
            where, waiting = SketchField(self.settings.field), self.settings.waiting(self.facts)
            tally.add(self._rewriter.repeat(RemoveSketches(where, waiting, self.facts, self._scripts())))
            return 0
        if missing := self.settings._missing(self.facts):
            self.client.indices.put_mapping(index=self.facts.name, body={"properties": missing})
        since = self._position()
        sketched, checked = self._sketch(), Tally()
        corrected = self._recheck(None, checked) if self.settings.recheck else 0
        used = sketched.written - sketched.noops + corrected
        for _ in range(_ROUNDS):
            now = self._position()
            if since is not None and now is not None and sum(now) - sum(since) <= used:
                break
            again = self._sketch()
            sketched.repeat(again)
            fixed = self._recheck(since, checked)
            corrected += fixed
            since, used = now, again.written - again.noops + fixed
        tally.add(sketched)
        tally.add(checked)
        return corrected

    def _sketch(self) -> Tally:
        """Give the documents that wait for one their sketch."""
        return self._rewriter.repeat(SketchDocuments(self.settings, self.settings.waiting(self.facts)))

    def _recheck(self, since: Sequence[int] | None, tally: Tally) -> int:
        """Compare sketches with their texts. since: only of documents written after these sequence numbers."""
        where = SketchField(self.settings.field)
        only: list[Mapping[str, Any]] = [{"term": {where.recipe: self.settings.recipe.id}}]
        only += [query for query in (self.settings.query, self.facts.filter) if query is not None]
        if since:
            only.append({"range": {"_seq_no": {"gt": min(since)}}})
        found = self._rewriter.repeat(SketchDocuments(self.settings, {"bool": {"filter": only}}, compare=True))
        tally.repeat(found)
        return found.written - found.noops

    def _position(self) -> list[int] | None:
        """The last sequence number of each shard, None where the server does not tell."""
        try:
            stats = self.client.indices.stats(index=self.facts.name, level="shards")
        except Exception as error:
            if status_of(error) in (403, 404, 405):
                return None
            raise
        shards = stats["indices"][self.facts.name]["shards"].values()
        return [copy["seq_no"]["max_seq_no"] for shard in shards for copy in shard if copy["routing"]["primary"]]

    def _scripts(self) -> bool:
        """Whether the server runs scripts that come with a request."""
        query = {"script": {"script": {"lang": "painless", "source": "return true"}}}
        try:
            self.client.search(index=self.facts.name, body={"query": query, "size": 0})
        except Exception as error:
            if status_of(error) in (400, 403, 500):
                return False
            raise
        return True


def _texts_in(value: Any, path: str = "") -> Iterator[str]:
    """The paths under which a document holds text, other than in sketches."""
    if isinstance(value, Mapping) and not is_sketch_object(value):
        for name, one in value.items():
            yield from _texts_in(one, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for one in value:
            yield from _texts_in(one, path)
    elif isinstance(value, str):
        yield path
