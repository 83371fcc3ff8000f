"""A search index in a folder, for a laptop, a test or a small site: BM25 search by tantivy, pages by `paging`.

The folder holds `ndd.json` (format, text fields, language, recipe) and the files of tantivy. Any number of processes
may read while one writes. Committed documents survive a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress, islice
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Self, Unpack

import numpy as np

from ndd_search.core.document_fields import as_mapping
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.frequency_table import SAMPLE, FrequencyTable
from ndd_search.core.options import CollapseOptions
from ndd_search.core.paging.cache import Cache, MemoryCache, cache_key
from ndd_search.core.paging.cached_streams import CachedStreams
from ndd_search.core.paging.choose_copy import adapt_callables
from ndd_search.core.paging.fill_page import Fetch, fetch_until_full, next_fetch
from ndd_search.core.paging.page import slice_page
from ndd_search.core.paging.record_schema import RecordSchema, check_schema
from ndd_search.core.presets import CollapseChanges, Preset, chosen, preset_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import check_no_table, check_page, fields_in
from ndd_search.core.sketching.sketches import sketch_many
from ndd_search.core.text.printable import many
from ndd_search.embedded.folder import FORMAT, CommonFile, Meta, State, check_meta, engine_errors, read_meta, write_meta
from ndd_search.embedded.stored_document import (
    StoredHit,
    check_id,
    columns_of,
    hits_of_columns,
    id_of,
    possible_id,
    searchable,
    source_of,
    texts_of,
)
from ndd_search.embedded.tantivy_files import Engine, analyzer_of
from ndd_search.errors import IndexUnusable, RecipeMismatch, importing
from ndd_search.search.rest.write_response import block_of, hits_of, total_of

with importing("tantivy", "the embedded index", "tantivy", "embedded"):
    import tantivy

from ndd_search.embedded.query_parser import QueryReader, filterable, ordered, with_dates
from ndd_search.embedded.ranked_hits import Sort, View, sketch_of

log = logging.getLogger("ndd_search")
COMMIT_EVERY = 10_000  # documents; a crash during a long add loses at most this many
_BATCH = 512  # documents sketched in one call


class Index:
    """An index in a folder. Open it with `Index.open`; it is a context manager, and several threads may use it.

    It can be pickled for another process, which opens the same folder with the same options and cache; a cache in
    memory is empty there.
    """

    def __init__(
        self, path: Path, meta: Meta, cache: Cache, options: CollapseOptions | None = None, recipe: Recipe | None = None
    ) -> None:
        check_meta(path, meta)
        self.path, self.meta, self.recipe = path.absolute(), meta, recipe or Recipe.parse(meta.recipe)
        self.options = options or CollapseOptions()
        self._engine = Engine(self.path, meta)
        self._cache, self._streams = cache, CachedStreams(cache, columns_of, hits_of_columns)
        self._common = CommonFile(self.path, self.recipe.id)
        self._name = self.path.resolve().name

    @classmethod
    def open(
        cls,
        path: str | Path,
        text: str | Sequence[str] | None = None,
        *,
        language: str | None = None,
        recipe: Recipe | str | None = None,
        cache: Cache | None = None,
        options: CollapseOptions | None = None,
        preset: str | Preset | None = None,
    ) -> Self:
        """Open the index in a folder, or create one there.

        text:     the fields to search and to sketch; required for a new index, stored in an existing one.
        language: the language of the stemmer, as in "english" (the default) or "german"; "none" does not stem,
                  and keeps Greek accents.
        recipe:   how documents are sketched; a new index uses the default recipe if none is given.
        cache:    the cache of streams; by default 64 MB of memory, entries live ten seconds.
        options:  CollapseOptions for every search.
        preset:   its name, or one read from a file; a new index uses its recipe if none is given.
        Raises IndexUnusable if the folder holds something else, another format, or an index with other fields or
        another language; RecipeMismatch for another recipe; InvalidSettings; MissingExtra without tantivy.
        """
        folder, language = Path(path), language and language.lower()
        fields = None if text is None else fields_in("text", text)
        if fields and len(set(fields)) < len(fields):
            raise ValueError(f"text must name each field once, got {text!r}")
        if (meta := read_meta(folder)) is None:
            if not fields:
                raise IndexUnusable(
                    folder, "there is no index here", 'name the text fields to create one: text=["body"]'
                )
            wanted_recipe = preset_of(preset).recipe if recipe is None and preset is not None else recipe
            meta = Meta(FORMAT, fields, language or "english", Recipe.of(wanted_recipe).id)
            analyzer_of(meta.language)  # before anything is written
            write_meta(folder, meta)
        for name, wanted, stored in (("text", fields, meta.text), ("language", language, meta.language)):
            if wanted is not None and wanted != stored:
                raise IndexUnusable(folder, f"it was made with {name} {stored!r}, not {wanted!r}", "use another folder")
        if recipe is not None and (given := Recipe.of(recipe).id) != meta.recipe:
            raise RecipeMismatch(f"index {str(folder)!r}", meta.recipe, given)
        collapse, _ = chosen(options, meta.recipe, {"preset": preset})
        known = recipe if isinstance(recipe, Recipe) else None  # with its key
        return cls(folder, meta, MemoryCache() if cache is None else cache, collapse, known)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.meta, self._cache, self.options)

    def close(self) -> None:
        """Do nothing: every write is committed when it returns. It exists for symmetry with open."""

    def __len__(self) -> int:
        return int(self._engine.now()[0].num_docs)

    def add(self, documents: Iterable[Mapping[str, Any]]) -> int:
        """Add documents; each replaces one with the same id. Returns how many were added.

        documents: mappings that can be written as JSON, with an id under "id" or "_id" (a string or an integer); any
        iterable, read once, in batches. They are committed every 10,000 documents and at the end: an error or a crash
        loses only documents after the last commit. If none has text, or the first ones lack one of the text fields, the
        log says so. Raises InvalidDocument naming the document.
        """
        if isinstance(documents, str | bytes | Mapping):
            raise TypeError(f"documents must be a list of mappings, got one {type(documents).__name__}")
        check_no_table("documents", documents)
        added, remaining, is_new, with_text = 0, iter(documents), len(self) == 0, set[str]()
        with self._engine.writer() as writer:
            while batch := [self._read(as_mapping(one), n) for n, one in enumerate(islice(remaining, _BATCH), added)]:
                sketches = sketch_many(("\n".join(filter(None, texts)) for _, texts in batch), self.recipe)
                added += len(batch)
                with engine_errors(self.path):
                    for (document, texts), sketch in zip(batch, sketches, strict=True):
                        with_text.update(compress(self.meta.text, texts))
                        document["sketch"] = [sketch.astype("<i4").tobytes()]
                        writer.delete_documents_by_term("id", document["id"][0])
                        writer.add_document(tantivy.Document.from_dict(document, self._engine.index.schema))
                    if added % COMMIT_EVERY < _BATCH:
                        writer.commit()
            with engine_errors(self.path):
                writer.commit()
                self._count_common()
        absent = [name for name in self.meta.text if name not in with_text]
        if added and absent and (is_new or not with_text):
            remedy = "check its name" if with_text else "no search finds them"
            named = many(added, "document"), ", ".join(absent)
            log.warning("%s: none of %s added has text in %s: %s", self.path, *named, remedy)
        return added

    def delete(self, ids: str | int | Iterable[str | int]) -> None:
        """Delete documents by their ids; unknown ids are ignored. Raises TypeError for ids of another type."""
        wanted = [ids] if isinstance(ids, str | int) else list(ids)
        for id in wanted:
            check_id(id)
        with self._engine.writer() as writer:
            for id in wanted:
                if possible_id(id):
                    writer.delete_documents_by_term("id", str(id))
            with engine_errors(self.path):
                writer.commit()

    def get(self, id: str | int) -> dict[str, Any] | None:
        """Return the document with an id, None if there is none. Raises TypeError unless it is a string or integer."""
        check_id(id)
        if not possible_id(id):
            return None
        view = self._view(tantivy.Query.term_query(self._engine.index.schema, "id", str(id)))[0]
        hits = view.fetch(Fetch(0, 1)).hits
        return view.document(hits[0]) if hits else None

    def ids(self) -> list[str]:
        """Return the ids of all documents, in no particular order."""
        view, _ = self._view(tantivy.Query.all_query())
        return [hit.id for hit in view.fetch(Fetch(0, view.searcher.num_docs)).hits]

    def sample(self, count: int) -> list[dict[str, Any]]:
        """Return some of the documents, at most `count`."""
        view, _ = self._view(tantivy.Query.all_query())
        return [view.document(hit) for hit in view.fetch(Fetch(0, count)).hits]

    def search(
        self,
        query: str,
        *,
        size: int = 10,
        from_: int = 0,
        sort: str | None = None,
        highlight: tuple[str, str] | None = None,
        where: str | None = None,
        items: RecordSchema | None = None,
        options: CollapseOptions | None = None,
        **changes: Unpack[CollapseChanges],
    ) -> dict[str, Any]:
        """Search the text fields for any of the words of `query`, best first by BM25, near-duplicates collapsed.

        query: words, begin* (any word that begins so), "a phrase", +required, -excluded, a AND b, (a OR b), field:word,
          price:[10 TO 20], price:>10, day:[2024-01-01 TO 2024-06-30], field:* (any value), * (every document). A field
          inside an object has a name such as author.name. Case and accents do not matter. A run of Chinese, Japanese,
          Thai or Korean characters matches by any two neighbours; in quotes, by all of them. The first 1,000 characters
          of each value of a field can be searched. A query with another syntax is read as words, with a note in
          response["ndd"]["notes"].
        size, from_: the page, as positions in the deduplicated stream.
        sort: a field to order by instead of the score, as "price" or "price:desc"; documents without it come last.
          First come texts alphabetically, by their first 100 characters without case, then numbers. Of several values
          the first counts; hits with the same value come in the order of their ids.
        highlight: the marks before and after each matched word, as ("<em>", "</em>"); each hit then has a passage of
          its text under "highlight".
        where: a second query. Only documents that it finds, too, are hits; it does not change their scores.
        items: a schema such as ndd_search.items.Items, which compares hits by their fields instead of by their texts.
        options, changes: CollapseOptions instead of those of the index, and single options by name, also a preset.
        Returns Elasticsearch's response shape: took (milliseconds), hits.total, hits.hits[]._id/_score/_source with
        inner_hits.near_duplicates, and the block `ndd`. A query without words finds nothing. Of a longer query, the
        first 1,024 different words count.
        Raises ValueError or TypeError for an argument that cannot be, a sort by a field that no document found has, or
        an unknown option; IndexUnusable if the folder was moved or removed.
        """
        began = perf_counter()
        check_page(size, from_)
        check_schema(items)
        for name, given in ("query", query), ("sort", sort or ""), ("where", where or ""):
            if not isinstance(given, str):
                raise TypeError(f"{name} must be a string, got {type(given).__name__}")
        if highlight and (not isinstance(highlight, tuple | list) or [type(one) for one in highlight] != [str, str]):
            raise TypeError(f'highlight must be two texts, as ("<em>", "</em>"), got {highlight!r}')
        options, _ = chosen(options or self.options, self.recipe, changes)
        if options.facets:
            raise ValueError("facets count aggregations of an engine; Index.aggregate counts documents of a folder")
        if options.members == "all":
            options = replace(options, window=options.max_window)
        notes: list[str] = []
        view, state = self._view(lambda searcher: self._query(query, searcher, notes, where))
        view.sort, view.items = None if sort is None else Sort.parse(sort), items
        stream, is_cached = self._streams.grow(
            self._key((query, sort, where, None if items is None else items.id), options, state, view.frequency_table),
            lambda stream: next_fetch(stream, from_, size, options) is None,
            lambda stream: fetch_until_full(stream, from_, size, view, options, view.fetch),
        )

        def plain(hit: StoredHit) -> dict[str, Any]:
            return {"_index": self._name, "_id": hit.id, "_score": hit.score, "_source": view.document(hit)}

        page = slice_page(stream, from_, size, view, _keeping(options, adapt_callables(plain, options.keep)))
        own = perf_counter() - began - view.seconds
        page = replace(page, info=replace(page.info, took=own, cache="hit" if is_cached else "miss"))
        hits = hits_of(page, plain)
        if highlight:
            view.mark(hits, highlight)
        return {
            "took": round((perf_counter() - began) * 1000),
            "timed_out": False,
            "hits": {
                "total": total_of(page, {"value": stream.total or 0, "relation": "eq"}),
                "max_score": max((hit.score for hit in page.hits), default=None),
                "hits": hits,
            },
            "ndd": block_of(page, plain) | ({"notes": notes} if notes else {}),
        }

    def aggregate(
        self, query: str, aggregations: Mapping[str, Mapping[str, Any]], *, where: str | None = None
    ) -> dict[str, Any]:
        """Return aggregations of all documents that a query finds, duplicates included, as Elasticsearch names them.

        query, where: as in `search`.
        aggregations: by name; terms, histogram, date_histogram (with fixed_interval), stats, ... of any field that is
          not a text field: {"sources": {"terms": {"field": "source", "size": 10}}}.
        Returns the result of each by its name, as in {"sources": {"buckets": [{"key": "AP", "doc_count": 3}, ...]}}.
        Raises ValueError for an aggregation that tantivy does not have.
        """
        wanted = {
            name: {kind: {**settings, "field": f"fields.{settings['field']}"} for kind, settings in aggregation.items()}
            for name, aggregation in aggregations.items()
        }
        view, _ = self._view(lambda searcher: self._query(query, searcher, [], where))
        try:
            return with_dates(view.searcher.aggregate(view.query, wanted), wanted)
        except ValueError as error:
            raise ValueError(f"the aggregations cannot be computed: {error}") from None

    def _view(self, query: tantivy.Query | Callable[[tantivy.Searcher], tantivy.Query]) -> tuple[View, State]:
        searcher, state = self._engine.now()
        parsed = query(searcher) if callable(query) else query
        schema = self._engine.index.schema
        return View(self.path, searcher, schema, parsed, self.meta.text, self.recipe, self.frequency_table), state

    def _key(
        self,
        query: tuple[str | None, ...],
        options: CollapseOptions,
        state: State,
        frequency_table: FrequencyTable | None,
    ) -> bytes:
        """The cache key of a stream: everything that it depends on, so not `keep`."""
        digest = frequency_table.digest if frequency_table else ""
        return cache_key(str(self.path), state, digest, query, repr(_keeping(options, ("score",))))

    @property
    def frequency_table(self) -> FrequencyTable | None:
        """The document frequencies of common values, counted when documents were added; None for a new index."""
        return self._common.table()

    def _count_common(self) -> None:
        """Count the frequency table in a sample, if the index has changed in size by a fifth since the last count."""
        if self.recipe.measure != "kmv":
            return
        view, _ = self._view(tantivy.Query.all_query())
        count, counted = view.searcher.num_docs, self._common.documents()
        if counted * 1.2 >= count >= counted * 0.8:
            return
        hits = view.searcher.search(view.query, max(count, 1)).hits
        chosen = np.random.default_rng(0).permutation(len(hits))[:SAMPLE]
        sketches = [sketch_of(view.stored(*hits[place]).sketch) for place in np.sort(chosen).tolist()]
        self._common.write(count_document_frequency(sketches, self.recipe), count)

    def _query(
        self, typed: str, searcher: tantivy.Searcher, notes: list[str], where: str | None = None
    ) -> tantivy.Query:
        engine = self._engine
        reader = QueryReader(engine.index.schema, engine.index, searcher, engine.analyzer, self.meta.text, notes)
        found = reader.read(typed)
        if where is None:
            return found
        kept = tantivy.Query.const_score_query(reader.read(where), 0.0)
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, found), (tantivy.Occur.Must, kept)])

    def _read(self, document: Mapping[str, Any], place: int) -> tuple[dict[str, Any], list[str]]:
        """Return what is stored of a document, but its sketch, and the text of each text field.

        Nothing of it is the document's own: the caller may reuse the object for the next one.
        """
        name = f"document {place}"
        id = id_of(document, name)
        which = f"{name} ({id})"
        source = source_of(document, which)  # first, because it rejects documents that the other functions cannot read
        texts, fields = texts_of(document, self.meta.text, which), filterable(document, self.meta.text)
        parts = [searchable(text) for text in texts]
        named = {searchable(name): [part] for name, part in zip(self.meta.text, parts, strict=True) if part}
        stored = {"id": [id], "source": [source], "fields": [fields], "order": [ordered(fields | named)]}
        return stored | {f"text{number}": [part] for number, part in enumerate(parts)}, texts


def _keeping(options: CollapseOptions, keep: tuple[Any, ...]) -> CollapseOptions:
    """Return options with another `keep`. Equal options are not made, and checked, again."""
    return options if options.keep == keep else replace(options, keep=keep)
