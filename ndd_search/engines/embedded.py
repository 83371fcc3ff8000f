"""A search index in a folder, for a laptop, a test or a small site: tantivy's BM25 behind the flow of `page`.

The folder holds `ndd.json` (format, text fields, language, recipe) and tantivy's own files. Any number of processes may
read while one writes; what was committed survives a crash.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Self

import numpy as np

from ndd_search.cache import Cache, FailureGuard, Flights, MemoryCache, PairCache, cache_key
from ndd_search.census import count_common_values
from ndd_search.common_values import SAMPLE, CommonValues
from ndd_search.config import CollapseOptions, Recipe, check_page, collapse_options
from ndd_search.documents import text_of, value_of
from ndd_search.engines.folder import FORMAT, CommonFile, Meta, State, check_meta, read_meta, state_of, told, write_meta
from ndd_search.engines.response import block_of, hits_of, total_of
from ndd_search.engines.stored import StoredHit, document_of, id_of, possible_id, searchable, source_of
from ndd_search.entries import UNREADABLE, sealed, stream_of, stream_parts, unsealed
from ndd_search.errors import IndexUnusable, MissingExtra, RecipeMismatch
from ndd_search.keep import wishes_about
from ndd_search.numbers import numbers_value
from ndd_search.page import Fetch, Fetched, cut, fill, next_fetch, run
from ndd_search.settings_file import read_settings
from ndd_search.sketches import Sketch, sketch_many
from ndd_search.stream import Stream

try:
    import tantivy
except ModuleNotFoundError:
    raise MissingExtra("the embedded index", "tantivy", "embedded") from None

COMMIT_EVERY = 10_000  # documents; what a crash can lose of a long add
_BATCH = 512  # documents sketched in one call
_MOST_WORDS = 1024  # different words of a query that count, as in Lucene
_HEAP = 64 * 2**20  # bytes the writer collects before it writes a segment
# Words with their marks; one token per character in scripts that are written without spaces.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_TOKEN = rf"[{_UNSPACED}]\p{{M}}*|[[\p{{L}}\p{{N}}\p{{M}}]--[{_UNSPACED}]]+"


class Index:
    """An index in a folder. Open it with `Index.open`; a context manager, safe for reading from several threads.

    Pickled, as for another process, it is opened there anew: the same folder, options and cache (one in memory empty).
    """

    def __init__(self, path: Path, meta: Meta, cache: Cache, options: CollapseOptions | None = None) -> None:
        check_meta(path, meta)
        self.path, self.meta, self.recipe = path.absolute(), meta, Recipe.parse(meta.recipe)
        self.options = options or CollapseOptions()
        self._analyzer = _analyzer(meta.language)
        with told(path):
            self._index = tantivy.Index(_schema(meta), str(path))
        self._index.register_tokenizer("text", self._analyzer)
        self._cache, self._guarded, self._flights, self._pairs = cache, FailureGuard(), Flights(), PairCache()
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
        settings: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Open the index in a folder, or make one there.

        text:     the fields to search and to sketch, needed to make an index; an existing one knows its own.
        language: whose stemmer searches use, as in "english" (the default) or "german"; "none" does not stem.
        recipe:   how documents are sketched; the default recipe for a new index.
        cache:    where streams are remembered; by default 64 MB of memory, ten seconds.
        settings: a file of CollapseOptions for every search, as `ndd-search tune` writes it (see settings_file).
        Raises IndexUnusable for a folder that holds something else, a newer format, or other fields or language than
        these; RecipeMismatch for another recipe; InvalidSettings; MissingExtra without tantivy.
        """
        folder, language = Path(path), language and language.lower()
        fields = None if text is None else (text,) if isinstance(text, str) else tuple(text)
        if fields and (len(set(fields)) < len(fields) or not all(name and isinstance(name, str) for name in fields)):
            raise ValueError(f"text must name fields, each of them once, got {text!r}")
        if (meta := read_meta(folder)) is None:
            if not fields:
                raise IndexUnusable(folder, "there is no index here", 'name its text fields to make one: text=["body"]')
            meta = Meta(FORMAT, fields, language or "english", Recipe.of(recipe).id)
            _analyzer(meta.language)
            write_meta(folder, meta)
        for name, wanted, stored in (("text", fields, meta.text), ("language", language, meta.language)):
            if wanted is not None and wanted != stored:
                raise IndexUnusable(folder, f"it was made with {name} {stored!r}, not {wanted!r}", "use another folder")
        if recipe is not None and (given := Recipe.of(recipe).id) != meta.recipe:
            raise RecipeMismatch(f"index {str(folder)!r}", meta.recipe, given)
        options = None if settings is None else read_settings(settings, Recipe.parse(meta.recipe)).options
        return cls(folder, meta, MemoryCache() if cache is None else cache, options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.meta, self._cache, self.options)

    def close(self) -> None:
        """Nothing is left to be written; for symmetry with open."""

    def __len__(self) -> int:
        return int(self._now()[0].num_docs)

    def add(self, documents: Iterable[Mapping[str, Any]]) -> int:
        """Add documents; one whose id is there already replaces it. Returns how many were added.

        documents: mappings with an id under "id" or "_id" (a text or a whole number) that can be written as JSON; any
        iterable, read once, in batches. Committed every 10,000 documents and at the end: an error or a crash loses
        what came after the last commit, never what came before. Raises InvalidDocument naming the document.
        """
        if isinstance(documents, str | bytes | Mapping):
            raise TypeError(f"documents must be a list of mappings, got one {type(documents).__name__}")
        added, waiting = 0, iter(documents)
        with self._writer() as writer:
            while batch := list(islice(waiting, _BATCH)):
                prepared = self._prepared(batch, added)
                added += len(batch)
                with told(self.path):
                    for document in prepared:
                        writer.delete_documents_by_term("id", document["id"][0])
                        writer.add_document(tantivy.Document.from_dict(document, self._index.schema))
                    if added % COMMIT_EVERY < _BATCH:
                        writer.commit()
            with told(self.path):
                writer.commit()
                self._count_common()
        return added

    def delete(self, ids: str | int | Iterable[str | int]) -> None:
        """Delete documents by their ids; an id that is not there is no error."""
        with self._writer() as writer:
            for one in [ids] if isinstance(ids, str | int) else ids:
                if possible_id(one):
                    writer.delete_documents_by_term("id", str(one))
            with told(self.path):
                writer.commit()

    def get(self, id: str | int) -> dict[str, Any] | None:
        """The document with an id, None when there is none."""
        if not possible_id(id):
            return None
        view = self._view(tantivy.Query.term_query(self._index.schema, "id", str(id)))[0]
        found = view.fetch(Fetch(0, 1)).hits
        return view.document(found[0]) if found else None

    def search(
        self,
        query: str,
        *,
        size: int = 10,
        from_: int = 0,
        options: CollapseOptions | None = None,
        **changes: Any,
    ) -> dict[str, Any]:
        """Search the text fields for any of the words of `query`, best first by BM25, near-duplicates collapsed.

        size, from_: the page, as positions in the deduplicated stream.
        options, changes: CollapseOptions instead of those of the index, or single options of it by name.
        Returns Elasticsearch's response shape: took (milliseconds), hits.total, hits.hits[]._id/_score/_source with
        inner_hits.near_duplicates, and the block `ndd`. A query without words finds nothing; of one with thousands of
        different words the first 1,024 count.
        """
        began = perf_counter()
        check_page(size, from_)
        if not isinstance(query, str):
            raise TypeError(f"query must be a text, got {type(query).__name__}")
        options = collapse_options(options or self.options, **changes)
        view, state = self._view(self._query(query))
        stream, known = self._grow(
            self._key(query, options, state, view.common),
            lambda stream: next_fetch(stream, from_, size, options) is None,
            lambda stream: run(fill(stream, from_, size, view, options, self._pairs), view.fetch),
        )

        def plain(hit: StoredHit) -> dict[str, Any]:
            return {"_index": self._name, "_id": hit.id, "_score": hit.score, "_source": view.document(hit)}

        page = cut(stream, from_, size, view, replace(options, keep=wishes_about(plain, options.keep)))
        own = perf_counter() - began - view.seconds
        page = replace(page, info=replace(page.info, took=own, cache="hit" if known else "miss"))
        return {
            "took": round((perf_counter() - began) * 1000),
            "timed_out": False,
            "hits": {
                "total": total_of(page, {"value": stream.total or 0, "relation": "eq"}),
                "max_score": max((hit.score for hit in page.hits), default=None),
                "hits": hits_of(page, plain),
            },
            "ndd": block_of(page, plain),
        }

    def _now(self) -> tuple[tantivy.Searcher, State]:
        """The index as it is, and what tells this state from others: both before or both after a commit."""
        with told(self.path):
            while True:
                state = state_of(self.path)
                self._index.reload()
                searcher = self._index.searcher()
                if state == state_of(self.path):
                    return searcher, state

    def _view(self, query: tantivy.Query) -> tuple[_View, State]:
        searcher, state = self._now()
        return _View(self.path, searcher, query, self.meta.text, self.recipe, self.common), state

    def _grow(
        self, key: bytes, enough: Callable[[Stream], bool], grow: Callable[[Stream], Stream]
    ) -> tuple[Stream, bool]:
        """The stream of a key, long enough, and whether it was remembered; one caller at a time makes it longer."""
        stream = self._known(key)
        if enough(stream):
            return stream, True
        if (other := self._flights.board(key)) is not None:
            other.result()
            stream = self._known(key)
            return (stream, True) if enough(stream) else (grow(stream), False)
        try:
            stream = grow(stream)
            self._remember(key, stream)
        finally:
            self._flights.land(key)
        return stream, False

    def _known(self, key: bytes) -> Stream:
        with self._guarded():
            entry = self._cache.get(key)
            found = None if entry is None else unsealed(key, entry)
            if found is not None:
                with suppress(*UNREADABLE):  # somebody else's, under a key and with a checksum of ours
                    return _stream_of(*found)
        return Stream()

    def _remember(self, key: bytes, stream: Stream) -> None:
        """Keep a stream; the sketch of a hit is written once."""
        hits = tuple(
            [None if name == "sketch" else value for name, value in hit._asdict().items()] for hit in stream.hits
        )
        with self._guarded():
            if (entry := sealed(key, *stream_parts(replace(stream, hits=hits)))) is not None:
                self._cache.put(key, entry)

    def _key(self, query: str, options: CollapseOptions, state: State, common: CommonValues | None) -> bytes:
        """Of the stream of a query: everything but `keep`, which changes no stream."""
        digest = common.digest if common else ""
        return cache_key(str(self.path), state, digest, query, repr(replace(options, keep=("score",))))

    @property
    def common(self) -> CommonValues | None:
        """The values that many documents of the index hold, counted when it was last added to; None for a new index."""
        return self._common.table()

    def _count_common(self) -> None:
        """Count them in a sample of the documents, if the index has grown by a fifth since that was done."""
        if self.recipe.measure != "kmv":
            return
        view, _ = self._view(tantivy.Query.all_query())
        count, known = view.searcher.num_docs, self._common.documents()
        if known * 1.2 >= count >= known * 0.8:
            return
        found = view.searcher.search(view.query, max(count, 1)).hits
        chosen = np.random.default_rng(0).permutation(len(found))[:SAMPLE]
        sketches = [_sketch(view.stored(*found[place]).sketch) for place in np.sort(chosen).tolist()]
        self._common.write(count_common_values(sketches, self.recipe), count)

    def _query(self, text: str) -> tantivy.Query:
        """Any of the words, in whichever field it scores best."""
        words = islice(dict.fromkeys(self._analyzer.analyze(searchable(text))), _MOST_WORDS)
        fields = range(len(self.meta.text))
        return tantivy.Query.boolean_query(
            [
                (
                    tantivy.Occur.Should,
                    tantivy.Query.disjunction_max_query(
                        [tantivy.Query.term_query(self._index.schema, f"text{i}", word, "freq") for i in fields]
                    ),
                )
                for word in words
            ]
        )

    @contextmanager
    def _writer(self) -> Iterator[tantivy.IndexWriter]:
        """The writer of this folder; what it did not commit is gone when an error comes."""
        with told(self.path):
            writer = self._index.writer(_HEAP, 1)
        try:
            yield writer
        except BaseException:
            with suppress(ValueError):  # a writer that failed has nothing to roll back
                writer.rollback()
            raise
        finally:
            with suppress(ValueError):
                writer.wait_merging_threads()

    def _prepared(self, batch: Sequence[Mapping[str, Any]], start: int) -> list[dict[str, Any]]:
        """The documents of a batch as tantivy stores them. start: how many came before, to name them in errors."""
        names = [f"document {place}" for place in range(start, start + len(batch))]
        ids = [id_of(document, name) for document, name in zip(batch, names, strict=True)]
        sources = [source_of(document, f"{name} ({id})") for document, name, id in zip(batch, names, ids, strict=True)]
        texts = [[text_of(document, [field]) or "" for field in self.meta.text] for document in batch]
        sketches = sketch_many(("\n".join(filter(None, parts)) for parts in texts), self.recipe)
        return [
            {
                "id": [id],
                "source": [source],
                "sketch": [sketch.astype("<i4").tobytes()],
                **{f"text{number}": [searchable(part)] for number, part in enumerate(parts)},
            }
            for id, source, sketch, parts in zip(ids, sources, sketches, texts, strict=True)
        ]


@dataclass
class _View:
    """A query on one state of the index: fetches hits, and reads them (see stream.Reader).

    seconds: spent in tantivy so far.
    """

    folder: Path
    searcher: tantivy.Searcher
    query: tantivy.Query
    text: tuple[str, ...]
    recipe: Recipe
    common: CommonValues | None
    seconds: float = 0.0
    _documents: dict[str, dict[str, Any]] = field(default_factory=dict)

    def fetch(self, wish: Fetch) -> Fetched:
        began = perf_counter()
        with told(self.folder):
            result = self.searcher.search(self.query, max(wish.size, 1), offset=wish.start)
            hits = [self.stored(*found) for found in result.hits[: wish.size]]
        total: int = result.count  # type: ignore[attr-defined]  # missing from the package's stub
        self.seconds += perf_counter() - began
        return Fetched(hits, total)

    def stored(self, score: float, address: tantivy.DocAddress) -> StoredHit:
        fields = self.searcher.doc(address)
        id, sketch = _first(fields, "id"), _first(fields, "sketch")
        return StoredHit(id, score, sketch, address.segment_ord, address.doc)

    def document(self, hit: StoredHit) -> dict[str, Any]:
        if hit.id not in self._documents:
            began = perf_counter()
            with told(self.folder):
                fields = self.searcher.doc(tantivy.DocAddress(hit.segment, hit.number))
                self._documents[hit.id] = document_of(_first(fields, "source"))
            self.seconds += perf_counter() - began
        return self._documents[hit.id]

    def sketches(self, hits: Sequence[StoredHit], ranks: Sequence[int]) -> list[Sketch | str]:
        return [_sketch(hit.sketch) if hit.sketch else "empty" for hit in hits]

    def identity(self, hit: StoredHit, rank: int) -> str:
        return hit.id

    def value(self, hit: StoredHit, field: str) -> Any:
        return value_of(self.document(hit), field)

    def numbers(self, hit: StoredHit) -> int | None:
        text = text_of(self.document(hit), self.text)  # it is there: nothing has to be stored for it
        return numbers_value(text or "", self.recipe)


def _first(fields: tantivy.Document, name: str) -> Any:
    return fields.get_first(name)  # all fields have one value


def _stream_of(plain: dict[str, Any], arrays: memoryview) -> Stream:
    """The stream that Index._remember wrote. Raises one of UNREADABLE for what cannot be one."""
    stream = stream_of(plain, arrays)
    hits = [StoredHit(*hit) for hit in stream.hits]
    sketches = [one.astype("<i4").tobytes() for one in stream.sketches]
    return replace(stream, hits=tuple(hit._replace(sketch=one) for hit, one in zip(hits, sketches, strict=True)))


def _sketch(stored: bytes) -> Sketch:
    return np.frombuffer(stored, "<i4").astype(np.int32, copy=False)


def _analyzer(language: str) -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(_TOKEN)).filter(tantivy.Filter.lowercase())
    builder = builder.filter(tantivy.Filter.remove_long(200))
    if language == "none":
        return builder.build()
    try:
        return builder.filter(tantivy.Filter.stemmer(language)).build()
    except ValueError:
        raise ValueError(f'language must be one that tantivy can stem, or "none", got {language!r}') from None


def _schema(meta: Meta) -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    for number in range(len(meta.text)):
        builder.add_text_field(f"text{number}", tokenizer_name="text", index_option="freq")
    builder.add_bytes_field("source", stored=True)
    builder.add_bytes_field("sketch", stored=True)
    return builder.build()
