"""Adds sketches to the documents of an index that is searched and written to at the same time.

A query selects the documents that have no sketch of the recipe. So a second run does nothing, and a run that was killed
is continued by running it again. Documents without text in the source fields get an empty sketch, so that the query no
longer selects them.

A program that knows nothing of sketches changes a text and leaves its sketch, which no query finds. So each run
compares a sample of the stored sketches with their texts, and all of them if one differs.

A document that somebody else changes during the run is processed again in a later pass. The sequence numbers of the
index tell whether anybody has written: then the documents written since the last pass are compared with their sketches,
also those of which a partial update changed only the text, and so on.

At the end the frequency table of the index is counted and stored for all clients, also if no document was left to do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ndd_search.core.document_fields import text_of
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import Whole, YesNo, checked, setting
from ndd_search.core.sketching.stored_sketch import MARKS, SketchField, fields_text, is_sketch_object
from ndd_search.core.text.printable import many
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.concurrent_updates import Rewriter, Tally
from ndd_search.indexing.index_facts import IndexFacts, look_up
from ndd_search.indexing.rate_and_retries import Retry, server_reason, status_of
from ndd_search.indexing.scan import sampled, snapshot
from ndd_search.indexing.sketch_or_remove import RemoveSketches, SketchDocuments
from ndd_search.search.flow.choose_frequency_table import TABLES, document, document_id, named
from ndd_search.search.flow.client_settings import options
from ndd_search.search.rest.mapping import (
    check_mapping,
    holds_sketches,
    is_mapped,
    kept_out_of_source,
    mapping_properties,
)
from ndd_search.search.rest.read_answer import window_limit
from ndd_search.search.rest.wider_requests import stored_sketch
from ndd_search.search.writing.sketch_or_mark_stale import SketchSettings

_PAGE = 500  # documents
_PAGE_BYTES = 8 * 2**20  # size of a page, by the average size of the documents of the index
_LOOKED_AT = 100  # documents that are checked for text
_SAMPLE = 5000  # documents: enough to see a template that one document in a thousand uses
_NAMED = 12  # fields with text that are named if the given ones have none

# Hidden, so that searches of every index do not find it. No field is indexed: it is read by id.
_COMPANION = {
    "settings": {"index": {"hidden": True, "number_of_shards": 1, "auto_expand_replicas": "0-1"}},
    "mappings": {"dynamic": False},
}
_EXISTS = (400, 409)  # statuses of the creation of an index that exists

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work in one index. waiting: documents to do. problem: why the index is skipped, "" if it is not.

    stale: whether a stored sketch was found that is not of its text: then all are compared.
    """

    index: str
    documents: int
    waiting: int
    problem: str = ""
    stale: bool = False
    facts: IndexFacts = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class BackfillReport:
    """The result of a backfill.

    work:      the work in each index.
    tally:     counts of documents by result.
    remaining: documents that still have no sketch of the recipe (with `remove`: that still have a sketch).
    table:     the frequency table that was stored for clients, None if none was.
    notes:     sentences for the user.
    """

    work: tuple[Work, ...]
    tally: Tally
    remaining: int
    table: FrequencyTable | None
    notes: tuple[str, ...]


@checked
@dataclass(frozen=True, kw_only=True)
class Backfill(SketchSettings):
    """A backfill, or with `remove` the removal of sketches.

    index:   an index, alias, data stream, pattern, or several joined by commas.
    fields:  the text fields that make the sketch, in the same order as in with_sketches; none with `remove`.
    recipe, field, keys, numbers: of the sketches, as in with_sketches.
    remove:  remove what is stored under `field`, and its keys.
    rate:    documents per second, None for no limit.
    slices:  number of threads per index, 1..64.
    recheck: compare all existing sketches with their texts, also if those of a sample fit: 500 documents of each
             index, half of them those written last.
    """

    index: str
    remove: bool = setting(YesNo(), False)
    rate: float | None = None
    slices: int = setting(Whole(1, 64), 1)
    recheck: bool = setting(YesNo(), False)

    def __post_init__(self) -> None:
        if bool(self.fields) == self.remove:
            raise ValueError("give the fields that make the sketch, fields=[...]; with remove=True give none")
        super().__post_init__()
        Retry(self.rate)  # validates it

    def plan(self, client: Any) -> list[Work]:
        """Return the work in each index without changing anything. client: synchronous."""
        return [self._plan(client, facts) for facts in look_up(client, self.index)]

    def run(self, client: Any, on_progress: Progress | None = None) -> BackfillReport:
        """Run the backfill. on_progress: called with the number of documents done, and the total as far as known.

        Raises IndexUnusable if every index has a problem, or the server refuses to write. The errors of the client pass
        through. If the run ends early, what was written stays, and the next run continues.
        """
        retry = Retry(self.rate)
        work = [item if item.problem else self._with_fields(client, item, retry) for item in self.plan(client)]
        possible = [item for item in work if not item.problem]
        if not possible:
            first = work[0]
            raise IndexUnusable(first.index, first.problem, "nothing was changed")
        total, done = sum(item.waiting for item in possible), 0

        def advance(documents: int) -> None:
            nonlocal done, total
            done += documents
            total = max(total, done)
            if on_progress:
                on_progress(done, total)

        tally = Tally()
        for item in possible:
            tally.add(self._process(client, item, retry, advance))
        remaining = sum(self._count(client, item.facts) for item in possible)
        notes = self._notes(work)
        table = self._store_table(client, notes)
        return BackfillReport(tuple(work), tally, remaining, table, tuple(notes))

    def _process(self, client: Any, item: Work, retry: Retry, advance: Callable[[int], None]) -> Tally:
        """Process the documents of one index, and those that others write meanwhile."""
        size = page_size(item.facts)
        rewriter = Rewriter(client, item.index, size=size, slices=self.slices, retry=retry, on_progress=advance)
        waiting = self.waiting(item.facts)
        if self.remove:
            return rewriter.follow(RemoveSketches(SketchField(self.field), waiting, item.facts))
        every = self.every(item.facts)
        tally = rewriter.follow(SketchDocuments(self, waiting), every)
        if self.recheck or item.stale:
            tally.undone.clear()
            tally.add(rewriter.follow(every))
        return tally

    def _store_table(self, client: Any, notes: list[str]) -> FrequencyTable | None:
        """Store the frequency table of the index for its clients. A refusal is a note: the sketches are written."""
        if self.remove:
            return None
        try:
            with options(enabled=False):
                return store_frequency_table(client, self.index, SketchField(self.field), self.recipe)
        except IndexUnusable as error:
            notes.append(str(error))
            return None

    def waiting(self, facts: IndexFacts) -> dict[str, Any]:
        """The query for the documents that remain to be done."""
        where = SketchField(self.field)
        only = [] if facts.filter is None else [facts.filter]
        if self.remove:
            stored = [{"exists": {"field": path}} for path in where.stored]
            return {"bool": {"should": stored, "minimum_should_match": 1, "filter": only}}
        made = {where.recipe: self.recipe.id, where.text: fields_text(self.fields)}
        lacking: list[dict[str, Any]] = [{"bool": {"must_not": [{"term": {path: one}}]}} for path, one in made.items()]
        wanted = [path for path, on in ((where.keys, self.keys), (where.numbers, self.numbers)) if on]
        for path in wanted:  # the sketch was stored without them
            lacking.append({"bool": {"filter": [stored_sketch(where)], "must_not": [{"exists": {"field": path}}]}})
        return {"bool": {"should": lacking, "minimum_should_match": 1, "filter": only}}

    def _plan(self, client: Any, facts: IndexFacts) -> Work:
        problem = self._problem(facts)
        waiting = 0 if problem else self._count(client, facts)
        if not self.remove and not problem:
            problem = self._problem_with_fields(client, facts, waiting) or self._problem_with_own_field(client, facts)
        work = Work(index=facts.name, documents=facts.documents, waiting=waiting, problem=problem, facts=facts)
        if self.remove or problem or not self._has_stale(client, facts):
            return work
        return dataclasses.replace(work, waiting=facts.documents, stale=True)

    def every(self, facts: IndexFacts) -> SketchDocuments:
        """The job that compares all documents with their sketches."""
        only = [] if facts.filter is None else [facts.filter]
        return SketchDocuments(self, {"bool": {"filter": only}}, compare=True)

    def _has_stale(self, client: Any, facts: IndexFacts) -> bool:
        """Whether a sketch in a sample of the documents that are done is not of its text."""
        job = self.every(facts)
        done = {"bool": {"filter": [job.search["query"]], "must_not": [self.waiting(facts)]}}
        body = {**job.search, "query": done}
        return not job.all_fit(sampled(client, facts.name, body, page_size(facts)))

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
            return f"{self.field} is not mapped as sketches are, so it is not ours" if foreign else ""
        known, missing = facts.mapping.get("properties", {}), self._missing(facts)
        after = {**missing, **known}
        if self.field in missing and "properties" in known.get(self.field, {}):
            inner = {**known[self.field]["properties"], **missing[self.field]["properties"]}
            after[self.field] = {**known[self.field], "properties": inner}
        found = check_mapping({**facts.mapping, "properties": after}, self.field)
        return next((str(one) for one in found if one.level == "error"), "")

    def _problem_with_fields(self, client: Any, facts: IndexFacts, waiting: int) -> str:
        """The problem that no document has text in the fields: all would get an empty sketch and count as done.

        If no document is waiting, those with a sketch of a text are looked at.
        """
        query = self.waiting(facts) if waiting else stored_sketch(SketchField(self.field))
        query = {"match_all": {}} if self.recheck else query
        filtered = {"query": query, "_source": {"excludes": [self.field]}}
        sources = [hit["_source"] for hit in sampled(client, facts.name, filtered, _LOOKED_AT)]
        if not sources or any(text_of(source, self.fields) for source in sources):
            return ""
        mapped = [{"exists": {"field": path}} for path in self.fields if is_mapped(facts.mapping, path)]
        having = {"query": {"bool": {"should": mapped, "minimum_should_match": 1}}}
        if mapped and client.count(index=facts.name, body=having)["count"]:
            return ""
        there = sorted({path for source in sources for path in _texts_in(source)} - {SketchField(self.field).keys})
        named = ", ".join(there[:_NAMED]) + (", ..." if len(there) > _NAMED else "")
        looked_at = f"none of {many(len(sources), 'checked document')} has text in {', '.join(self.fields)}"
        return f"{looked_at} (fields with text: {named})" if there else looked_at

    def _problem_with_own_field(self, client: Any, facts: IndexFacts) -> str:
        """The problem that a sketch would overwrite a field of the user's that is not in the mapping."""
        where, mapping = SketchField(self.field), facts.mapping
        other = "choose another name: --field"
        for path in mapping.get("runtime", {}):
            if path.partition(".")[0] in (where.name, where.keys):
                return f"it has a runtime field {path} that is not a sketch; {other}"
        names = [where.name, where.keys] if self.keys else [where.name]
        unmapped = [name for name in names if name not in mapping.get("properties", {})]
        if not unmapped or str(mapping.get("dynamic", "true")).lower() in ("true", "strict"):
            return ""  # every field of a document is mapped
        body = {"query": self.waiting(facts), "_source": [where.name, where.keys]}
        with snapshot(client, facts.name, Retry(self.rate)) as now:  # one of all may have it
            for hit in chain.from_iterable(now.pages(body, _PAGE)):
                if name := self.own_field(hit.get("_source", {})):
                    return f"document {hit['_id']} has a field {name} that is not a sketch; {other}"
        return ""

    def _with_fields(self, client: Any, item: Work, retry: Retry) -> Work:
        """Add the fields of the sketch to the mapping; returns the work, with a problem if the server refuses them."""
        if not self.remove and (missing := self._missing(item.facts)):
            try:
                retry.call(lambda: client.indices.put_mapping(index=item.index, body={"properties": missing}))
            except Exception as error:
                if status_of(error) != 400:
                    raise
                what = f"the server refuses the fields of the sketch ({server_reason(error)})"
                return dataclasses.replace(item, problem=f"{what}; index_templates/README.md explains them")
        return item

    def _missing(self, facts: IndexFacts) -> dict[str, Any]:
        """The part of our mapping that the index lacks."""
        known = facts.mapping.get("properties", {})
        missing = {
            name: one for name, one in mapping_properties(self.field, self.keys > 0).items() if name not in known
        }
        ours, there = mapping_properties(self.field)[self.field]["properties"], known.get(self.field, {})
        wanted = {"numbers": self.numbers, "smallest": True, "text": True}
        given = there.get("properties", ours)
        if given.keys() <= {*ours, *MARKS}:  # such as the mapping of marks alone
            wanted |= {"sketch": True, "recipe": True}
        later = {name: ours[name] for name, on in wanted.items() if on and name not in given}
        if later:  # the mapping was made without these
            missing[self.field] = {"properties": later}
        return missing

    def _count(self, client: Any, facts: IndexFacts) -> int:
        client.indices.refresh(index=facts.name)
        return int(client.count(index=facts.name, body={"query": self.waiting(facts)})["count"])

    def _notes(self, work: Sequence[Work]) -> list[str]:
        notes = [f"{item.index} was skipped: {item.problem}" for item in work if item.problem]
        for item in work:
            if item.stale:
                notes.append(f"{item.index} has a sketch that is not of its text: all sketches are compared")
            unknown = [path for path in self.fields if not is_mapped(item.facts.mapping, path)]
            if unknown and not item.problem and item.facts.mapping.get("dynamic", "true") not in (False, "false"):
                notes.append(f"the mapping of {item.index} has no field {', '.join(unknown)}: check the name")
        streams = {item.facts.data_stream for item in work if item.facts.data_stream and self._missing(item.facts)}
        if self.remove:
            without = [item.index for item in work if self.field not in item.facts.mapping.get("properties", {})]
            notes += [f"the mapping of {name} has no field {self.field}: check the name" for name in without]
            if len(without) < len(work):
                notes.append(f"the mapping of {self.field} stays: engines cannot remove a field from a mapping")
        elif streams:
            names = ", ".join(sorted(map(str, streams)))
            notes.append(
                f"the next backing index of {names} will not have the field {self.field}: "
                "add it to the index template (ndd-search backfill URL --template NAME)"
            )
        return notes


def page_size(facts: IndexFacts) -> int:
    """Return how many documents of an index are read at once."""
    average = max(facts.bytes / facts.documents, 1.0) if facts.documents else 1.0
    return max(int(min(_PAGE, _PAGE_BYTES / average)), 1)


def _texts_in(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of the text values of a document, except those in sketches."""
    if isinstance(value, Mapping) and not is_sketch_object(value):
        for name, one in value.items():
            yield from _texts_in(one, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for one in value:
            yield from _texts_in(one, path)
    elif isinstance(value, str):
        yield path


def store_frequency_table(client: Any, index: str, field: SketchField, recipe: Recipe) -> FrequencyTable | None:
    """Count the table of an index in a sample of 5,000 documents, and store it instead of the one that is there.

    client: synchronous, not wrapped or with collapsing switched off; with the right to read the index, and to create
    and write the companion index. index: the name that searches use. Returns None, and stores nothing, if no document
    has a sketch of the recipe. Raises IndexUnusable if the server does not store the table; other errors of the client
    pass through.
    """
    read = field.decode(sample(client, index, field, recipe), recipe)
    sketches = [one for one in read if not isinstance(one, str)]
    if not sketches:
        return None
    table = count_document_frequency(sketches, recipe)
    id, body = document_id(index, field, recipe.id), document(index, field, table)
    try:
        _create_companion(client)
        client.index(index=TABLES, id=id, body=body, refresh=True)
    except Exception as error:
        if status_of(error) is None:
            raise
        remedy = "clients count in the hits of each search; give backfill the rights to create and write this index"
        raise IndexUnusable(TABLES, f"the frequency table was not stored: {server_reason(error)}", remedy) from None
    return table


def sample(client: Any, index: str, field: SketchField, recipe: Recipe) -> list[dict[str, Any]]:
    """Return at most 5,000 documents of a recipe, drawn at random, with their sketches. The draw has a fixed seed."""
    of_recipe = {"match": {field.recipe: {"query": recipe.id, "operator": "and"}}}  # works for keyword and text
    chance = {"random_score": {"seed": 1, "field": "_seq_no"}, "boost_mode": "replace"}
    query = {"function_score": {"query": {"bool": {"filter": [of_recipe]}}, **chance}}
    body = {"query": query, "_source": False, "track_total_hits": False, "docvalue_fields": list(field.read)}
    try:
        found = client.search(index=named(index), body={**body, "size": _SAMPLE})["hits"]
    except Exception as error:
        if (most := window_limit(str(error))) is None:
            raise
        found = client.search(index=named(index), body={**body, "size": most})["hits"]
    return list(found["hits"])


def _create_companion(client: Any) -> None:
    try:
        client.indices.create(index=TABLES, body=_COMPANION)
    except Exception as error:
        if status_of(error) not in _EXISTS:
            raise
