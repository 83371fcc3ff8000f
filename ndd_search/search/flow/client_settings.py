"""Settings of a wrapped client, and what it learns about the indexes that it searches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Unpack

from ndd_search.core.matching.frequency_table import FrequencyTable, table_of
from ndd_search.core.options import Also, CollapseOptions, Enabled
from ndd_search.core.paging.cache import Cache, MemoryCache, check_cache
from ndd_search.core.paging.record_schema import RecordSchema, check_fits_records, check_schema
from ndd_search.core.presets import OPTIONS, CollapseChanges, chosen, preset_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import (
    Kind,
    Seconds,
    Several,
    YesNo,
    check_known,
    checked,
    kinds_of,
    setting,
)
from ndd_search.core.sketching.stored_sketch import SketchField, StoredSketches
from ndd_search.search.flow.learned_targets import Learned
from ndd_search.search.flow.observer import Observer
from ndd_search.search.flow.page_cache import Memory
from ndd_search.search.index_rules import IndexRule, IndexRules, OfRecipe
from ndd_search.search.rest.point_in_time import Family
from ndd_search.search.writing.sketch_written_requests import SketchedWrites

log = logging.getLogger("ndd_search")


class _Cache(YesNo):
    """true, false, or a cache."""

    def check(self, name: str, value: Any) -> Any:
        if not isinstance(value, bool) and value is not None:
            check_cache(value)
        return value


class _Table(YesNo):
    """true, false, or a FrequencyTable."""

    def check(self, name: str, value: Any) -> Any:
        table_of(value)
        return value


class _Observer(Kind):
    """an object with a method `observe`."""

    def check(self, name: str, value: Any) -> Any:
        if not hasattr(value, "observe"):
            raise TypeError(f"{name} must have a method observe, got {value!r}")
        return value


class _Secret(Kind):
    """a secret of at least one character or byte."""

    def check(self, name: str, value: Any) -> bytes | None:
        if value is not None and (not isinstance(value, str | bytes) or not value):
            raise ValueError(f"{name} must be a secret of at least one character or byte, or None")
        return value.encode() if isinstance(value, str) else value


class _Schema(Kind):
    """an `Items` schema."""

    def check(self, name: str, value: Any) -> Any:
        check_schema(value)
        return value


_DIFFERENT = (
    'its indexes have different settings; search them one by one, or give the search options of its own in "ndd"'
)


@checked
@dataclass(kw_only=True)
class Settings:
    """The settings of a wrapped client, as in `ndd_search.wrap`, with what it has learned about its indexes.

    bypass_seconds: seconds during which searches of a caller who found no sketch in an index are left alone, and until
                 the index is checked again for sketches.
    writes:      adds sketches to documents that are written through the client.
    clock:       a monotonic clock, in seconds.
    cursor_keep_alive: how long the engine keeps the point in time of a cursor after each page, as in "5m".
    """

    enabled: bool | tuple[Also, ...] = setting(Enabled(), True)
    recipe: Recipe = setting(OfRecipe(Recipe()), Recipe())
    cache: Cache | None = setting(_Cache(), True)
    time_budget: float | None = setting(Seconds(), None)
    frequency_table: FrequencyTable | bool = setting(_Table(), True)
    observers: Sequence[Observer] = setting(Several(_Observer()), ())
    cursor_key: bytes | None = setting(_Secret(), None)
    items: RecordSchema | None = setting(_Schema(), None)
    indexes: IndexRules
    options: CollapseOptions
    writes: SketchedWrites
    sketch_field: SketchField = field(default_factory=SketchField)
    bypass_seconds: float = 60.0
    clock: Callable[[], float] = monotonic
    cursor_keep_alive: str = "5m"

    def __post_init__(self) -> None:
        if isinstance(self.cache, bool):
            self.cache = MemoryCache() if self.cache else None
        if self.items is not None:
            check_fits_records(self.options)
        self.stored_sketches = StoredSketches(self.sketch_field, self.recipe)
        self.known = Learned()
        self.memory = Memory(self.cache)
        self.family: Family = "elasticsearch"

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


CLIENT = kinds_of(Settings)  # the settings of a client beside CollapseOptions, `preset` and the table `indexes`


def settings_of(**given: Unpack[WrapSettings]) -> Settings:
    """Return the settings of `ndd_search.wrap`, as described there. Raises TypeError or ValueError for invalid ones."""
    check_known(given, WrapSettings.__annotations__)
    own: dict[str, Any] = {name: value for name, value in given.items() if name in CLIENT}
    indexes = given.get("indexes")
    changes = {name: value for name, value in given.items() if name in OPTIONS}
    options, recipe = chosen(None, OfRecipe().check("recipe", own.pop("recipe", None)), changes)
    preset = given.get("preset")
    before = {} if preset is None else preset_of(preset).indexes
    rules = IndexRules.of(
        {**before, **indexes} if isinstance(indexes, Mapping) else before if indexes is None else indexes,
        options,
        recipe,
        CLIENT["enabled"].check("enabled", own.get("enabled", True)),
    )
    return Settings(
        **own,
        recipe=recipe,
        options=options,
        indexes=rules,
        writes=SketchedWrites.of(rules, StoredSketches(SketchField(rules.field), recipe)),
    )
