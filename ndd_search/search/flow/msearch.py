"""Several searches in one request (`_msearch`): one conversation each, which share every round trip."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from math import isinf
from typing import Any, TypeGuard
from urllib.parse import unquote

from ndd_search.search.flow.carry_out_search import Conversation, conversation
from ndd_search.search.flow.client_settings import Settings
from ndd_search.search.flow.engines_own_page import WIDER
from ndd_search.search.flow.round_trips import REFUSED, Asking, Flow, is_refused
from ndd_search.search.rest.read_answer import Answer, CutSketches, error_of, reason_of, status_in
from ndd_search.search.rest.read_request import INDEX, Request, media_type, without_key
from ndd_search.search.rest.write_response import filtered

_PATH = re.compile(f"(?P<index>{INDEX})?/_msearch")

# Keys that engines read in a header line. A search with any other key is left alone.
_HEADERS = {
    *("index", "indices", "preference", "routing", "search_type", "request_cache", "allow_partial_search_results"),
    *("ignore_unavailable", "allow_no_indices", "expand_wildcards", "ignore_throttled", "ccs_minimize_roundtrips"),
}

_OF_ALL = {"filter_path", "max_concurrent_searches"}  # parameters of the whole request that no search has

Line = dict[str, Any]
Pair = tuple[Any, Any]  # header and body of a search as the caller gave them, objects or texts
Requests = dict[int, Request]  # by the place of the search in the `_msearch`


@dataclass
class MultiConversation:
    """How to answer an `_msearch`. Its searches are cached one by one, never the whole.

    headers:  of each search, as given. searches: each as a request of its own, without our key "ndd".
    conversations: of each search, None for one that is left alone.
    given:    of each search whose body has no key of ours, what is sent if it is left alone: byte for byte.
    """

    request: Request
    headers: list[Line]
    searches: list[Request]
    conversations: list[Conversation | None]
    given: list[Pair | None]

    def flow(self) -> Flow:
        """Send one `_msearch` a round trip, with the next request of each search that is not finished.

        A search whose page is in the cache is finished at once.
        """
        flows = [
            talk.flow() if talk else _unchanged(search)
            for talk, search in zip(self.conversations, self.searches, strict=True)
        ]
        done: dict[int, Line] = {}
        results: Mapping[int, Answer | Exception | None] = dict.fromkeys(range(len(flows)))
        first: Answer | None = None
        has_failed = False  # all together: then the caller's own searches decide, as the engine reads all or none
        took = 0
        while requests := _advance(flows, results, done):
            lines = self._lines_to_send(requests)
            trip = self._round_trip(lines, requests)
            try:
                answer = yield trip
            except Exception as error:
                if first is None and (has_failed or not (is_refused(error) or trip.timeout is not None)):
                    raise
                failure: Answer | Exception = error
                is_unread = is_refused(error, {HTTPStatus.BAD_REQUEST})
            else:
                responses = answer.body.get("responses") if answer.ok and isinstance(answer.body, dict) else None
                if _are_responses(responses, len(lines) // 2):
                    first, took = first or answer, took + (answer.took or 0)
                    results = _answers_of(requests, responses, answer.cut)
                    continue
                if first is None and (has_failed or not (answer.ok or answer.status in REFUSED)):
                    return answer
                failure = Answer(answer.body, HTTPStatus.SERVICE_UNAVAILABLE)
                is_unread = answer.status == HTTPStatus.BAD_REQUEST
            results = dict.fromkeys(requests, failure)
            if is_unread and not has_failed and first is not None:  # by a member that our first request did not have
                has_failed, own = True, self._lines_to_send(dict(enumerate(self.searches)))
                if not (whole := (yield replace(self.request, body=self._body(own)))).ok:
                    return whole
            if first is None:
                has_failed, results = True, dict.fromkeys(requests)
                for place in requests:
                    flows[place] = self._own_flow(place, failure)
        return Answer(self._response(took, done), raw=None if first is None else first.raw)

    def _own_flow(self, place: int, failure: Answer | Exception) -> Flow:
        """Return a flow that sends a search as the caller made it. failure: of the trip with all searches of ours."""
        if (talk := self.conversations[place]) is None:
            return _unchanged(self.searches[place])
        return talk.engines_own(WIDER + (failure.reason if isinstance(failure, Answer) else reason_of(failure)))

    def _body(self, lines: list[Line | str]) -> Any:
        """Return the lines as a list or as text, like the body of the request."""
        if isinstance(self.request.body, list | tuple):
            return lines
        return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)

    def _response(self, took: int, done: Mapping[int, Any]) -> Any:
        responses = [{"status": HTTPStatus.OK.value, **done[place]} for place in range(len(done))]
        body = {"took": took, "responses": responses}
        paths = self.request.params.get("filter_path")
        return filtered(body, paths, "responses.ndd") if paths else body

    def _lines_to_send(self, requests: Mapping[int, Request]) -> list[Line | str]:
        """Return the header and body of each search to send."""
        lines: list[Line | str] = []
        for place, request in requests.items():
            for search in request.parts or (request,):
                given = self.given[place] if search is self.searches[place] else None
                lines += given or (self._header(search, place), search.body or {})
        return lines

    def _header(self, search: Request, place: int) -> Line:
        if search.path != self.searches[place].path:  # for the stored table
            return {"index": unquote(search.path.split("/")[1]), **search.params}
        added = {name: value for name, value in search.params.items() if name not in self.request.params}
        return {**self.headers[place], **added}

    def _round_trip(self, lines: list[Line | str], requests: Mapping[int, Request]) -> Request:
        timeouts = [request.timeout for request in requests.values() if request.timeout is not None]
        timeout = min(timeouts, default=None)
        params = {name: value for name, value in self.request.params.items() if name != "filter_path"}
        cuts = {request.cut for request in requests.values()}
        cut = cuts.pop() if len(cuts) == 1 else None
        return replace(self.request, params=params, body=self._body(lines), timeout=timeout, cut=cut)


def multi_conversation(
    request: Request, settings: Settings, changes: Mapping[str, Any] | None
) -> MultiConversation | None:
    """Return how to answer a request, None if it is no `_msearch` or none of its searches is collapsed."""
    path = _PATH.fullmatch(request.path)
    given = _lines(request.body) if path else []
    lines = parsed(given)
    if path is None or not lines or len(lines) % 2:
        return None
    headers, bodies = lines[::2], lines[1::2]
    of_url = {name: value for name, value in request.params.items() if name not in _OF_ALL}
    whose = dict(request.headers)
    if isinstance(kind := whose.get("content-type"), str):
        whose["content-type"] = media_type(kind, lines=False)  # as of a search alone, by the same caller
    searches = [
        replace(
            request,
            method="POST",
            path=_target(header, path["index"] or ""),
            params={**of_url, **_params(header)},
            headers=whose,
            body=body,
        )
        for header, body in zip(headers, bodies, strict=True)
    ]
    conversations = [
        conversation(search, settings, changes) if _is_understood(header) else None
        for header, search in zip(headers, searches, strict=True)
    ]
    if not any(conversations) and not any("ndd" in body for body in bodies):
        return None
    plain = [without_key(search) for search in searches]  # also if the path of a search cannot name its index
    pairs = zip(given[::2], given[1::2], strict=True)
    unchanged = [pair if same is search else None for pair, same, search in zip(pairs, plain, searches, strict=True)]
    return MultiConversation(request, headers, plain, conversations, unchanged)


def _is_understood(header: Line) -> bool:
    """Return whether a header line has known keys only, and names its indexes in one way."""
    indexes = [header[name] for name in ("index", "indices") if name in header]
    named = all(
        (isinstance(one, str) or (isinstance(one, list) and all(isinstance(name, str) for name in one))) and one
        for one in indexes
    )
    return named and len(indexes) < 2 and _HEADERS.issuperset(header)


def _target(header: Line, of_all: str) -> str:
    """Return the path of one search. of_all: the index in the request's own path with its slash, "" for none."""
    given = header.get("index", header.get("indices"))
    names = ",".join(map(str, given)) if isinstance(given, list) else given
    return f"/{names}/_search" if names else f"{of_all}/_search"


def _params(header: Line) -> Line:
    return {name: value for name, value in header.items() if name not in ("index", "indices")}


def _lines(body: Any) -> list[Any]:
    """Return the lines of NDJSON, with the empty ones between others: engines read these as headers without keys.

    There are none in what is neither text nor a list.
    """
    with suppress(UnicodeDecodeError):
        text = body.decode() if isinstance(body, bytes) else body
        if isinstance(text, str):  # splitlines would split at U+2028 in a query
            return text.removesuffix("\n").removesuffix("\n").split("\n")
    return list(body) if isinstance(body, list | tuple) else []


def parsed(lines: list[Any]) -> list[Line]:
    """Return the JSON objects of lines, none if one is empty, no object, or cannot be written again as it is read.

    It cannot if it names a key twice, nests too deep, or holds a number like 1e400.
    """
    try:
        found = [_read(one) if isinstance(one, str | bytes) else one for one in lines]
    except (ValueError, RecursionError):
        return []
    return found if all(isinstance(line, dict) for line in found) else []


def _read(line: str | bytes) -> Any:
    return json.loads(line, object_pairs_hook=unique, parse_float=_finite)


def _finite(text: str) -> float:
    """Return a number. Raises ValueError for one that Python would write as Infinity, which is no JSON."""
    if isinf(number := float(text)):
        raise ValueError(f"{text} is too large")
    return number


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object. Raises ValueError if a key is named twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is named twice")
    return members


def _unchanged(search: Request) -> Asking[Answer]:
    """Send a search that is left alone."""
    return (yield search)


def _are_responses(given: Any, count: int) -> TypeGuard[list[Line]]:
    return isinstance(given, list) and len(given) == count and all(isinstance(response, dict) for response in given)


def _answers_of(requests: Mapping[int, Request], responses: list[Line], cut: CutSketches) -> dict[int, Answer]:
    """Return the answer to each search. cut: the sketches that were cut out of the responses."""
    answers: dict[int, Answer] = {}
    start = 0
    for place, request in requests.items():
        end = start + max(1, len(request.parts))
        own, cuts = responses[start:end], cut[start:end]
        single = Answer(own[0], status_in(own[0]), raw=own[0], cut=cuts)
        answers[place] = Answer({"responses": own}, cut=cuts) if request.parts else single
        start = end
    return answers


def _advance(flows: list[Flow], results: Mapping[int, Answer | Exception | None], done: dict[int, Line]) -> Requests:
    """Resume each flow with its result and return the next requests. The responses of ended flows go into `done`."""
    requests: dict[int, Request] = {}
    for place, result in results.items():
        try:
            requests[place] = _resume(flows[place], result)
        except StopIteration as finished:
            done[place] = _response_item(finished.value)
        except Exception as error:
            if error is not result:
                raise
            done[place] = _response_item(error)  # a failed search does not fail the others
    return requests


def _response_item(answer: Answer | Exception) -> Line:
    """Return one item of `responses`: the answer, or an error in the engine's shape if it is no JSON of the engine."""
    if isinstance(answer, Exception):
        status = getattr(answer, "status_code", None)
        answer = Answer(answer, status if isinstance(status, int) else HTTPStatus.SERVICE_UNAVAILABLE)
    elif isinstance(answer.body, dict) and (answer.ok or "error" in answer.body):
        return {"status": int(answer.status), **answer.body}
    return error_of(type(answer.body).__name__, str(answer.body), answer.status)


def _resume(flow: Flow, result: Answer | Exception | None) -> Request:
    """Resume a flow and return its next request. result: None to start it. Raises StopIteration when it ends."""
    if result is None:
        return next(flow)
    return flow.throw(result) if isinstance(result, Exception) else flow.send(result)
