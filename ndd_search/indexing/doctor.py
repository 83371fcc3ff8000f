"""Checks an index for common problems with sketches; each finding comes with a remedy."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ndd_search.core.document_fields import absent_fields, text_of, value_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.copies_or_entries import few_words
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import Field, Several, check_values, setting
from ndd_search.core.sketching.sketches import Lack, Sketch, sketch_many
from ndd_search.core.sketching.stored_sketch import STALE, SketchField, StoredSketches, are_keys, keys_of, listed
from ndd_search.core.sketching.text_fingerprint import fields_of, still_fit
from ndd_search.core.text.printable import many
from ndd_search.indexing.index_facts import IndexFacts, look_up
from ndd_search.search.flow.options_context import options
from ndd_search.search.rest.mapping import Finding, check_mapping
from ndd_search.search.rest.wider_requests import sketch_reading

NONE, OTHER = "(none)", "(another)"  # in counts: the recipe of documents without a sketch; one that cannot be named
_SAMPLE = 500  # documents read


@dataclass(frozen=True)
class Figures:
    """Counts and shares.

    documents, bytes: of all open indexes; bytes of their primary shards.
    recipes:        number of documents by recipe id, NONE for those without a sketch, OTHER for those of other recipes
                    where the recipe is mapped as text.
    sampled:        number of documents of the recipe that were read, chosen at random.
    average_length: average number of values in their sketches.
    short:          share of them with a text of too few shingles to resemble any but an identical one.
    few_words:      a sentence if most of them have few words, else "".
    without_text:   share of them whose sketch is empty, as their text is.
    absent:         source fields that none of them has.
    wrong:          share of them whose sketch is not that of their text; None if the source fields are unknown.
    wrong_keys:     share of them whose keys are not those of their sketch.
    wrong_marks:    share of them with the mark of a group that was made of another text, as far as `fields` tells.
    """

    documents: int
    bytes: int
    recipes: Mapping[str, int]
    sampled: int = 0
    average_length: float = 0.0
    short: float = 0.0
    few_words: str = ""
    without_text: float = 0.0
    absent: Sequence[str] = ()
    wrong: float | None = None
    wrong_keys: float = 0.0
    wrong_marks: float = 0.0


@dataclass(frozen=True)
class Diagnosis:
    """The result of Doctor.examine. figures: None if no index is open. findings: the most severe first."""

    figures: Figures | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class Doctor:
    """A check of an index.

    index:  an index, alias, data stream, pattern, or several joined by commas.
    fields: the text fields that make the sketch; without them sketches are not compared with their texts.
    recipe, field: of the sketches.
    """

    index: str
    fields: Sequence[str] = setting(Several(Field()), ())
    recipe: Recipe = dataclasses.field(default_factory=Recipe)
    field: str = "ndd"

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", Recipe.of(self.recipe))
        check_values(self)

    @property
    def _where(self) -> SketchField:
        return SketchField(self.field)

    def examine(self, client: Any) -> Diagnosis:
        """Run the checks, which only read. client: synchronous. Raises IndexUnusable if there is no such index."""
        with options(enabled=False):
            indexes = look_up(client, self.index)
            findings = [finding for facts in indexes for finding in self._index(facts)]
            findings += _version(client.info()["version"])
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
        limits = facts.settings.get("mapping", {}).get("total_fields", {})
        fields, most = _mapped(facts.mapping), int(limits.get("limit", 1_000))
        if fields > 0.9 * most:
            remedy = "raise index.mapping.total_fields.limit, or map fewer fields: every sketch takes six"
            yield Finding("warning", about, f"{fields} of at most {most} fields are mapped", remedy)

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
            fields = ", ".join(self.fields)
            what = f"{figures.wrong:.1%} of {figures.sampled} sampled sketches are not of the text in {fields}"
            remedy = f"give the right --fields; or {run} --recheck, and let updates go through ndd.with_sketches"
            yield Finding("warning", "sample", what, remedy)
        if figures.wrong_keys:
            what = f"{figures.wrong_keys:.1%} of {figures.sampled} sampled documents have keys of another text"
            remedy = f"{run} --recheck, and do not write with keys=0 where texts change"
            yield Finding("warning", "sample", what, remedy)
        if figures.wrong_marks:
            share = f"{figures.wrong_marks:.1%} of {figures.sampled} sampled documents"
            what = f"{share} have the mark of a group of another text"
            remedy = f"{run} --recheck, which removes these marks; then run ndd-search corpus groups and mark again"
            yield Finding("warning", "sample", what, remedy)
        if figures.absent:
            what = f"none of {many(figures.sampled, 'sampled document')} has a field {', '.join(figures.absent)}"
            yield Finding("warning", "sample", what, "check its name, here and where documents are sketched")
        if figures.without_text:
            what = f"{figures.without_text:.1%} of {many(figures.sampled, 'sampled document')} have no text"
            yield Finding("note", "sample", what, "each is shown by itself; sketch a field that all documents have")
        if figures.few_words:
            yield Finding("note", "sample", figures.few_words, "or add fields to the sketch")
        elif figures.short > 0.2:
            what = f"{figures.short:.0%} of the texts are too short to resemble any but an identical one"
            yield Finding("note", "sample", what, "add fields to the sketch")

    def _figures(self, client: Any, indexes: Sequence[IndexFacts]) -> Figures:
        names = ",".join(facts.name for facts in indexes)
        recipes = self._recipes(client, names, indexes)
        figures = Figures(sum(one.documents for one in indexes), sum(one.bytes for one in indexes), recipes)
        sketches_of = StoredSketches(self._where, self.recipe)
        is_text = any(_kind(one.mapping, self._where.recipe) == "text" for one in indexes)
        reading = sketch_reading(sketches_of, text=is_text)
        read = {"docvalue_fields": list(reading.stored), "fields": list(reading.fields)}
        sample = self._sample(client, names, read) if recipes.get(self.recipe.id) else []
        if not sample:
            return figures
        sketches = self._where.decode([hit.get("fields", {}) for hit in sample], self.recipe)
        lengths = np.array([0 if isinstance(one, str) else len(one) for one in sketches])
        sources = [hit.get("_source", {}) for hit in sample]
        texts = [text_of(source, self.fields) or "" for source in sources] if self.fields else []
        return dataclasses.replace(
            figures,
            sampled=len(sample),
            average_length=float(lengths.mean()),
            short=float(((lengths > 0) & (lengths < self.recipe.min_shingles)).mean()),
            few_words=few_words(lengths, self.recipe),
            without_text=float((lengths == 0).mean()),
            absent=absent_fields(self.fields, sources),
            wrong=self._wrong(texts, sketches) if texts else None,
            wrong_keys=self._wrong_keys(sample, sketches),
            wrong_marks=self._wrong_marks(sample),
        )

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

    def _sample(self, client: Any, names: str, read: Mapping[str, Any]) -> list[dict[str, Any]]:
        wanted = {"match": {self._where.recipe: {"query": self.recipe.id, "operator": "and"}}}
        body = {
            "query": {"function_score": {"query": wanted, "random_score": {}, "boost_mode": "replace"}},
            "size": _SAMPLE,
            "_source": [*self.fields, self._where.keys, f"{self.field}.judged"],
            **read,
        }
        return list(client.search(index=names, body=body)["hits"]["hits"])

    def _wrong(self, texts: Sequence[str], sketches: Sequence[Sketch | Lack]) -> float:
        """The share of sketches that are not those of the texts."""
        expected = sketch_many(texts, self.recipe)
        wrong = [
            len(right) > 0 if isinstance(stored, str) else stored.tolist() != right.tolist()
            for stored, right in zip(sketches, expected, strict=True)
        ]
        return float(np.mean(wrong))

    def _wrong_keys(self, sample: Sequence[Mapping[str, Any]], sketches: Sequence[Sketch | Lack]) -> float:
        """The share of documents whose keys are not the smallest values of their sketch."""
        wrong = 0
        for hit, stored in zip(sample, sketches, strict=True):
            keys = listed(hit.get("_source", {}).get(self._where.keys))
            values = [] if isinstance(stored, str) else stored.tolist()
            wrong += are_keys(keys) and keys != keys_of(values, len(keys))
        return wrong / len(sample)

    def _wrong_marks(self, sample: Sequence[Mapping[str, Any]]) -> float:
        """The share of documents whose mark has the fingerprint of another text, in fields that were read."""
        sources = [hit.get("_source", {}) for hit in sample]
        judged = [value_of(source, f"{self.field}.judged") for source in sources]
        known = [one if isinstance(one, str) and {*fields_of(one)} <= {*self.fields} else None for one in judged]
        return 1 - float(np.mean(still_fit(known, sources)))


def _mapped(mapping: Mapping[str, Any]) -> int:
    """Count the fields of a mapping as the engines do, including objects and multi-fields."""
    below = [*mapping.get("properties", {}).values(), *mapping.get("fields", {}).values()]
    return sum(1 + _mapped(one) for one in below)


def _kind(mapping: Mapping[str, Any], path: str) -> str:
    for name in path.split("."):
        mapping = mapping.get("properties", {}).get(name, {})
    return str(mapping.get("type", ""))


def _version(version: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the known problems of a server version."""
    number = tuple(int(part) for part in re.findall(r"\d+", version["number"])[:2])
    engine = "OpenSearch" if version.get("distribution") == "opensearch" else "Elasticsearch"
    about, name = "version", f"{engine} {version['number']}"
    if engine == "OpenSearch" and number < (2, 4):
        yield Finding("warning", about, f"{name} is older than the oldest tested version (2.19)", "upgrade")
    elif engine == "OpenSearch" and number < (3, 3):
        yield Finding("note", about, f"{name} cannot page through a point in time: backfill uses scroll instead")
    elif engine == "Elasticsearch" and number < (8, 0):
        yield Finding("warning", about, f"{name} is older than the oldest tested version (8.19)", "upgrade")
    elif engine == "Elasticsearch" and (8, 8) <= number <= (8, 12):
        what = f"{name} fails on searches that have its own `collapse` and ask for doc values"
        yield Finding(
            "warning",
            about,
            what,
            "upgrade, or switch collapsing off for those searches: ndd_search.options(enabled=False)",
        )
