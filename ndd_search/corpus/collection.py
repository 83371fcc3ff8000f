"""A collection: how it is read, and what is found in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np

from ndd_search.core.document_fields import value_of
from ndd_search.core.matching.decision import Decision, Setting
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.sketch_rows import Ranks
from ndd_search.core.options import CollapseOptions, Keep
from ndd_search.core.paging.choose_copy import order_of_preference
from ndd_search.core.presets import collapse_options
from ndd_search.core.recipe import Recipe
from ndd_search.corpus import sketch_store
from ndd_search.corpus.collection_groups import Groups
from ndd_search.corpus.collection_pairs import BUDGET, Found, Progress, Search, shingles_of
from ndd_search.corpus.communities import EACH, communities, connected
from ndd_search.corpus.contained_documents import most_inclusive
from ndd_search.corpus.document_batches import Document, IndexSource, LeftOut, Pieces, Report, id_of, is_text
from ndd_search.corpus.guard_columns import Guards, check_kept
from ndd_search.corpus.kept_documents import Documents
from ndd_search.corpus.mirrored_hosts import Hosts, check_hosts, hosts_of
from ndd_search.corpus.newcomers import Newcomers
from ndd_search.corpus.read_collection import Fields
from ndd_search.corpus.sketch_store import Rows
from ndd_search.errors import RecipeMismatch

log = logging.getLogger("ndd_search")

Method = Literal["leaders", "connected", "communities", "inclusive"]


class Settings(TypedDict, total=False):
    """Which pairs of a collection count, beside min_similarity, and what the search may cost.

    must_match, numbers_must_match, max_apart: as in a search (CollapseOptions), max_apart with one field. The
    fields must have been kept by `Corpus.read(fields=...)`, the numbers by `Corpus.read(numbers=True)`.
    budget, progress: see corpus.pairs.Search.
    """

    must_match: Sequence[str]
    numbers_must_match: bool
    max_apart: Mapping[str, str]
    budget: int
    progress: Progress | None


class Corpus(Documents):
    """A collection that can be searched for near-duplicates; make one with `read` or `load`."""

    @classmethod
    def read(
        cls,
        *sources: object,
        text: str | Sequence[str],
        id: str | None = None,
        recipe: Recipe | str | None = None,
        fields: Sequence[str] = (),
        numbers: bool = False,
        store: str | Path | None = None,
        report: Report | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Corpus:
        """Read a collection and sketch its documents, a batch at a time; texts are not held in memory.

        sources:  paths or patterns of paths (.parquet, .jsonl, .csv and the like, also with .gz, or a folder of texts),
                  tables of pyarrow, polars, pandas or DuckDB, an IndexSource, or iterables of mappings.
        text:     the field with a document's text, or several. A document without text gets an empty sketch, which is
                  nobody's duplicate.
        id:       the field with a document's id; by default "_id" or "id", and the document's place where it has none.
                  A document without an id in that field, or with the id of an earlier one, is reported and left out.
        recipe:   or its id.
        fields:   fields whose values are held in memory, for `keep`, guards and reports.
        numbers:  whether the numbers of each text are held, too, for numbers_must_match.
        store:    a folder that takes the sketches while they are made: the same call goes on there after it was
                  interrupted in any way.
        report:   told a sentence for every line, document or file that is left out; by default a warning is logged.
        progress: called with a number of documents more.
        Raises InvalidDocument when no document has text, IndexUnusable for a store of another reading.
        """
        pieces, recipe = Pieces.of(sources), Recipe.of(recipe)
        chosen = Fields((text,) if isinstance(text, str) else tuple(text), recipe, tuple(fields), numbers)
        rows = _Reading(pieces, chosen, id).run(store, report or log.warning, progress or _ignore)
        for name in chosen.fields:
            if rows.ids and all(value is None for value in rows.columns[name]):
                log.warning("no document has a value in the field %r: check its name", name)
        return cls(rows.ids, rows.sketches, recipe, rows.columns, pieces, chosen.text, id)

    @classmethod
    def load(cls, path: str | Path) -> Corpus:
        """A collection that `save` has written. Raises InvalidDocument for another file."""
        rows, recipe, _ = sketch_store.read_rows(Path(path))
        return cls(rows.ids, rows.sketches, recipe, rows.columns)

    def groups(
        self,
        min_similarity: Setting = "auto",
        method: Method = "leaders",
        *,
        keep: Sequence[Keep] = ("score",),
        origins: str | Sequence[str] = (),
        **settings: Unpack[Settings],
    ) -> Groups:
        """The groups of near-duplicates.

        min_similarity: as in a search; "auto" counts common values in the collection itself.
        method: "leaders": each document is a near-duplicate of the one that leads its group, as on a page.
                "connected": two documents are in one group when a chain of near-duplicates joins them.
                "communities": chains, but parts of a chain that only a few pairs join stay apart; needs networkx.
                "inclusive": each document stands word for word in the one that leads its group, the longest such one,
                as a mail does in a reply (see corpus.inclusive). It takes no min_similarity and no keep, and holds all
                texts in memory.
        keep:   which document of a group leads it, as in a search; "score" is the order of reading. The fields that it
                names must have been kept by `read(fields=...)`.
        origins: as in a search; each row of the groups then tells the origins of its group. Kept fields, too.
        settings: see Settings.
        """
        check_method(method)
        told = CollapseOptions(origins=origins)  # type: ignore[arg-type]  # one name is made a tuple
        check_kept(told, self.columns)
        search = self._search(min_similarity, settings)
        order = self._order(keep)
        sketches = self.sketches
        if order is not None:
            sketches, search = sketch_store.taken(sketches, order), replace(search, guards=search.guards.taken(order))
        if method in ("leaders", "inclusive"):
            if method == "leaders":
                led = search.leaders(sketches)
            elif min_similarity == "auto" and order is None:
                led = most_inclusive(sketches, self.texts(range(len(self))), search.guards, self.recipe)
            else:
                raise ValueError('method "inclusive" shows the longest text: leave out min_similarity and keep')
            leader, similarity, effort = led.leader, led.similarity, led.effort
        else:
            found = search.pairs(sketches, EACH)
            joined = connected if method == "connected" else communities
            leader, similarity, effort = joined(len(self), found.pairs, found.same), None, found.effort
        if order is not None:
            back = np.empty(len(self), np.int64)
            back[order] = np.arange(len(self))
            leader, similarity = order[leader[back]], None if similarity is None else similarity[back]
        return Groups(self, leader, similarity, effort, search.decision, method, told.origins)

    def pairs(self, min_similarity: Setting = "auto", **settings: Unpack[Settings]) -> Found:
        """All pairs of near-duplicates, by place; documents with equal sketches are told apart from them."""
        return self._search(min_similarity, settings).pairs(self.sketches)

    def new(self, against: Corpus, min_similarity: Setting = "auto", **settings: Unpack[Settings]) -> Newcomers:
        """Which documents are near-duplicates neither of one in an earlier collection nor of an earlier one here.

        A document without text is new unless the earlier collection has one without text and with the same id.
        Raises RecipeMismatch when the earlier collection has sketches of another recipe.
        """
        if against.recipe != self.recipe:
            raise RecipeMismatch("the earlier collection", against.recipe.id, self.recipe.id)
        names = [name for name in self.columns if name in against.columns]
        both = Rows.joined([Rows(one.ids, one.sketches, one.columns) for one in (against, self)], names)
        whole = Corpus(both.ids, both.sketches, self.recipe, both.columns)
        led = whole._search(min_similarity, settings).leaders(both.sketches, len(against))
        leader = led.leader[len(against) :].copy()
        known = {against.ids[place]: place for place in against.textless}
        for place in self.textless:
            leader[place] = known.get(self.ids[place], leader[place])
        return Newcomers(self, against, leader, led.similarity[len(against) :], led.effort)

    def hosts(
        self,
        url: str = "url",
        min_similarity: Setting = "auto",
        *,
        min_share: float = 0.5,
        **settings: Unpack[Settings],
    ) -> Hosts:
        """The pairs of hosts that have the same pages, such as mirrors.

        url:       the field with the URL of each document; kept by `read(fields=[url])`, or the field of the ids.
        min_share: the share of the pages of one of the two hosts that have a near-duplicate on the other one, 0..1.
        min_similarity, settings: as for `groups`.
        Raises ValueError for a field that was not kept.
        """
        check_hosts(url, (*self.columns, self.id_field), min_share)
        urls = self.columns.get(url, self.ids)
        return hosts_of(self.groups(min_similarity, **settings), urls, min_share)

    def _search(self, min_similarity: Setting, settings: Settings) -> Search:
        search, options = search_of(self.recipe, min_similarity, settings, lambda: self.frequency_table)
        check_kept(options, self.columns)
        return replace(search, guards=Guards.of(options, self.columns))

    def _order(self, keep: Sequence[Keep]) -> Ranks | None:
        """The places of all documents, the one to lead a group first; None for the order of reading."""
        options = CollapseOptions(keep=tuple(keep))
        if options.keep == ("score",):
            return None
        if any(callable(wish) for wish in options.keep):
            raise ValueError("keep of a collection names wishes such as newest:FIELD; callables are for searches")
        check_kept(options, self.columns)
        shingles = shingles_of(self.sketches, self.recipe.k)
        order = order_of_preference(
            range(len(self)), range(len(self)), lambda at: float(shingles[at]), lambda at, name: self.columns[name][at],
            options.preferences,
        )  # fmt: skip
        return np.array(order, np.int64)


def search_of(
    recipe: Recipe,
    min_similarity: Setting,
    settings: Settings,
    table: Callable[[], FrequencyTable],
    keep: Sequence[Keep] = ("score",),
) -> tuple[Search, CollapseOptions]:
    """How a collection is searched, without the codes and times of guards, and the options that name its fields.

    table: returns the frequency table of the collection, which "auto" needs.
    """
    others: dict[str, Any] = {name: value for name, value in settings.items() if name not in ("budget", "progress")}
    options = collapse_options(**others, keep=tuple(keep))
    if len(options.max_apart) > 1:
        raise ValueError(f"max_apart of a collection takes one field, got {', '.join(options.max_apart)}")
    weighs = min_similarity == "auto" and recipe.measure == "kmv"
    search = Search(
        recipe=recipe,
        decision=Decision.of(min_similarity, recipe, table() if weighs else None),
        min_shingles=recipe.min_shingles,
        guards=Guards(apart=sum(options.seconds_apart.values())),
        budget=settings.get("budget", BUDGET),
        progress=settings.get("progress"),
    )
    return search, options


def check_method(method: str) -> None:
    """Raise ValueError for a method that `groups` does not have."""
    if method not in get_args(Method):
        raise ValueError(f"method is one of {', '.join(get_args(Method))}, got {method!r}")


@dataclass(frozen=True)
class _Reading:
    """How a collection is read."""

    pieces: Pieces
    fields: Fields
    id: str | None

    def run(self, folder: str | Path | None, report: Report, progress: Callable[[int], object]) -> Rows:
        kept = None if folder is None else sketch_store.Store(folder, self.fields.recipe, self._told)
        before = kept.parts() if kept else []
        parts = [rows for rows, _ in before]
        seen = {name for rows in parts for name in rows.ids}
        progress(len(seen))
        *start, place = before[-1][1] if before else (0, 0, 0)
        resumed = self.pieces.pieces[start[0] : start[0] + 1]
        stored = set(seen) if before and isinstance(next(iter(resumed), None), IndexSource) else set()
        waiting: list[Rows] = []
        there: dict[str, None] = {}
        any_text = any(len(rows.sketches.values) for rows in parts)
        left_out = LeftOut(self.pieces, self.id)
        for position, batch in self.pieces.read(report, self.fields.wanted(self.id), (start[0], start[1])):
            if not seen:
                self._note_absent(batch)
                there = dict.fromkeys(name for document in batch for name in document)
            names, chosen = [], []
            for document in batch:
                name = id_of(document, self.id, place)
                place += 1
                if name in stored:  # read from the index before the interruption
                    stored.discard(name)
                elif name is None or name in seen or not is_text(name):
                    left_out.add(place, name)
                else:
                    seen.add(name)
                    names.append(name)
                    chosen.append(document)
            texts = self.fields.texts(chosen)
            any_text = any_text or any(texts)
            waiting.append(self.fields.sketched(chosen, texts, names))
            progress(len(batch))
            if kept and sum(len(rows.ids) for rows in waiting) >= sketch_store.PART:
                parts.append(Rows.joined(waiting, self.fields.kept))
                kept.add(parts[-1], (*position, place))
                waiting = []
        left_out.tell(report)
        if seen and self.fields.text and not any_text:
            raise self.fields.without_text(len(seen), there)
        if waiting:
            parts.append(Rows.joined(waiting, self.fields.kept))
            if kept:
                kept.add(parts[-1], (len(self.pieces.pieces), 0, place))
        return Rows.joined(parts, self.fields.kept)

    def _note_absent(self, batch: Sequence[Document]) -> None:
        """Log the text fields that no document of the first batch has, if another one has text."""
        absent = [name for name in self.fields.text if all(value_of(document, name) is None for document in batch)]
        if absent and len(absent) < len(self.fields.text):
            log.warning("none of the first %d documents has a field %s: check its name", len(batch), ", ".join(absent))

    @property
    def _told(self) -> dict[str, Any]:
        fields = self.fields
        return {"text": list(fields.text), "id": self.id, "fields": list(fields.kept), "sources": self.pieces.stamps}


def _ignore(count: int) -> None:
    pass
