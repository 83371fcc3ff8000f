"""Settings of a wrapped client, and what it learns about the indexes that it searches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from ndd_search.core.matching.frequency_table import FrequencyTable, table_of
from ndd_search.core.options import Also, CollapseOptions
from ndd_search.core.paging.cache import Cache, MemoryCache, check_cache
from ndd_search.core.paging.record_schema import RecordSchema, check_fits_records, check_schema
from ndd_search.core.presets import CollapseChanges, chosen, preset_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import Kind, Seconds, Text, YesNo, check_known
from ndd_search.core.sketching.stored_sketch import SketchField, StoredSketches
from ndd_search.search.flow.learned_targets import Learned
from ndd_search.search.flow.observer import Observer
from ndd_search.search.flow.page_cache import Memory
from ndd_search.search.index_rules import OWN, IndexRule, IndexRules, recipe_named
from ndd_search.search.rest.point_in_time import Family
from ndd_search.search.writing.sketch_written_requests import SketchedWrites

log = logging.getLogger("ndd_search")


class _Cache(YesNo):
    """Whether pages are cached, or the address of a server that caches them for all."""

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and "://" in value:
            return value
        if not isinstance(value, bool):
            where = "true, false, or the address of a Redis server, as in redis://HOST:6379/0"
            raise TypeError(f"{name} must be {where}, got {value!r}")
        return value

    def read(self, name: str, text: str) -> Any:
        try:
            return super().read(name, text)
        except ValueError:
            return self.check(name, text)


IN_FILES: dict[str, Kind] = {  # the settings of `wrap` that a file or the environment can hold, beside tables
    "recipe": OWN["recipe"],
    "enabled": OWN["enabled"],
    "cache": _Cache(),
    "time_budget": Seconds(),
    "frequency_table": YesNo(),
    "cursor_key": Text(".+", "a secret"),
}

_DIFFERENT = (
    'its indexes have different settings; search them one by one, or give the search options of its own in "ndd"'
)


@dataclass(kw_only=True)
class Settings:
    """The settings of a wrapped client, as in `ndd_search.wrap`, with what it has learned about its indexes.

    bypass_seconds: seconds during which searches of a caller who found no sketch in an index are left alone, and until
                 the index is checked again for sketches.
    frequency_table: True uses the one that is stored for an index, read once an hour by each caller, or counts one in
                 the hits of a search.
    writes:      adds sketches to documents that are written through the client.
    clock:       a monotonic clock, in seconds.
    cursor_keep_alive: how long the engine keeps the point in time of a cursor after each page, as in "5m".
    """

    options: CollapseOptions = field(default_factory=CollapseOptions)
    recipe: Recipe = field(default_factory=Recipe)
    sketch_field: SketchField = field(default_factory=SketchField)
    cache: Cache | None = field(default_factory=MemoryCache)
    time_budget: float | None = None
    bypass_seconds: float = 60.0
    frequency_table: FrequencyTable | bool = True
    observers: Sequence[Observer] = ()
    writes: SketchedWrites = field(default_factory=SketchedWrites)
    clock: Callable[[], float] = monotonic
    cursor_key: bytes | None = field(default=None, repr=False)
    cursor_keep_alive: str = "5m"
    indexes: IndexRules = field(default_factory=lambda: IndexRules({}))
    enabled: bool | tuple[Also, ...] = True
    items: RecordSchema | None = None

    def __post_init__(self) -> None:
        self._check()
        check_schema(self.items)
        if self.items is not None:
            check_fits_records(self.options)
        self.stored_sketches = StoredSketches(self.sketch_field, self.recipe)
        self.known = Learned()
        self.memory = Memory(self.cache)
        self.family: Family = "elasticsearch"

    def _check(self) -> None:
        IN_FILES["time_budget"].check("time_budget", self.time_budget)
        table_of(self.frequency_table)
        if self.cache is not None:
            check_cache(self.cache)
        if wrong := [one for one in self.observers if not hasattr(one, "observe")]:
            raise TypeError(f"observers must have a method observe, got {wrong[0]!r}")

    def collapsed_too(self, changes: Mapping[str, Any]) -> tuple[Also, ...]:
        """Return which searches are collapsed beside those that rank. changes: options of a search or its block."""
        enabled = changes.get("enabled", True)
        enabled = self.enabled if enabled is True else enabled
        return enabled if isinstance(enabled, tuple) else ()

    def serve(self, transport: Any, family: Family) -> None:
        """Use the identity of the client that has this transport. family: of the engine that it talks to."""
        self.memory.serve(transport)
        self.family = family

    def wrote(self, indexes: Collection[str] | None) -> None:
        """Forget what a write has made untrue. indexes: all names of those that it changed, None if unknown."""
        self.known.written()
        self.memory.forget(indexes)

    def of_target(self, path: str, asked: bool) -> Settings | None:
        """Return the settings for the indexes of a search, which share what is learned; None if it is left alone.

        It is if its indexes are switched off, or have different settings. A search with options of its own (asked) is
        not: it uses the settings of its indexes if they agree, else those of all other indexes. path: of the request.
        """
        if not self.indexes.rules:
            return self if self.enabled is not False or asked else None
        rules = self.indexes.of_target(path.partition("/_search")[0])
        if len(rules) > 1:
            if asked:
                return self
            self.degrade(path, _DIFFERENT)
            return None
        rule = rules[0] if rules else self.indexes.others
        if rule.enabled is False and not asked:
            return None
        return self if rule.of_search == self.indexes.others.of_search else self._with(rule)

    def _with(self, rule: IndexRule) -> Settings:
        """Return these settings with those of a rule. Both share the cache and what is learned."""
        other = copy(self)
        other.options, other.enabled = rule.options, rule.enabled
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

    def degrade(self, path: str, reason: str) -> str:
        """Log once for each target why near-duplicates may be shown. Returns the reason."""
        return self.tell(path, reason, "near-duplicates may be shown: ")

    def tell(self, path: str, sentence: str, about: str = "") -> str:
        """Log a sentence once for each target. Returns it. about: what goes before it."""
        if self.known.says_first(path, sentence.partition(":")[0]):  # after the colon an engine may quote the query
            log.warning("%s: %s%s", path, about, sentence)
        return sentence


class WrapSettings(CollapseChanges, total=False):
    """The keyword arguments of `ndd_search.wrap`, for type checkers."""

    enabled: bool | Sequence[Also]
    recipe: Recipe | str | None
    cache: Cache | bool
    time_budget: float | None
    frequency_table: FrequencyTable | bool
    observers: Sequence[Observer]
    indexes: Mapping[str, Mapping[str, Any]] | None
    cursor_key: str | bytes | None
    items: RecordSchema | None


def settings_of(  # noqa: PLR0913 - all settings of a client in one call
    *,
    enabled: bool | Sequence[Also] = True,
    recipe: Recipe | str | None = None,
    cache: Cache | bool = True,
    time_budget: float | None = None,
    frequency_table: FrequencyTable | bool = True,
    observers: Sequence[Observer] = (),
    indexes: Mapping[str, Mapping[str, Any]] | None = None,
    cursor_key: str | bytes | None = None,
    items: RecordSchema | None = None,
    **changes: Any,
) -> Settings:
    """Return the settings of `ndd_search.wrap`, as described there. Raises TypeError or ValueError for invalid ones."""
    check_known(changes, WrapSettings.__annotations__)
    if not isinstance(observers, Sequence) or isinstance(observers, str | bytes):
        raise TypeError(f"observers must be a list, got {observers!r}")
    if cursor_key is not None and (not isinstance(cursor_key, str | bytes) or not cursor_key):
        raise ValueError("cursor_key must be a secret of at least one character or byte, or None")
    collapse, used = chosen(None, None if recipe is None else recipe_named(recipe), changes)
    before = preset_of(kind).indexes if (kind := changes.get("preset")) is not None else {}
    given = {**before, **indexes} if isinstance(indexes, Mapping) else before if indexes is None else indexes
    chosen_ones = OWN["enabled"].check("enabled", enabled)
    rules = IndexRules.of(given, collapse, used, chosen_ones)
    return Settings(
        options=collapse,
        recipe=used,
        cache=MemoryCache() if cache is True else None if cache is False else cache,
        time_budget=time_budget,
        frequency_table=frequency_table,
        observers=tuple(observers),
        writes=SketchedWrites.of(rules, StoredSketches(SketchField(rules.field), used)),
        cursor_key=cursor_key.encode() if isinstance(cursor_key, str) else cursor_key,
        indexes=rules,
        enabled=chosen_ones,
        items=items,
    )
