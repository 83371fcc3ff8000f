"""Collapses searches that take a request before they can be read: after a search pipeline, or by a template.

They are collapsed if `also` says so, or if the search asks for it itself, because a pipeline may rerank each hit of the
window, and a template costs a rendering.

A pipeline of OpenSearch is safe if each of its processors only restricts the query, normalises scores, or reorders the
returned hits:

    request        filter_query, neural_query_enricher: every request of ours gets the same filter or model
    phase results  normalization-processor, score-ranker-processor: the scores of hybrid queries
    response       rerank: reorders the hits of one response, so a search has one window for all of its pages

The others are not: `oversample` and `truncate_hits` change the number of hits, `collapse` and `sort` work on the page
alone, `script` and `ml_inference` may change anything, `retrieval_augmented_generation` would be given the whole
window, `rename_field` may rename what is read here. A processor that this version does not know is not safe either. The
definition of a named pipeline is read with one request, and remembered for five minutes.

A template of either engine is rendered by the engine, and the search that it gives is ours. A template that cannot be
rendered, or that gives a search which is left alone, is sent as it came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ndd_search.core.options import Also
from ndd_search.core.paging.cache import cache_key
from ndd_search.search.flow.carry_out_search import Conversation, conversation
from ndd_search.search.flow.client_settings import Settings
from ndd_search.search.flow.cursor_search import cursor_search
from ndd_search.search.flow.round_trips import Asking, Flow
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request, is_search, is_template, stripped, without_key
from ndd_search.search.rest.search_body import OBJECTS


def is_asked_for(kind: Also, request: Request, settings: Settings, changes: Mapping[str, Any]) -> bool:
    """Return whether a search of a kind is to be collapsed although that costs a request more.

    The "ndd" of the search decides; without one, `enabled` of the block around the search, then of its indexes.
    changes: options of that block.
    """
    asked = request.body.get("ndd") if isinstance(request.body, Mapping) else None
    own = settings.of_target(request.path, asked=False)
    return asked is not False and (bool(asked) or (own is not None and kind in own.collapsed_too(changes)))


_REMEMBERED = 300.0  # seconds
_NAME = re.compile(r"[^/?#,*\s]+")


def pipeline_search(request: Request, settings: Settings, changes: Mapping[str, Any] | None) -> Flow | None:
    """Return how to answer a search that names a pipeline and asks to be collapsed, None for any other request.

    changes: options of the surrounding `ndd_search.options`; None leaves every search alone.
    """
    if changes is None or (pipeline := pipeline_in(request)) is None or not is_search(request):
        return None
    if not is_asked_for("pipelines", request, settings, changes):
        return None
    if not isinstance(pipeline, Mapping) and not (isinstance(pipeline, str) and _NAME.fullmatch(pipeline)):
        return None
    return _after_pipeline(request, settings, changes, pipeline)


def _after_pipeline(
    request: Request, settings: Settings, changes: Mapping[str, Any], pipeline: str | Mapping[str, Any]
) -> Flow:
    """Read a pipeline, given by its name or its definition, and collapse the search or send it as it came."""
    definition: Any = {} if pipeline == NONE else pipeline
    if isinstance(definition, str):
        definition = yield from _definition(definition, request, settings)
    if reason := obstacle(definition):
        answer = yield stripped(request)
        name = pipeline if isinstance(pipeline, str) else "of the search"
        degraded = settings.degrade(request.path, f"the search pipeline {name} is not collapsed after: {reason}")
        if not answer.has_hits:
            return answer
        return Answer({**answer.body, "ndd": {"degraded": degraded}}, answer.status, answer.raw)
    talk = conversation(request, settings, changes, "reorders" if reorders(definition) else "safe")
    return (yield stripped(request)) if talk is None else (yield from talk.flow())


def _definition(name: str, request: Request, settings: Settings) -> Asking[Any]:
    """Return the definition of a pipeline, None if it cannot be read. request: of the caller."""
    known, now, key = settings.known, settings.clock(), cache_key("pipeline", name)
    if now < (found := known.about(key)).pipeline_until:
        return found.pipeline
    try:
        answer = yield reading(request, name)
    except Exception:
        return None
    definition = answer.body.get(name) if answer.ok and isinstance(answer.body, dict) else None
    if isinstance(definition, dict):
        known.learn(key, pipeline=definition, pipeline_until=now + _REMEMBERED)
    return definition


_RENDERED = ("id", "source", "params")
_CHANGES_THE_ANSWER = {"explain", "profile"}


def template_search(request: Request, settings: Settings, changes: Mapping[str, Any] | None) -> Flow | None:
    """Return how to answer a search by a template that asks to be collapsed, None for any other request.

    changes: options of the surrounding `ndd_search.options`; None leaves every search alone.
    """
    body = request.body
    if changes is None or not is_template(request) or not isinstance(body, Mapping):
        return None
    wanted = is_asked_for("templates", request, settings, changes)
    unknown = (body.keys() - {*_RENDERED, "ndd"}) | (_CHANGES_THE_ANSWER & request.params.keys())
    if not wanted or unknown:
        return None
    return _by_template(request, settings, changes)


def _by_template(request: Request, settings: Settings, changes: Mapping[str, Any]) -> Flow:
    """Render the template, and collapse the search or send the request as it came."""
    body = request.body
    given = {name: body[name] for name in _RENDERED if name in body}
    try:
        answer = yield Request("POST", "/_render/template", {}, request.headers, given)
    except Exception:  # a caller may search without the right to render
        return (yield without_key(request))
    rendered = answer.body.get("template_output") if answer.ok and isinstance(answer.body, dict) else None
    if isinstance(rendered, dict):
        options = {"ndd": body["ndd"]} if "ndd" in body else {}
        path = request.path.removesuffix("/template")
        search = replace(request, method="POST", path=path, body={**rendered, **options})
        for kind in (cursor_search, pipeline_search, conversation):
            if (talk := kind(search, settings, changes)) is not None:
                return (yield from talk.flow() if isinstance(talk, Conversation) else talk)
    return (yield without_key(request))


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
