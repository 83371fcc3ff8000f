"""Several searches in one request (`_msearch`): each is its own conversation, all of them share every round."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, TypeGuard

from ndd_search.middleware.conversation import Conversation, Flow, conversation
from ndd_search.middleware.settings import Settings
from ndd_search.paging.cache import cache_key
from ndd_search.rest.answers import Answer, status_in
from ndd_search.rest.filter_path import filtered
from ndd_search.rest.request import INDEX, Request, stripped

_PATH = re.compile(f"(?P<index>{INDEX})?/_msearch")

# What engines read in a header line. A search with anything else there, or another spelling, is left alone.
_HEADERS = {
    *("index", "indices", "preference", "routing", "search_type", "request_cache", "allow_partial_search_results"),
    *("ignore_unavailable", "allow_no_indices", "expand_wildcards", "ignore_throttled", "ccs_minimize_roundtrips"),
}

Line = dict[str, Any]
Text = tuple[str, str]  # header and body of a search that goes out as it came, with every digit and every space
Wishes = dict[int, Request]


@dataclass
class MultiConversation:
    """How to answer an `_msearch`. It is never remembered as a whole; its searches are, one by one."""

    request: Request
    headers: list[Line]
    searches: list[Request]
    conversations: list[Conversation | None]
    texts: list[Text | None]

    def remembered(self) -> Answer | None:
        """All the finished pages, if every one is in the cache."""
        found = [one.remembered() if one else None for one in self.conversations]
        pages = {place: answer.body for place, answer in enumerate(found) if answer is not None}
        return Answer(self._made(0, pages)) if len(pages) == len(self.conversations) else None

    def flow(self) -> Flow:
        """One `_msearch` a round, with what each search that is not finished wants next."""
        flows = [
            one.flow() if one else _as_it_is(search)
            for one, search in zip(self.conversations, self.searches, strict=True)
        ]
        done: dict[int, Line] = {}
        told: dict[int, Answer | Exception | None] = dict.fromkeys(range(len(flows)))
        took, raw = 0, None
        while wishes := _wishes(flows, told, done):
            lines, which = self._lines(wishes)
            try:
                answer = yield self._round(lines, wishes)
            except Exception as error:
                if raw is None and getattr(error, "status_code", None) == HTTPStatus.BAD_REQUEST:
                    return (yield from self._as_it_came())
                if raw is None:
                    raise
                told = dict.fromkeys(wishes, error)
            else:
                responses = answer.body.get("responses") if answer.ok and isinstance(answer.body, dict) else None
                if _are_responses(responses, len(lines) // 2):
                    took += answer.body.get("took") or 0
                    told.clear()
                    told.update(_told(wishes, responses, which))
                elif raw is None:
                    return (yield from self._as_it_came()) if answer.status == HTTPStatus.BAD_REQUEST else answer
                else:
                    told = dict.fromkeys(wishes, Answer(answer.body, HTTPStatus.SERVICE_UNAVAILABLE))
                raw = raw or answer.raw or answer
        return Answer(self._made(took, done), raw=None if isinstance(raw, Answer) else raw)

    def _as_it_came(self) -> Flow:
        """What the engine says to the user's own request."""
        answer = yield self._as_asked()
        responses = answer.body.get("responses") if isinstance(answer.body, dict) else None
        if _are_responses(responses, len(self.conversations)):
            for one, response in zip(self.conversations, responses, strict=True):
                if one is not None:
                    one.hide_sketches(response)
        return answer

    def _as_asked(self) -> Request:
        """What the user sent, for an engine that refuses one of the wider searches and with it all of them."""
        lines: list[Line | str] = []
        for header, search, text in zip(self.headers, self.searches, self.texts, strict=True):
            lines += text or (header, search.body or {})
        return replace(self.request, body=self._body(lines))

    def _body(self, lines: list[Line | str]) -> Any:
        """In the form in which the client hands it over."""
        if isinstance(self.request.body, list):
            return lines
        return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)

    def _made(self, took: int, done: Mapping[int, Any]) -> Any:
        responses = [{"status": HTTPStatus.OK.value, **done[place]} for place in range(len(done))]
        body = {"took": took, "responses": responses}
        paths = self.request.params.get("filter_path")
        return filtered(body, paths, "responses.ndd") if paths else body

    def _lines(self, wishes: Mapping[int, Request]) -> tuple[list[Line | str], dict[int, list[int]]]:
        """Header and body of each search of a round, and which of them each place waits for: equal ones go out once."""
        lines: list[Line | str] = []
        known: dict[bytes, int] = {}
        which: dict[int, list[int]] = {place: [] for place in wishes}
        for place, wish in wishes.items():
            for search in wish.parts or (wish,):
                text = self.texts[place] if search is self.searches[place] else None
                added = {name: value for name, value in search.params.items() if name not in self.request.params}
                line = text or ({**self.headers[place], **added}, search.body or {})
                which[place].append(known.setdefault(cache_key(*line), len(known)))
                if which[place][-1] * 2 == len(lines):
                    lines += line
        return lines, which

    def _round(self, lines: list[Line | str], wishes: Mapping[int, Request]) -> Request:
        timeout = min((wish.timeout for wish in wishes.values() if wish.timeout is not None), default=None)
        params = {name: value for name, value in self.request.params.items() if name != "filter_path"}
        return replace(self.request, params=params, body=self._body(lines), timeout=timeout)


def multi_conversation(
    request: Request, settings: Settings, changes: Mapping[str, Any] | None
) -> MultiConversation | None:
    """How to answer a request, None when it is no `_msearch` or none of its searches is ours."""
    path = _PATH.fullmatch(request.path)
    lines = _lines(request.body) if path else None
    if path is None or not lines or len(lines) % 2:
        return None
    headers, bodies = lines[::2], lines[1::2]
    of_url = {name: value for name, value in request.params.items() if name != "filter_path"}
    searches = [
        Request("POST", _target(header, path["index"] or ""), {**of_url, **_params(header)}, request.headers, body)
        for header, body in zip(headers, bodies, strict=True)
    ]
    conversations = [
        conversation(search, settings, changes) if _is_understood(header) else None
        for header, search in zip(headers, searches, strict=True)
    ]
    if not any(conversations) and not any("ndd" in body for body in bodies):
        return None
    plain = [stripped(search) for search in searches]
    given = _texts(request.body) or [None] * len(searches)
    texts = [text if same is search else None for text, same, search in zip(given, plain, searches, strict=True)]
    return MultiConversation(request, headers, plain, conversations, texts)


def _is_understood(header: Line) -> bool:
    """Whether a header line says what is searched in a way that we know, and nothing else that we do not."""
    indexes = [header[name] for name in ("index", "indices") if name in header]
    named = all(
        (isinstance(one, str) or (isinstance(one, list) and all(isinstance(name, str) for name in one))) and one
        for one in indexes
    )
    return named and len(indexes) < 2 and _HEADERS.issuperset(header)


def _target(header: Line, of_all: str) -> str:
    """The path of one search. of_all: of the path of the request, with its slash, "" for none."""
    given = header.get("index", header.get("indices"))
    names = ",".join(map(str, given)) if isinstance(given, list) else given
    return f"/{names}/_search" if names else f"{of_all}/_search"


def _params(header: Line) -> Line:
    return {name: value for name, value in header.items() if name not in ("index", "indices")}


def _texts(body: Any) -> list[Text | None] | None:
    """The text of each search of an NDJSON body, None for a body that is no text."""
    text = body.decode() if isinstance(body, bytes) else body
    if not isinstance(text, str):
        return None
    lines = [line for line in text.split("\n") if line != ""]
    return list(zip(lines[::2], lines[1::2], strict=True))


def _lines(body: Any) -> list[Line] | None:
    """The JSON objects of an NDJSON body, None if there is anything else."""
    try:
        text = body.decode() if isinstance(body, bytes) else body
        parts = text.split("\n") if isinstance(text, str) else text  # not splitlines: U+2028 may stand in a query
        if not isinstance(parts, list):
            return None
        lines = [json.loads(part) if isinstance(part, str | bytes) else part for part in parts if part != ""]
    except ValueError:
        return None
    return lines if all(isinstance(line, dict) for line in lines) else None


def _as_it_is(search: Request) -> Generator[Request, Answer, Answer]:
    """The flow of a search that is left alone."""
    return (yield search)


def _are_responses(given: Any, count: int) -> TypeGuard[list[Line]]:
    return isinstance(given, list) and len(given) == count and all(isinstance(one, dict) for one in given)


def _told(wishes: Mapping[int, Request], responses: list[Line], which: Mapping[int, list[int]]) -> dict[int, Answer]:
    """What each search is told, each in a copy of its own: a flow takes hits apart."""
    told, given = {}, set[int]()
    for place, wish in wishes.items():
        mine = [copy.deepcopy(responses[at]) if at in given else responses[at] for at in which[place]]
        given.update(which[place])
        one = mine[0]
        told[place] = Answer({"responses": mine}) if wish.parts else Answer(one, status_in(one), raw=one)
    return told


def _wishes(flows: list[Flow], told: Mapping[int, Answer | Exception | None], done: dict[int, Line]) -> Wishes:
    """What the flows want after they were told something; those that end go into `done`."""
    wishes: dict[int, Request] = {}
    for place, given in told.items():
        try:
            wishes[place] = _tell(flows[place], given)
        except StopIteration as finished:
            done[place] = _one_of_many(finished.value)
        except Exception as error:
            if error is not given:
                raise
            done[place] = _one_of_many(error)  # the others have theirs
    return wishes


def _one_of_many(answer: Answer | Exception) -> Line:
    """What stands for a search among the others; where the engine gave no JSON of its own, an error in its shape."""
    if isinstance(answer, Exception):
        status = getattr(answer, "status_code", None)
        answer = Answer(answer, status if isinstance(status, int) else HTTPStatus.SERVICE_UNAVAILABLE)
    elif isinstance(answer.body, dict) and (answer.ok or "error" in answer.body):
        return {"status": int(answer.status), **answer.body}
    reason = {"type": type(answer.body).__name__, "reason": str(answer.body)}
    return {"error": {"root_cause": [reason], **reason}, "status": int(answer.status)}


def _tell(flow: Flow, given: Answer | Exception | None) -> Request:
    """What a flow wants after it was told something; nothing at first. Raises StopIteration with its value."""
    if given is None:
        return next(flow)
    return flow.throw(given) if isinstance(given, Exception) else flow.send(given)
