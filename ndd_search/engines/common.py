"""Which sketch values many documents of an index hold, counted in a sample with a request of our own."""

from __future__ import annotations

from collections.abc import Generator

from ndd_search.census import count_common_values
from ndd_search.engines.answers import Answer, window_limit
from ndd_search.engines.request import SAMPLE, Reading, Request, Search, sample
from ndd_search.engines.settings import Settings
from ndd_search.engines.trips import LATE, Trips, trouble

_AGAIN = 3600.0  # seconds
_AFTER_A_FAILURE = 60.0


def count_common(
    search: Search, settings: Settings, reading: Reading, trips: Trips
) -> Generator[Request, Answer, None]:
    """Count them, unless that is not due, or there is no time left for it.

    One search counts anew; those beside it take what was counted before. What fails is tried again soon.
    """
    known, now = settings.known.about(search.target), settings.clock()
    if now < known.count_again:
        return
    if known.common is not None:
        settings.known.learn(search.target, count_again=now + _AFTER_A_FAILURE)
    sampled = yield from _sample(search, settings, reading, trips, min(SAMPLE, known.window_limit))
    if most := window_limit(sampled.complaint):
        settings.known.learn(search.target, window_limit=most)
        sampled = yield from _sample(search, settings, reading, trips, most)
    if sampled.whole:
        found = settings.sketch_field.decode([hit.get("fields") or {} for hit in sampled.hits], settings.recipe)
        common = count_common_values([one for one in found if not isinstance(one, str)], settings.recipe)
        settings.known.learn(search.target, count_again=now + _AGAIN, common=common)
    elif trouble([sampled], like=sampled) != LATE:
        settings.known.learn(search.target, count_again=now + _AFTER_A_FAILURE)


def _sample(
    search: Search, settings: Settings, reading: Reading, trips: Trips, size: int
) -> Generator[Request, Answer, Answer]:
    request = sample(search, settings.sketch_field, settings.recipe, reading, size)
    (answer,) = yield from trips.later([request])
    return answer
