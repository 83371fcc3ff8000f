"""What a search asks for beside the options that decide how its hits are collapsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ndd_search.immutable import dataclass
from ndd_search.middleware.experiment import Experiment
from ndd_search.middleware.explain import explained_ids
from ndd_search.middleware.seen_items import SeenItems
from ndd_search.middleware.settings import Settings
from ndd_search.paging.records import SEEN_WITH_ITEMS


@dataclass(frozen=True, kw_only=True)
class Extras:
    """What one search asks for.

    remember:   whether its page may be read from the cache and stored there.
    explained:  ids of the documents whose places it asks for.
    seen:       what the caller was shown before, None if it does not say.
    experiment: that it takes part in, None for none.
    """

    remember: bool = True
    explained: Sequence[str] = ()
    seen: SeenItems | None = None
    experiment: Experiment | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], settings: Settings) -> Extras:
        """Read what a search gives under the names in `scope.NOT_OPTIONS`. Raises TypeError or ValueError."""
        if not given:
            return cls()
        ids, seen, experiment = explained_ids(given.get("explain")), given.get("seen"), given.get("experiment")
        if seen is not None and settings.items is not None:
            raise ValueError(SEEN_WITH_ITEMS)
        return cls(
            remember=bool(given.get("cache", True)) and not seen and not ids,
            explained=ids,
            seen=None if seen is None else SeenItems.of(seen, settings.recipe),
            experiment=None if experiment is None else Experiment.of(experiment),
        )
