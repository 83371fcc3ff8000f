"""The files of tantivy in an index folder: opened, read in one state, and written by one writer at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any
from weakref import finalize

from ndd_search.core.fork_safe import ForkSafeLock
from ndd_search.core.text.unicode_tables import UNSPACED_CLASS
from ndd_search.embedded.folder import MAY_NOT_WRITE, Meta, State, engine_errors, linked, state_of, unwritable
from ndd_search.errors import IndexUnusable, importing

with importing("tantivy", "the embedded index", "tantivy", "embedded"):
    import tantivy

_HEAP = 64 * 2**20  # bytes that the writer buffers before it writes a segment
# A token is a word with its combining marks, or one character in scripts that are written without spaces.
_SINGLE, _JOINED = rf"[[\p{{L}}\p{{N}}]&&[{UNSPACED_CLASS}]]", rf"[[\p{{L}}\p{{N}}]--[{UNSPACED_CLASS}]]"
_TOKEN = rf"{_SINGLE}\p{{M}}*|{_JOINED}[{_JOINED}\p{{M}}]*"


class Engine:
    """The tantivy index of a folder. Several threads may use it. analyzer: of the text fields."""

    def __init__(self, path: Path, meta: Meta) -> None:
        self.path, self.meta, self.analyzer = path, meta, analyzer_of(meta.language)
        self._writing, self._reading = ForkSafeLock(), ForkSafeLock()
        self._remove_links: Callable[[], Any] | None = None  # set if the user may not write: it reads through links
        self._linked: State | None = None  # the state whose files the links point to
        self._opened: tuple[State, tantivy.Searcher] | None = None  # reused: it caches the documents that it has read
        with engine_errors(path):
            self.index = self._open(path)

    def now(self) -> tuple[tantivy.Searcher, State]:
        """Return a searcher and the state that it searches; a commit in between cannot separate the two."""
        with engine_errors(self.path), self._reading:
            while True:
                state = state_of(self.path)
                if self._opened is not None and self._opened[0] == state:
                    return self._opened[1], state
                try:
                    searcher = self._searcher(state)
                except ValueError:  # another process may have committed and removed a file
                    if state == state_of(self.path):
                        raise
                    continue
                if state == state_of(self.path):
                    self._opened = state, searcher
                    return searcher, state

    @contextmanager
    def writer(self) -> Iterator[tantivy.IndexWriter]:
        """Yield the writer of the folder; after an error, uncommitted changes are rolled back, and their files removed.

        Threads that write wait for each other.
        """
        with self._writing:
            if self._remove_links is not None:
                raise IndexUnusable(self.path, *MAY_NOT_WRITE)
            with engine_errors(self.path):
                writer = self.index.writer(_HEAP, 1)
            has_failed = False
            try:
                yield writer
            except BaseException:
                has_failed = True
                with suppress(ValueError):  # tantivy raises it if the writer itself has failed
                    writer.rollback()
                raise
            finally:
                with suppress(ValueError):
                    writer.wait_merging_threads()
                if has_failed:
                    with suppress(ValueError):
                        (another := self.index.writer(_HEAP, 1)).garbage_collect_files()
                        another.wait_merging_threads()

    def _searcher(self, state: State) -> tantivy.Searcher:
        if self._remove_links is not None and self._linked != state:
            self.index, self._linked = self._open_links(), state
        self.index.reload()
        return self.index.searcher()

    def _open(self, folder: Path) -> tantivy.Index:
        """Open tantivy on a folder; without write permission, on links to its files."""
        try:
            return self._registered(tantivy.Index(schema_of(self.meta), str(folder)))
        except ValueError as error:
            if not unwritable(str(error)):
                raise
            return self._open_links()

    def _open_links(self) -> tantivy.Index:
        """Open tantivy on links to the current files; searchers opened before stay readable."""
        if self._remove_links is not None:
            self._remove_links()
        links = linked(self.path)
        self._remove_links = finalize(self, rmtree, links, True)
        return self._registered(tantivy.Index(schema_of(self.meta), str(links)))

    def _registered(self, index: tantivy.Index) -> tantivy.Index:
        index.register_tokenizer("text", self.analyzer)
        index.register_fast_field_tokenizer("text", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).build())
        return index


def analyzer_of(language: str) -> tantivy.TextAnalyzer:
    """Return the analyzer of text fields. Raises ValueError for a language without a stemmer."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(_TOKEN)).filter(tantivy.Filter.lowercase())
    builder = builder.filter(tantivy.Filter.remove_long(200))
    if language == "none":
        return builder.build()
    try:
        return builder.filter(tantivy.Filter.stemmer(language)).build()
    except ValueError:
        raise ValueError(f'language must be one with a stemmer in tantivy, or "none", got {language!r}') from None


def schema_of(meta: Meta) -> tantivy.Schema:
    """Return the fields of the tantivy index."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    for number in range(len(meta.text)):
        builder.add_text_field(f"text{number}", tokenizer_name="text")
    builder.add_json_field("fields", fast=True, tokenizer_name="text", expand_dots_enabled=True)
    builder.add_bytes_field("source", stored=True)
    builder.add_bytes_field("sketch", stored=True)
    return builder.build()
