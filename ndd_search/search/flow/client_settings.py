"""What decides how a search is collapsed: the settings of its client, and the options of a block of code around it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Unpack

from ndd_search.core.matching.frequency_table import FrequencyTable, table_of
from ndd_search.core.options import OF_ONE_SEARCH, Also, CollapseOptions, Enabled
from ndd_search.core.paging.cache import Cache, MemoryCache, check_cache
from ndd_search.core.paging.record_schema import RecordSchema, check_fits_records, check_schema
from ndd_search.core.presets import OPTIONS, CollapseChanges, chosen, collapse_options, preset_of
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


_surrounding: ContextVar[Mapping[str, Any]] = ContextVar("ndd_search.options", default={})  # noqa: B039 - never changed


class SearchChanges(CollapseChanges, total=False):
    """The keyword arguments of `options`, for type checkers."""

    cache: bool
    explain: Sequence[str]
    seen: Sequence[Any]


@contextmanager
def options(enabled: bool | Sequence[Also] | None = None, **changes: Unpack[SearchChanges]) -> Iterator[None]:
    """Change options for the searches inside the block, through any wrapped client, in this thread or task.

    enabled: False leaves searches alone as if clients were not wrapped, True collapses those that their clients do, a
             list others too, as in `wrap`; None keeps what an outer block has set.
    changes: CollapseOptions by name, `cache=False` to neither read nor fill the cache, `explain=IDS` to learn where
             these documents are (see docs/whole-groups.md), and `seen`, a list of what the caller was shown before (see
             docs/seen.md). They are added to those of outer blocks.
    Raises TypeError for an unknown option, ValueError for an invalid value.
    """
    if "cursor" in changes:
        raise TypeError('cursor is an option of one search: put it into the body, "ndd": {"cursor": true}')
    check_known(changes, ["enabled", *SearchChanges.__annotations__])
    given: dict[str, Any] = {**changes, **({} if enabled is None else {"enabled": enabled})}
    _, others = options_and_others(None, given)
    token = _surrounding.set({**_surrounding.get(), **given, **others})
    try:
        yield
    finally:
        _surrounding.reset(token)


def options_and_others(
    base: CollapseOptions | None, changes: Mapping[str, Any]
) -> tuple[CollapseOptions, dict[str, Any]]:
    """Return CollapseOptions with changes, and those of the changes that stand beside them, see OF_ONE_SEARCH.

    base: as in `collapse_options`. Raises TypeError or ValueError for an unknown option or an invalid value.
    """
    check_known(changes, [*OPTIONS, *OF_ONE_SEARCH])
    others = {name: OF_ONE_SEARCH[name].check(name, changes[name]) for name in OF_ONE_SEARCH if name in changes}
    return collapse_options(base, **{name: changes[name] for name in changes if name not in OF_ONE_SEARCH}), others


def surrounding() -> Mapping[str, Any] | None:
    """Return the options of the surrounding blocks, None if searches are left alone."""
    changes = _surrounding.get()
    return None if changes.get("enabled") is False else changes
