"""Collapses searches after a search pipeline of OpenSearch, if the pipeline is safe (see `rest.search_pipeline`).

It is asked for by `collapse_pipelines`, or by the search itself, because reranking costs an inference for each hit of
the window. The definition of a named pipeline is read with one request, and remembered for five minutes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ndd_search.middleware.conversation import conversation
from ndd_search.middleware.sending import Flow
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.uncached import Uncached, is_asked_for
from ndd_search.rest.answers import Answer
from ndd_search.rest.request import Request, is_search, stripped
from ndd_search.rest.search_pipeline import NONE, obstacle, pipeline_in, reading, reorders

_NAME = re.compile(r"[^/?#,*\s]+")


def pipeline_search(request: Request, settings: Settings, changes: Mapping[str, Any] | None) -> PipelineSearch | None:
    """Return how to answer a search that names a pipeline and asks to be collapsed, None for any other request.

    changes: options of the surrounding `ndd_search.options`; None leaves every search alone.
    """
    if changes is None or (pipeline := pipeline_in(request)) is None or not is_search(request):
        return None
    if not is_asked_for("collapse_pipelines", request, settings, changes):
        return None
    if not isinstance(pipeline, Mapping) and not (isinstance(pipeline, str) and _NAME.fullmatch(pipeline)):
        return None
    return PipelineSearch(request, settings, changes, pipeline)


class PipelineSearch(Uncached):
    """The requests for one search with a pipeline, given by its name or by its definition.

    The page is cached by its conversation alone.
    """

    def __init__(
        self, request: Request, settings: Settings, changes: Mapping[str, Any], pipeline: str | Mapping[str, Any]
    ) -> None:
        super().__init__(request, settings.options)
        self._settings, self._changes, self._pipeline = settings, changes, pipeline

    def flow(self) -> Flow:
        """Read the pipeline, and collapse the search or send it as it came."""
        definition: Any = {} if self._pipeline == NONE else self._pipeline
        if isinstance(definition, str):
            definition = yield from self._definition(definition)
        if reason := obstacle(definition):
            answer = yield stripped(self.request)
            return self._left_alone(answer, reason)
        talk = conversation(self.request, self._settings, self._changes, "reorders" if reorders(definition) else "safe")
        if talk is None:
            return (yield stripped(self.request))
        return talk.remembered() or (yield from talk.flow())

    def _definition(self, name: str) -> Any:
        """Return the definition of a pipeline, None if it cannot be read."""
        known, now = self._settings.pipelines, self._settings.clock()
        if (found := known.get(name, now)) is not None:
            return found
        try:
            answer = yield reading(self.request, name)
        except Exception:
            return None
        definition = answer.body.get(name) if answer.ok and isinstance(answer.body, dict) else None
        if isinstance(definition, dict):
            known.put(name, definition, now)
        return definition

    def _left_alone(self, answer: Answer, reason: str) -> Answer:
        name = self._pipeline if isinstance(self._pipeline, str) else "of the search"
        degraded = self._settings.degrade(self.path, f"the search pipeline {name} is not collapsed after: {reason}")
        if not answer.has_hits:
            return answer
        return Answer({**answer.body, "ndd": {"degraded": degraded}}, answer.status, answer.raw)
