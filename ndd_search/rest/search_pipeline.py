"""Which search pipelines of OpenSearch leave a list of hits that can be collapsed.

A pipeline is safe if each of its processors only restricts the query, normalises scores, or reorders the returned hits:

    request        filter_query, neural_query_enricher: every request of ours gets the same filter or model
    phase results  normalization-processor, score-ranker-processor: the scores of hybrid queries
    response       rerank: reorders the hits of one response, so a search has one window for all of its pages

The others are not: `oversample` and `truncate_hits` change the number of hits, `collapse` and `sort` work on the page
alone, `script` and `ml_inference` may change anything, `retrieval_augmented_generation` would be given the whole
window, `rename_field` may rename what is read here. A processor that this version does not know is not safe either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ndd_search.rest.intent import OBJECTS
from ndd_search.rest.request import Request

KEY = "search_pipeline"
NONE = "_none"  # the name that switches the index's default pipeline off

_SAFE = {
    "request_processors": {"filter_query", "neural_query_enricher"},
    "phase_results_processors": {"normalization-processor", "score-ranker-processor"},
    "response_processors": {"rerank"},
}
_ABOUT = {"description", "version", "_meta"}
_REORDERS = "rerank"


def pipeline_in(request: Request) -> Any:
    """Return the pipeline that a search names or holds, None for none, and for one that is given twice."""
    body = request.body if isinstance(request.body, OBJECTS) else {}
    given = [one[KEY] for one in (request.params, body) if KEY in one]
    return given[0] if len(given) == 1 else None


def obstacle(definition: Any) -> str:
    """Return what prevents collapsing after a pipeline, "" if nothing does. definition: as the engine returns it."""
    if not isinstance(definition, Mapping):
        return "its definition cannot be read"
    for kind, processors in definition.items():
        if kind in _ABOUT:
            continue
        names = [name for one in processors for name in one] if isinstance(processors, list) else [str(kind)]
        if unsafe := [name for name in names if name not in _SAFE.get(kind, ())]:
            return f"its processor {unsafe[0]} may change more than the order of the hits"
    return ""


def reorders(definition: Mapping[str, Any]) -> bool:
    """Return whether a longer window would be in another order."""
    return any(_REORDERS in one for one in definition.get("response_processors", ()))


def reading(like: Request, name: str) -> Request:
    """Return the request for the definition of a pipeline. like: of the caller."""
    return Request("GET", f"/_search/pipeline/{name}", {}, like.headers, None)
