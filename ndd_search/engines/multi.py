"""Several searches in one request (`_msearch`): each is its own conversation, all of them share every round."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ndd_search.engines.middleware import Answer, Conversation, Flow, Settings, conversation
from ndd_search.engines.request import Request, stripped

_PATH = re.compile(r"(?P<index>/[^/]+)?/_msearch")

Line = dict[str, Any]


@dataclass
class MultiConversation:
    """How to answer an `_msearch`. It is never remembered as a whole; its searches are, one by one."""

    request: Request
    headers: list[Line]
    searches: list[Request]
    conversations: list[Conversation | None]
    key: bytes | None = None

    def remembered(self) -> Answer | None:
        """All the finished pages, if every one is in the cache."""
        found = [one.remembered() if one else None for one in self.conversations]
        pages = [answer.body for answer in found if answer is not None]
        return Answer({"took": 0, "responses": pages}) if len(pages) == len(self.conversations) else None

    def flow(self) -> Flow:
        """One `_msearch` a round, with what each search that is not finished wants next."""
        flows = [
            one.flow() if one else _as_it_is(search)
            for one, search in zip(self.conversations, self.searches, strict=True)
        ]
        wishes = {place: next(flow) for place, flow in enumerate(flows)}
        done: dict[int, Any] = {}
        took, raw = 0, None
        while wishes:
            try:
                answer = yield self._round(wishes)
            except Exception as error:
                if raw is None:
                    raise
                answers: dict[int, Answer | Exception] = dict.fromkeys(wishes, error)
            else:
                responses = answer.body.get("responses") if answer.ok and isinstance(answer.body, dict) else None
                if not isinstance(responses, list) or len(responses) != len(wishes):
                    if raw is None:
                        return answer
                    answers = dict.fromkeys(wishes, Answer(answer.body, 503))
                else:
                    took += answer.body.get("took") or 0
                    answers = {
                        place: Answer(one, one.get("status", 200), raw=one)
                        for place, one in zip(wishes, responses, strict=True)
                    }
                raw = raw or answer.raw or answer
            wishes = {}
            for place, given in answers.items():
                try:
                    wishes[place] = _tell(flows[place], given)
                except StopIteration as finished:
                    done[place] = finished.value.body
        made = {"took": took, "responses": [done[place] for place in range(len(flows))]}
        return Answer(made, raw=None if isinstance(raw, Answer) else raw)

    def _round(self, wishes: Mapping[int, Request]) -> Request:
        lines: list[Any] = []
        for place, wish in wishes.items():
            lines += [{**self.headers[place], **wish.params}, wish.body or {}]
        timeout = min((wish.timeout for wish in wishes.values() if wish.timeout is not None), default=None)
        body = lines if isinstance(self.request.body, list) else "".join(json.dumps(line) + "\n" for line in lines)
        return replace(self.request, body=body, timeout=timeout)


def multi_conversation(
    request: Request, settings: Settings, changes: Mapping[str, Any] | None
) -> MultiConversation | None:
    """How to answer a request, None when it is no `_msearch` or none of its searches is ours."""
    path = _PATH.fullmatch(request.path)
    lines = _lines(request.body) if path and "filter_path" not in request.params else None
    if path is None or not lines or len(lines) % 2:
        return None
    headers, bodies = lines[::2], lines[1::2]
    shared = {name: value for name, value in request.params.items() if name == "rest_total_hits_as_int"}
    searches = []
    for header, body in zip(headers, bodies, strict=True):
        index = header.get("index")
        names = ",".join(index) if isinstance(index, list) else index
        where = f"/{names}" if names else path["index"] or ""
        searches.append(Request("POST", f"{where}/_search", shared, request.headers, body))
    conversations = [conversation(search, settings, changes) for search in searches]
    if not any(conversations) and not any("ndd" in body for body in bodies):
        return None
    # What stands in the URL of the whole request is not repeated in the header of each search.
    searches = [replace(stripped(search), params={}) for search in searches]
    return MultiConversation(request, headers, searches, conversations)


def _lines(body: Any) -> list[Line] | None:
    """The JSON objects of an NDJSON body, None if there is anything else."""
    parts = body.splitlines() if isinstance(body, str | bytes) else body if isinstance(body, list) else None
    if parts is None:
        return None
    try:
        lines = [json.loads(part) if isinstance(part, str | bytes) else part for part in parts if part != ""]
    except ValueError:
        return None
    return lines if all(isinstance(line, dict) for line in lines) else None


def _as_it_is(search: Request) -> Generator[Request, Answer, Answer]:
    """The flow of a search that is left alone."""
    return (yield search)


def _tell(flow: Flow, given: Answer | Exception) -> Request:
    return flow.throw(given) if isinstance(given, Exception) else flow.send(given)
