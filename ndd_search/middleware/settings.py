"""Settings of a wrapped client, and what it learns about the indexes that it searches."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Any

from ndd_search.checks import check_known, check_seconds
from ndd_search.collapse_options import CollapseChanges, CollapseOptions, collapse_options
from ndd_search.index_rules import IndexRule, IndexRules
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.middleware.learned import Definitions, Learned, Said
from ndd_search.middleware.observer import Observer
from ndd_search.middleware.page_memory import Memory
from ndd_search.middleware.stored_table import TABLES
from ndd_search.paging.cache import Cache, MemoryCache
from ndd_search.paging.records import RecordSchema, check_fits_records, check_schema
from ndd_search.recipe import Recipe
from ndd_search.rest.point_in_time import Family
from ndd_search.settings_file import StoredSettings, read_settings
from ndd_search.sketching.field import SketchField, StoredSketches
from ndd_search.writing.writes import SketchedWrites

log = logging.getLogger("ndd_search")

_DIFFERENT = (
    'its indexes have different settings; search them one by one, or give the search options of its own in "ndd"'
)


@dataclass(kw_only=True)
class Settings:
    """The settings of a wrapped client, with what it has learned about its indexes.

    options:     how pages are collapsed, unless a request or the surrounding `ndd_search.options` changes it.
    recipe:      of the sketches that are compared. sketch_field: where they are in a document.
    cache:       stores finished pages and streams, None for no cache.
    time_budget: seconds after which a search fetches no more hits, None for no limit.
    bypass_seconds: seconds during which searches of a caller who found no sketch in an index are left alone, and until
                 the index is checked again for sketches.
    frequency_table: for min_similarity="auto": a table; True to count one in a sample of each index, once an hour
                 and per group of callers who see the same documents, and in the hits until then; False for no table.
    tables:      name of the companion index with the tables that all clients share (see `stored_table`), "" for none.
    write_tables: whether this client stores the tables that it counts there, and counts old ones again.
    observers:   each is given the facts of every search that may be collapsed (see `observer`).
    writes:      adds sketches to documents that are written through the client.
    clock:       a monotonic clock, in seconds. now: seconds since 1970.
    cursor_key:  signs the cursors of searches, None for a checksum. cursor_keep_alive: how long the engine keeps the
                 point in time of a cursor after each page, as in "5m".
    indexes:     other settings for the indexes of a pattern.
    items:       the schema by which hits are compared, None to compare their sketches.
    """

    options: CollapseOptions = field(default_factory=CollapseOptions)
    recipe: Recipe = field(default_factory=Recipe)
    sketch_field: SketchField = field(default_factory=SketchField)
    cache: Cache | None = field(default_factory=MemoryCache)
    time_budget: float | None = None
    bypass_seconds: float = 60.0
    frequency_table: FrequencyTable | bool = True
    tables: str = TABLES
    write_tables: bool = False
    observers: Sequence[Observer] = ()
    writes: SketchedWrites = field(default_factory=SketchedWrites)
    clock: Callable[[], float] = monotonic
    now: Callable[[], float] = time
    cursor_key: bytes | None = field(default=None, repr=False)
    cursor_keep_alive: str = "5m"
    indexes: IndexRules = field(default_factory=lambda: IndexRules({}))
    items: RecordSchema | None = None

    def __post_init__(self) -> None:
        self._check()
        check_schema(self.items)
        if self.items is not None:
            check_fits_records(self.options)
        self.stored_sketches = StoredSketches(self.sketch_field, self.recipe)
        self.known = Learned()
        self._said = Said()
        self.memory = Memory(self.cache)
        self.pipelines = Definitions()
        self.family: Family = "elasticsearch"

    def _check(self) -> None:
        check_seconds("bypass_seconds", self.bypass_seconds)
        if self.time_budget is not None:
            check_seconds("time_budget", self.time_budget)
            if self.time_budget == 0:
                raise ValueError("time_budget must be above 0 seconds, or None for no limit, got 0")
        table, cache = self.frequency_table, self.cache
        if not isinstance(table, bool | FrequencyTable):
            raise TypeError(f"frequency_table must be true, false or a FrequencyTable, got {table!r}")
        if not isinstance(self.tables, str) or not isinstance(self.write_tables, bool):
            given = f"{self.tables!r} and {self.write_tables!r}"
            raise TypeError(f"tables must be the name of an index and write_tables true or false, got {given}")
        if isinstance(cache, str | bytes | int | float):
            raise TypeError(f'cache must be true, false or a cache, as RedisCache("redis://..."), got {cache!r}')
        if wrong := [one for one in self.observers if not hasattr(one, "observe")]:
            raise TypeError(f"observers must have a method observe, got {wrong[0]!r}")

    def serve(self, transport: Any, family: Family) -> None:
        """Use the identity of the client that has this transport. family: of the engine that it talks to."""
        self.memory.serve(transport)
        self.family = family

    def of_target(self, path: str, asked: bool) -> Settings | None:
        """Return the settings for the indexes of a search, which share what is learned; None if it is left alone.

        It is if its indexes are switched off, or have different settings. A search with options of its own (asked) is
        not: it uses the settings of its indexes if they agree, else those of all other indexes. path: of the request.
        """
        if not self.indexes.rules:
            return self
        rules = self.indexes.of_target(path.partition("/_search")[0])
        if len(rules) > 1:
            if asked:
                return self
            self.degrade(path, _DIFFERENT)
            return None
        rule = rules[0] if rules else None
        if rule is None:
            return self
        return self._with(rule) if rule.enabled or asked else None

    def _with(self, rule: IndexRule) -> Settings:
        """Return these settings with those of a rule. Both share the cache and what is learned."""
        other = copy(self)
        other.options = rule.options
        other.recipe = rule.recipe or self.recipe
        other.sketch_field = SketchField(rule.field) if rule.field else self.sketch_field
        other.stored_sketches = StoredSketches(other.sketch_field, other.recipe)
        if other.recipe != self.recipe and isinstance(self.frequency_table, FrequencyTable):
            other.frequency_table = True  # the table is of another recipe
        return other

    @property
    def key(self) -> tuple[str, ...]:
        """The parts of a cache key that depend on these settings, without the options."""
        if self.items is not None:
            return self.memory.caller, self.items.id, self.sketch_field.name
        table = str(self.frequency_table) if isinstance(self.frequency_table, bool) else self.frequency_table.digest
        return self.memory.caller, self.recipe.id, self.sketch_field.name, table

    @property
    def counts_document_frequency(self) -> bool:
        """Whether a request of our own counts document frequencies; only the measure "kmv" uses them."""
        return self.frequency_table is True and self.recipe.measure == "kmv"

    def degrade(self, path: str, reason: str) -> str:
        """Log a reason once for each target. Returns it."""
        if self._said.first_time(path, reason.partition(":")[0]):  # after the colon an engine may quote the query
            log.warning("%s: near-duplicates may be shown: %s", path, reason)
        return reason


class WrapSettings(CollapseChanges, total=False):
    """The keyword arguments of `ndd_search.wrap`, for type checkers."""

    recipe: Recipe | str | None
    field: str
    cache: Cache | bool
    time_budget: float | None
    bypass_seconds: float
    frequency_table: FrequencyTable | bool
    tables: str
    write_tables: bool
    observers: Sequence[Observer]
    sketch: Mapping[str, Any] | None
    indexes: Mapping[str, Mapping[str, Any]] | None
    cursor_key: str | bytes | None
    cursor_keep_alive: str
    items: RecordSchema | None
    settings: str | os.PathLike[str] | None
    options: CollapseOptions | None


def settings_of(  # noqa: PLR0913 - all settings of a client in one call
    *,
    recipe: Recipe | str | None = None,
    field: str = "ndd",
    cache: Cache | bool = True,
    time_budget: float | None = None,
    bypass_seconds: float = 60.0,
    frequency_table: FrequencyTable | bool = True,
    tables: str = TABLES,
    write_tables: bool = False,
    observers: Sequence[Observer] = (),
    settings: str | os.PathLike[str] | None = None,
    sketch: Mapping[str, Any] | None = None,
    indexes: Mapping[str, Mapping[str, Any]] | None = None,
    options: CollapseOptions | None = None,
    cursor_key: str | bytes | None = None,
    cursor_keep_alive: str = "5m",
    items: RecordSchema | None = None,
    **changes: Any,
) -> Settings:
    """Return the settings of `ndd_search.wrap`, as described there. Raises TypeError or ValueError for invalid ones."""
    check_known(changes, WrapSettings.__annotations__)
    if not isinstance(observers, Sequence) or isinstance(observers, str | bytes):
        raise TypeError(f"observers must be a list, got {observers!r}")
    if not isinstance(cursor_keep_alive, str) or not re.fullmatch(r"[1-9]\d*(ms|s|m|h|d)", cursor_keep_alive):
        raise ValueError(f'cursor_keep_alive must be a time like "5m", got {cursor_keep_alive!r}')
    if cursor_key is not None and (not isinstance(cursor_key, str | bytes) or not cursor_key):
        raise ValueError("cursor_key must be a secret of at least one character or byte, or None")
    if options is not None and not isinstance(options, CollapseOptions):
        raise TypeError(f"options must be CollapseOptions, got {options!r}")
    recipe = None if recipe is None else Recipe.of(recipe)
    if settings is not None and not isinstance(settings, str | os.PathLike):
        raise TypeError(f"settings must be the path of a file, got {settings!r}")
    stored = StoredSettings() if settings is None else read_settings(settings, recipe)
    recipe = recipe or Recipe.of(stored.recipe)
    chosen = collapse_options(options or stored.options, **changes)
    rules = IndexRules.of(indexes, chosen, stored.indexes)
    return Settings(
        options=chosen,
        recipe=recipe,
        sketch_field=SketchField(field),
        cache=MemoryCache() if cache is True else None if cache is False else cache,
        time_budget=time_budget,
        bypass_seconds=bypass_seconds,
        frequency_table=frequency_table,
        tables=tables,
        write_tables=write_tables,
        observers=tuple(observers),
        writes=SketchedWrites.of(sketch, field, recipe, rules),
        cursor_key=cursor_key.encode() if isinstance(cursor_key, str) else cursor_key,
        cursor_keep_alive=cursor_keep_alive,
        indexes=rules,
        items=items,
    )
