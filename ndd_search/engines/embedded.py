"""A search index in a folder, for a laptop, a test or a small site: tantivy's BM25 behind the flow of `page`.

The folder holds `ndd.json` (format, text fields, language, recipe) and tantivy's own files. Any number of processes may
read while one writes; what was committed survives a crash.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from ndd_search.cache import Cache, Flights, MemoryCache, PairCache, cache_key
from ndd_search.config import CollapseOptions, Recipe, collapse_options
from ndd_search.decision import CommonValues
from ndd_search.documents import text_of, value_of
from ndd_search.engines.folder import FORMAT, Meta, read_meta, told, write_meta
from ndd_search.engines.response import block_of, hits_of, total_of
from ndd_search.errors import IndexUnusable, InvalidDocument, MissingExtra, RecipeMismatch
from ndd_search.page import Fetch, Fetched, cut, fill, next_fetch, run
from ndd_search.sketch import Sketch, sketch_many
from ndd_search.stream import Stream

try:
    import tantivy
except ModuleNotFoundError:
    raise MissingExtra("the embedded index", "tantivy", "embedded") from None

COMMIT_EVERY = 10_000  # documents; what a crash can lose of a long add
_BATCH = 512  # documents sketched in one call
_SAMPLE = 2_000  # documents whose sketch values are counted
_HEAP = 64 * 2**20  # bytes the writer collects before it writes a segment
# Words with their marks; one token per character in scripts that are written without spaces.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_TOKEN = rf"[{_UNSPACED}]\p{{M}}*|[[\p{{L}}\p{{N}}\p{{M}}]--[{_UNSPACED}]]+"


class StoredHit(NamedTuple):
    """A hit as the index gives it. source: the document as JSON; sketch: little-endian int32."""

    id: str
    score: float
    source: bytes
    sketch: bytes


class Index:
    """An index in a folder. Open it with `Index.open`; a context manager, safe for reading from several threads."""

    def __init__(self, path: Path, meta: Meta, cache: Cache) -> None:
        self.path, self.meta, self.recipe = path, meta, Recipe.parse(meta.recipe)
        self._analyzer = _analyzer(meta.language)
        with told(path):
            self._index = tantivy.Index(_schema(meta), str(path))
        self._index.register_tokenizer("text", self._analyzer)
        self._cache, self._flights, self._pairs = cache, Flights(), PairCache()
        self._common: CommonValues | None = None
        self._common_written = 0

    @classmethod
    def open(
        cls,
        path: str | Path,
        text: str | Sequence[str] | None = None,
        *,
        language: str | None = None,
        recipe: Recipe | None = None,
        cache: Cache | None = None,
    ) -> Self:
        """Open the index in a folder, or make one there.

        text:     the fields to search and to sketch, needed to make an index; an existing one knows its own.
        language: whose stemmer searches use, as in "english" (the default) or "german"; "none" does not stem.
        recipe:   how documents are sketched; the default recipe for a new index.
        cache:    where streams are remembered; by default 64 MB of memory, ten seconds.
        Raises IndexUnusable for a folder that holds something else, a newer format, or other fields or language than
        these; RecipeMismatch for another recipe; MissingExtra without tantivy.
        """
        folder = Path(path)
        fields = None if text is None else (text,) if isinstance(text, str) else tuple(text)
        if (meta := read_meta(folder)) is None:
            if not fields:
                raise IndexUnusable(folder, "there is no index here", 'name its text fields to make one: text=["body"]')
            meta = Meta(FORMAT, fields, language or "english", (recipe or Recipe()).id)
            _analyzer(meta.language)
            write_meta(folder, meta)
        for name, wanted, stored in (("text", fields, meta.text), ("language", language, meta.language)):
            if wanted is not None and wanted != stored:
                raise IndexUnusable(folder, f"it was made with {name} {stored!r}, not {wanted!r}", "use another folder")
        if recipe is not None and recipe.id != meta.recipe:
            raise RecipeMismatch(f"index {str(folder)!r}", meta.recipe, recipe.id)
        return cls(folder, meta, MemoryCache() if cache is None else cache)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is left to be written; for symmetry with open."""

    def __len__(self) -> int:
        self._index.reload()
        return int(self._index.searcher().num_docs)

    def add(self, documents: Iterable[Mapping[str, Any]]) -> int:
        """Add documents; one whose id is there already replaces it. Returns how many were added.

        documents: mappings with an id under "id" or "_id" (a text or a whole number) that can be written as JSON; any
        iterable, read once, in batches. Committed every 10,000 documents and at the end: an error or a crash loses
        what came after the last commit, never what came before. Raises InvalidDocument naming the document.
        """
        added, waiting = 0, iter(documents)
        with self._writer() as writer:
            while batch := list(islice(waiting, _BATCH)):
                for document in self._prepared(batch, added):
                    writer.delete_documents_by_term("id", document["id"][0])
                    writer.add_document(tantivy.Document.from_dict(document, self._index.schema))
                added += len(batch)
                if added % COMMIT_EVERY < _BATCH:
                    writer.commit()
            writer.commit()
        self._count_common()
        return added

    def delete(self, ids: str | int | Iterable[str | int]) -> None:
        """Delete documents by their ids; an id that is not there is no error."""
        with self._writer() as writer:
            for one in [ids] if isinstance(ids, str | int) else ids:
                writer.delete_documents_by_term("id", str(one))
            writer.commit()

    def get(self, id: str | int) -> dict[str, Any] | None:
        """The document with an id, None when there is none."""
        self._index.reload()
        searcher = self._index.searcher()
        found = searcher.search(tantivy.Query.term_query(self._index.schema, "id", str(id)), 1).hits
        return _document(_stored(searcher, *found[0]).source) if found else None

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
        options, changes: CollapseOptions, or single options of it by name.
        Returns Elasticsearch's response shape: took (milliseconds), hits.total, hits.hits[]._id/_score/_source with
        inner_hits.near_duplicates, and the block `ndd`. A query without words finds nothing.
        """
        began = perf_counter()
        if size < 0 or from_ < 0:
            raise ValueError(f"size and from_ must be at least 0, got {size} and {from_}")
        if not isinstance(query, str):
            raise TypeError(f"query must be a text, got {type(query).__name__}")
        options = collapse_options(options, **changes)
        self._index.reload()
        searcher, wanted = self._index.searcher(), self._query(query)
        reader, engine = _Reader(self.recipe, self.common), _Engine(searcher, wanted)
        stream, known = self._grow(
            self._key(query, options),
            lambda stream: next_fetch(stream, from_, size, options) is None,
            lambda stream: run(fill(stream, from_, size, reader, options, self._pairs), engine.fetch),
        )
        page = cut(stream, from_, size, reader, options)
        own = perf_counter() - began - engine.seconds
        page = replace(page, info=replace(page.info, took=own, cache="hit" if known else "miss"))
        return {
            "took": round((perf_counter() - began) * 1000),
            "timed_out": False,
            "hits": {
                "total": total_of(page, {"value": stream.total or 0, "relation": "eq"}),
                "max_score": max((hit.score for hit in page.hits), default=None),
                "hits": hits_of(page, self._plain),
            },
            "ndd": block_of(page, self._plain),
        }

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
            self._cache.put(key, pickle.dumps(stream, pickle.HIGHEST_PROTOCOL))
        finally:
            self._flights.land(key)
        return stream, False

    def _known(self, key: bytes) -> Stream:
        value = self._cache.get(key)
        stream: Stream = Stream() if value is None else pickle.loads(value)
        return stream

    def _key(self, query: str, options: CollapseOptions) -> bytes:
        """Of the stream of a query: everything but `keep`, which changes no stream, and the state of the index."""
        commit = (self.path / "meta.json").stat().st_mtime_ns
        common = self.common.digest if self.common else ""
        return cache_key(str(self.path), commit, common, query, repr(replace(options, keep=("score",))))

    @property
    def common(self) -> CommonValues | None:
        """The values that many documents of the index hold, counted when it was last added to; None for a new index."""
        path = self.path / "common.json"
        try:
            written = path.stat().st_mtime_ns
            if written != self._common_written:
                self._common = CommonValues.from_dict(json.loads(path.read_text("utf-8")))
                self._common_written = written
        except (OSError, ValueError):  # not there, or being replaced: decide without it
            return None
        return self._common

    def _count_common(self) -> None:
        """Count them in a sample of the documents, if the index has grown by a fifth since that was done."""
        self._index.reload()
        searcher = self._index.searcher()
        known = self._documents_counted()
        if known * 1.2 >= searcher.num_docs >= known * 0.8:
            return
        found = searcher.search(tantivy.Query.all_query(), max(searcher.num_docs, 1)).hits
        chosen = np.random.default_rng(0).permutation(len(found))[:_SAMPLE]
        hits = [_stored(searcher, *found[place]) for place in np.sort(chosen).tolist()]
        sketches = [one for one in _Reader(self.recipe, None).sketches(hits, ()) if not isinstance(one, str)]
        table = {**CommonValues.count(sketches, self.recipe).to_dict(), "of": searcher.num_docs}
        with told(self.path):
            fresh = self.path / "common.json.new"
            fresh.write_text(json.dumps(table), "utf-8")
            fresh.replace(self.path / "common.json")

    def _documents_counted(self) -> int:
        try:
            return int(json.loads((self.path / "common.json").read_text("utf-8"))["of"])
        except (OSError, ValueError, KeyError):
            return 0

    def _query(self, text: str) -> tantivy.Query:
        """Any of the words, in whichever field it scores best."""
        words = dict.fromkeys(self._analyzer.analyze(_clean(text)))
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

    def _plain(self, hit: StoredHit) -> dict[str, Any]:
        return {"_index": self.path.name, "_id": hit.id, "_score": hit.score, "_source": _document(hit.source)}

    @contextmanager
    def _writer(self) -> Iterator[tantivy.IndexWriter]:
        """The writer of this folder; what it did not commit is gone when an error comes."""
        with told(self.path):
            writer = self._index.writer(_HEAP, 1)
        try:
            with told(self.path):
                yield writer
        except BaseException:
            writer.rollback()
            raise
        finally:
            writer.wait_merging_threads()

    def _prepared(self, batch: Sequence[Mapping[str, Any]], start: int) -> Iterator[dict[str, Any]]:
        """The documents of a batch as tantivy stores them."""
        ids = [_id_of(document, f"document {place}") for place, document in enumerate(batch, start)]
        texts = [[text_of(document, [field]) or "" for field in self.meta.text] for document in batch]
        sketches = sketch_many(("\n".join(filter(None, parts)) for parts in texts), self.recipe)
        for place, (document, id, parts, sketch) in enumerate(zip(batch, ids, texts, sketches, strict=True), start):
            fields = {f"text{number}": [_clean(part)] for number, part in enumerate(parts)}
            source = _json(document, f"document {place} ({id})")
            yield {"id": [id], "source": [source], "sketch": [sketch.astype("<i4").tobytes()], **fields}


@dataclass(frozen=True)
class _Reader:
    recipe: Recipe
    common: CommonValues | None

    def sketches(self, hits: Sequence[StoredHit], ranks: Sequence[int]) -> list[Sketch | str]:
        return [
            np.frombuffer(hit.sketch, "<i4").astype(np.int32, copy=False) if hit.sketch else "empty" for hit in hits
        ]

    def identity(self, hit: StoredHit, rank: int) -> str:
        return hit.id

    def value(self, hit: StoredHit, field: str) -> Any:
        return value_of(_document(hit.source), field)


@dataclass
class _Engine:
    """One query on one state of the index; seconds: spent in tantivy so far."""

    searcher: tantivy.Searcher
    query: tantivy.Query
    seconds: float = 0.0

    def fetch(self, wish: Fetch) -> Fetched:
        began = perf_counter()
        result = self.searcher.search(self.query, max(wish.size, 1), offset=wish.start)
        hits = [_stored(self.searcher, *found) for found in result.hits[: wish.size]]
        total: int = result.count  # type: ignore[attr-defined]  # missing from the package's stub
        self.seconds += perf_counter() - began
        return Fetched(hits, total)


def _stored(searcher: tantivy.Searcher, score: float, address: tantivy.DocAddress) -> StoredHit:
    fields = searcher.doc(address).to_dict()
    return StoredHit(fields["id"][0], score, bytes(fields["source"][0]), bytes(fields["sketch"][0]))


def _id_of(document: Any, which: str) -> str:
    if not isinstance(document, Mapping):
        raise InvalidDocument(which, f"it is {type(document).__name__}, not a mapping", "give dicts")
    id = document.get("_id", document.get("id"))
    if isinstance(id, bool) or not isinstance(id, str | int) or id == "":
        problem = "it has no id" if id is None or id == "" else f"its id is {id!r}"
        raise InvalidDocument(which, problem, 'give it a text or a whole number under "id"')
    return _clean(str(id))


def _document(source: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(source.decode("utf-8", "surrogatepass"))
    return document


def _json(document: Mapping[str, Any], which: str) -> bytes:
    try:
        return json.dumps(dict(document), ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise InvalidDocument(which, f"it cannot be written as JSON: {error}", "convert it first") from None


def _clean(text: str) -> str:
    """The text without lone surrogates, which the engine does not take."""
    return text.encode("utf-8", "replace").decode()


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
