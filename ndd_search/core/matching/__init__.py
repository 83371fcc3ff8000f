"""From the sketches of a page to its near-duplicate pairs and leaders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndd_search.lazy_names import later

if TYPE_CHECKING:
    from ndd_search.core.matching.choose_leaders import leaders
    from ndd_search.core.matching.document_frequency import count_document_frequency
    from ndd_search.core.matching.frequency_table import FrequencyTable

_LATER = {
    "FrequencyTable": "frequency_table",
    "count_document_frequency": "document_frequency",
    "leaders": "choose_leaders",
}

__all__ = ["FrequencyTable", "count_document_frequency", "leaders"]

if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = later(__name__, _LATER)
