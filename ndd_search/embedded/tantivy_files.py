"""The files of tantivy in an index folder: opened, read in one state, and written by one writer at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from time import monotonic, sleep
from typing import Any
from weakref import finalize

from ndd_search.core.fork_safe import ForkSafeLock
from ndd_search.core.text.unicode_tables import UNSPACED_CLASS
from ndd_search.embedded.folder import (
    MAY_NOT_WRITE,
    WAIT,
    Meta,
    State,
    engine_errors,
    identity_of,
    is_busy,
    linked,
    state_of,
    unwritable,
)
from ndd_search.errors import IndexUnusable, importing

with importing("tantivy", "the embedded index", "tantivy", "embedded"):
    import tantivy

_HEAP = 64 * 2**20  # bytes that the writer buffers before it writes a segment
# A token is a word with its combining marks, or one character in scripts that are written without spaces and in Korean,
# whose words have particles at their ends. Such text is searched by pairs of characters (see query_parser).
SINGLES = f"{UNSPACED_CLASS}\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
_SINGLE, _JOINED = rf"[[\p{{L}}\p{{N}}]&&[{SINGLES}]]", rf"[[\p{{L}}\p{{N}}]--[{SINGLES}]]"
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
            self.index, self._identity = self._open(path), identity_of(path)

    def now(self) -> tuple[tantivy.Searcher, State]:
        """Return a searcher and the state that it searches; a commit in between cannot separate the two."""
        with engine_errors(self.path), self._reading:
            while True:
                state = state_of(self.path, self._identity)
                if self._opened is not None and self._opened[0] == state:
                    return self._opened[1], state
                try:
                    searcher = self._searcher(state)
                except ValueError:  # another process may have committed and removed a file
                    if state == state_of(self.path, self._identity):
                        raise
                    continue
                if state == state_of(self.path, self._identity):
                    self._opened = state, searcher
                    return searcher, state

    @contextmanager
    def writer(self) -> Iterator[tantivy.IndexWriter]:
        """Yield the writer of the folder; after an error, uncommitted changes are rolled back, and their files removed.

        Threads that write wait for each other, and for another process for WAIT seconds.
        """
        with self._writing:
            if self._remove_links is not None:
                raise IndexUnusable(self.path, *MAY_NOT_WRITE)
            with engine_errors(self.path):
                writer = self._clean_writer()
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
                    with suppress(ValueError, OSError):
                        self._clean_writer().wait_merging_threads()

    def _clean_writer(self) -> tantivy.IndexWriter:
        """Return a new writer, after it removed what a writer that failed or was killed left in the folder."""
        state_of(self.path, self._identity)
        until = monotonic() + WAIT
        while True:
            try:
                index = self._registered(
                    tantivy.Index(schema_of(self.meta), str(self.path))
                )  # knows others' files, too
                writer = index.writer(_HEAP, 1)
                writer.garbage_collect_files()
                return writer
            except ValueError as error:
                if not is_busy(str(error)) or monotonic() > until:
                    raise
            sleep(0.05)

    def _searcher(self, state: State) -> tantivy.Searcher:
        if self._remove_links is None:
            try:
                self.index.reload()
                return self.index.searcher()
            except ValueError as error:
                if not unwritable(str(error)):
                    raise
        if self._linked != state:
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
        raw = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).build()
        index.register_fast_field_tokenizer("text", raw)
        return index


def analyzer_of(language: str) -> tantivy.TextAnalyzer:
    """Return the analyzer of text fields. Raises ValueError for a language without a stemmer."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(_TOKEN)).filter(tantivy.Filter.lowercase())
    builder = builder.filter(tantivy.Filter.remove_long(200)).filter(tantivy.Filter.ascii_fold())
    if language == "none":
        return builder.build()
    try:
        builder = builder.filter(tantivy.Filter.stemmer(language))
        return builder.filter(tantivy.Filter.stemmer("greek")).build()  # folds Greek accents, and Greek alone
    except ValueError:
        raise ValueError(f'language must be one with a stemmer in tantivy, or "none", got {language!r}') from None


def schema_of(meta: Meta) -> tantivy.Schema:
    """Return the fields of the tantivy index."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    for number in range(len(meta.text)):
        builder.add_text_field(f"text{number}", tokenizer_name="text")
    builder.add_json_field("fields", fast=True, tokenizer_name="text", expand_dots_enabled=True)
    builder.add_json_field("order", fast=True, tokenizer_name="raw", index_option="basic", expand_dots_enabled=True)
    builder.add_bytes_field("source", stored=True)
    builder.add_bytes_field("sketch", stored=True)
    return builder.build()
