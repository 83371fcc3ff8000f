"""Checks an index for common problems with sketches; each finding comes with a remedy."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ndd_search.core.document_fields import absent_fields, value_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.copies_or_entries import few_words
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import Field, Several, YesNo, checked, setting
from ndd_search.core.sketching.stored_sketch import (
    STALE,
    SketchField,
    StoredSketches,
    are_keys,
    fields_in_text,
    listed,
)
from ndd_search.core.text.printable import many
from ndd_search.errors import KeyNeeded
from ndd_search.indexing.index_facts import IndexFacts, look_up
from ndd_search.indexing.rate_and_retries import Retry
from ndd_search.indexing.scan import Hits, sampled, snapshot
from ndd_search.indexing.sketch_or_remove import SketchDocuments
from ndd_search.search.flow.client_settings import options
from ndd_search.search.index_rules import OfRecipe
from ndd_search.search.rest.mapping import Finding, check_mapping
from ndd_search.search.rest.wider_requests import sketch_reading
from ndd_search.search.writing.sketch_or_mark_stale import SketchSettings

NONE, OTHER = "(none)", "(another)"  # in counts: the recipe of documents without a sketch; one that cannot be named
_SAMPLE = 500  # documents read
_EXAMPLES = 3  # ids of documents with the sketch of another text


@dataclass(frozen=True)
class Figures:
    """Counts and shares.

    documents, bytes: of all open indexes; bytes of their primary shards.
    recipes:        number of documents by recipe id, NONE for those without a sketch, OTHER for those of other recipes
                    where the recipe is mapped as text.
    sampled:        number of documents of the recipe that were read: those written last, and as many at random; or all.
    few_words:      a sentence if most of them have few words, else "".
    without_text:   share of them whose sketch is empty, as their text is.
    absent:         source fields that none of them has.
    wrong:          share of them whose sketch, keys or mark of a group are not those of their text, so that a backfill
                    with `recheck` would write them again; None if the source fields are unknown.
    examples:       ids of some of these documents.
    """

    documents: int
    bytes: int
    recipes: Mapping[str, int]
    sampled: int = 0
    few_words: str = ""
    without_text: float = 0.0
    absent: Sequence[str] = ()
    wrong: float | None = None
    examples: Sequence[str] = ()


@dataclass(frozen=True)
class Diagnosis:
    """The result of Doctor.examine. figures: None if no index is open. findings: the most severe first."""

    figures: Figures | None
    findings: tuple[Finding, ...]


@checked
@dataclass(frozen=True, kw_only=True)
class Doctor:
    """A check of an index.

    index:  an index, alias, data stream, pattern, or several joined by commas.
    fields: the text fields that make the sketch; () for those that each sketch names.
    recipe, field: of the sketches.
    all:    compare the sketches of all documents with their texts, and not of a sample of 500.
    """

    index: str
    fields: Sequence[str] = setting(Several(Field()), ())
    recipe: Recipe = setting(OfRecipe(Recipe()), Recipe())
    field: str = "ndd"
    all: bool = setting(YesNo(), False)

    @property
    def _where(self) -> SketchField:
        return SketchField(self.field)

    def examine(self, client: Any) -> Diagnosis:
        """Run the checks, which only read. client: synchronous. Raises IndexUnusable if there is no such index."""
        with options(enabled=False):
            indexes = look_up(client, self.index)
            findings = [finding for facts in indexes for finding in self._index(facts)]
            is_open = [facts for facts in indexes if not facts.closed]
            figures = self._figures(client, is_open) if is_open else None
        if figures:
            findings += self._coverage(figures)
        order = ("error", "warning", "note", "ok")
        unique = list(dict.fromkeys(findings))
        return Diagnosis(figures, tuple(sorted(unique, key=lambda finding: order.index(finding.level))))

    def _index(self, facts: IndexFacts) -> Iterator[Finding]:
        for finding in check_mapping(facts.mapping, self.field):
            yield Finding(finding.level, f"{facts.name}: {finding.about}", finding.what, finding.remedy)
        about = f"{facts.name}: settings"
        if facts.not_writable:
            yield Finding(
                "note",
                about,
                f"{facts.not_writable}: a backfill skips it",
                "open it, or remove the block, before a backfill",
            )
        window = int(facts.settings.get("max_result_window", 10_000))
        if window < CollapseOptions().window:
            remedy = f"raise index.max_result_window to {CollapseOptions().window} or more, or set window"
            yield Finding("error", about, f"max_result_window is {window}, less than the first window", remedy)
        elif window < CollapseOptions().max_window:
            what = f"max_result_window is {window}: the deduplicated list ends after {window} hits"
            yield Finding("note", about, what, "raise it if users page that deep")

    def _coverage(self, figures: Figures) -> Iterator[Finding]:
        run = f"run ndd-search backfill ... {self.index} --fields ..."
        total, stale = sum(figures.recipes.values()), figures.recipes.get(STALE, 0)
        if missing := total - stale - figures.recipes.get(self.recipe.id, 0):
            of_all = f"{missing:,} of {many(total, 'document')}"
            what = f"no sketch of recipe {self.recipe.id} in {of_all}: each is shown by itself"
            yield Finding("warning", "coverage", what, run)
        elif not stale:
            what = f"every one of {many(total, 'document')} has a sketch of recipe {self.recipe.id}"
            yield Finding("ok", "coverage", what if total else "there are no documents yet")
        if stale:
            what = f"the sketch of {many(stale, 'document')} is stale, as updates changed a part of the text"
            yield Finding("warning", "coverage", what, run)
        others = [name for name in figures.recipes if name not in (self.recipe.id, STALE, NONE)]
        if others:
            what = f"there are sketches of other recipes ({', '.join(others)}): a client compares only one"
            yield Finding("note", "coverage", what, f"pass the stored recipe to the client, recipe=..., or {run}")
        if figures.wrong:
            wrong, fields = round(figures.wrong * figures.sampled), ", ".join(self.fields)
            those = f"{wrong:,} of {figures.sampled:,} checked sketches, with their keys and marks,"
            what = f"{those} are not of the text{fields and f' in {fields}'}: {', '.join(figures.examples)}"
            remedy = f"give the right --fields; or {run} --recheck, and let updates go through ndd.with_sketches"
            yield Finding("warning", "sample", what, remedy)
        if figures.absent:
            what = f"none of {many(figures.sampled, 'sampled document')} has a field {', '.join(figures.absent)}"
            yield Finding("warning", "sample", what, "check its name, here and where documents are sketched")
        if figures.without_text:
            what = f"{figures.without_text:.1%} of {many(figures.sampled, 'sampled document')} have no text"
            yield Finding("note", "sample", what, "each is shown by itself; sketch a field that all documents have")
        if figures.few_words:
            yield Finding("note", "sample", figures.few_words, "or add fields to the sketch")

    def _figures(self, client: Any, indexes: Sequence[IndexFacts]) -> Figures:
        names = ",".join(facts.name for facts in indexes)
        recipes = self._recipes(client, names, indexes)
        figures = Figures(sum(one.documents for one in indexes), sum(one.bytes for one in indexes), recipes)
        sketches_of = StoredSketches(self._where, self.recipe)
        is_text = any(_kind(one.mapping, self._where.recipe) == "text" for one in indexes)
        reading = sketch_reading(sketches_of, text=is_text)
        read = {"docvalue_fields": list(reading.stored), "fields": list(reading.fields)}
        checked = _Checked(self)
        if recipes.get(self.recipe.id):
            for hits in self._documents(client, names, read):
                checked.add(hits)
        return checked.figures(figures)

    def _recipes(self, client: Any, names: str, indexes: Sequence[IndexFacts]) -> dict[str, int]:
        """Count documents by recipe. Where dynamic mapping made it a text, the engine finds names and lists none."""
        path = self._where.recipe
        kinds: dict[str, list[IndexFacts]] = {}
        for facts in indexes:
            kinds.setdefault(_kind(facts.mapping, path), []).append(facts)
        known: dict[str, Any] = {NONE: {"bool": {"must_not": {"exists": {"field": path}}}}}
        for name in (self.recipe.id, STALE):
            known[name] = {"match": {path: {"query": name, "operator": "and"}}}
        counts: Counter[str] = Counter()
        for kind, those in kinds.items():
            if kind not in ("keyword", "text"):
                counts[NONE] += sum(facts.documents for facts in those)
                continue
            listed = {"terms": {"field": path, "missing": NONE, "size": 20}}
            found = {"filters": {"filters": known, "other_bucket_key": OTHER}}
            body = {"size": 0, "aggs": {"recipes": listed if kind == "keyword" else found}}
            response = client.search(index=",".join(facts.name for facts in those), body=body)
            buckets = response["aggregations"]["recipes"]["buckets"]
            named = buckets.items() if isinstance(buckets, dict) else ((one["key"], one) for one in buckets)
            counts.update({name: bucket["doc_count"] for name, bucket in named})
        return {name: count for name, count in counts.items() if count}

    def _documents(self, client: Any, names: str, read: Mapping[str, Any]) -> Iterator[Hits]:
        """Yield documents of the recipe: a sample, or all in pages."""
        query = {"match": {self._where.recipe: {"query": self.recipe.id, "operator": "and"}}}
        body = {"query": query, "_source": True, **read}
        if not self.all:
            yield sampled(client, names, body, _SAMPLE)
            return
        with snapshot(client, names, Retry()) as now:
            yield from now.pages(body, _SAMPLE)


class _Checked:
    """Counts what is wrong with documents, as a backfill would judge it."""

    def __init__(self, doctor: Doctor) -> None:
        self._doctor, self._where = doctor, SketchField(doctor.field)
        self._lengths = [np.empty(0, np.int64)]
        self._absent = list(doctor.fields)
        self._judged = 0
        self._wrong: list[str] = []

    def add(self, hits: Hits) -> None:
        """Count more documents."""
        doctor = self._doctor
        sketches = self._where.decode(hits, doctor.recipe)
        self._lengths.append(np.array([0 if isinstance(one, str) else len(one) for one in sketches], np.int64))
        self._absent = absent_fields(self._absent, [hit.get("_source", {}) for hit in hits])
        alike: dict[tuple[tuple[str, ...], int], Hits] = {}  # by the fields of the text, and how many keys are stored
        for hit in hits:
            source = hit.get("_source", {})
            keys = source.get(self._where.keys)
            if fields := tuple(doctor.fields or fields_in_text(str(value_of(source, self._where.text) or ""))):
                alike.setdefault((fields, len(listed(keys)) if are_keys(keys) else 0), []).append(hit)
        for (fields, keys), those in alike.items():
            self._judged += len(those)
            try:
                stored = SketchSettings(fields=fields, recipe=doctor.recipe, field=doctor.field, keys=keys)
            except KeyNeeded:
                raise
            except ValueError:  # no settings store so many keys, or so few
                self._wrong += [hit["_id"] for hit in those]
                continue
            changes = SketchDocuments(stored, {}, compare=True).changes(those)
            self._wrong += [hit["_id"] for hit, change in zip(those, changes, strict=True) if change is not None]

    def figures(self, known: Figures) -> Figures:
        """Return the figures with what was counted."""
        lengths = np.concatenate(self._lengths)
        if not (count := len(lengths)):
            return known
        return dataclasses.replace(
            known,
            sampled=count,
            few_words=few_words(lengths, self._doctor.recipe),
            without_text=float((lengths == 0).mean()),
            absent=self._absent,
            wrong=len(self._wrong) / count if self._judged else None,
            examples=self._wrong[:_EXAMPLES],
        )


def _kind(mapping: Mapping[str, Any], path: str) -> str:
    """Return the type of a field, "" for one that is not mapped, or that no aggregation can count."""
    for name in path.split("."):
        mapping = mapping.get("properties", {}).get(name, {})
    return "" if mapping.get("doc_values") is False else str(mapping.get("type", ""))
