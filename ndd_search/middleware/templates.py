"""Collapses search templates of both engines: the engine renders the template, and the search that it gives is ours.

It is asked for by `collapse_templates`, or by "ndd" in the body of the request, because rendering costs a request of
its own. A template that cannot be rendered, or that gives a search which is left alone, is sent as it came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ndd_search.middleware.conversation import conversation
from ndd_search.middleware.cursor_search import cursor_search
from ndd_search.middleware.pipelines import pipeline_search
from ndd_search.middleware.search_after import search_after
from ndd_search.middleware.sending import Flow
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.uncached import Uncached, is_asked_for
from ndd_search.rest.request import INDEX, Request

_PATH = re.compile(f"(?:{INDEX})?/_search/template")
_RENDERED = ("id", "source", "params")
_CHANGES_THE_ANSWER = {"explain", "profile"}


def is_template(request: Request) -> bool:
    """Return whether a request searches by a template."""
    return request.method in ("GET", "POST") and _PATH.fullmatch(request.path) is not None


def template_search(request: Request, settings: Settings, changes: Mapping[str, Any] | None) -> TemplateSearch | None:
    """Return how to answer a search by a template that asks to be collapsed, None for any other request.

    changes: options of the surrounding `ndd_search.options`; None leaves every search alone.
    """
    body = request.body
    if changes is None or not is_template(request) or not isinstance(body, Mapping):
        return None
    wanted = is_asked_for("collapse_templates", request, settings, changes)
    unknown = (body.keys() - {*_RENDERED, "ndd"}) | (_CHANGES_THE_ANSWER & request.params.keys())
    return TemplateSearch(request, settings, changes) if wanted and not unknown else None


class TemplateSearch(Uncached):
    """The requests for one search by a template. The page is cached by its conversation alone."""

    def __init__(self, request: Request, settings: Settings, changes: Mapping[str, Any]) -> None:
        super().__init__(request, settings.options)
        self._settings, self._changes = settings, changes

    def flow(self) -> Flow:
        """Render the template, and collapse the search or send the request as it came."""
        body, settings, changes = self.request.body, self._settings, self._changes
        given = {name: body[name] for name in _RENDERED if name in body}
        try:
            answer = yield Request("POST", "/_render/template", {}, self.request.headers, given)
        except Exception:  # a caller may search without the right to render
            return (yield without_options(self.request))
        rendered = answer.body.get("template_output") if answer.ok and isinstance(answer.body, dict) else None
        if isinstance(rendered, dict):
            options = {"ndd": body["ndd"]} if "ndd" in body else {}
            path = self.request.path.removesuffix("/template")
            search = replace(self.request, method="POST", path=path, body={**rendered, **options})
            for kind in (cursor_search, search_after, pipeline_search, conversation):
                if (talk := kind(search, settings, changes)) is not None:
                    return talk.remembered() or (yield from talk.flow())
        return (yield without_options(self.request))


def without_options(request: Request) -> Request:
    """Return a search by a template without our key "ndd", which engines refuse. Any other request is unchanged."""
    if is_template(request) and isinstance(request.body, Mapping) and "ndd" in request.body:
        return replace(request, body={name: value for name, value in request.body.items() if name != "ndd"})
    return request
