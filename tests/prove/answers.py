"""Answers that no engine gives: one answer of each case is changed, and no error of ours is raised, no hit is lost.

The answer to one request (a search, an `_msearch`, a point in time, a sample, the stored table, what an option needs)
gets another status or another body, loses or repeats members, or holds values of other types; or its request raises an
error. All other answers are as the engine gives them. Errors of the client pass through, if the caller's own request
raised them. In other cases no answer is changed, but a document cannot be fetched: the caller gets at least what his
own request gets.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import Any

from ndd_search.errors import CursorExpired, CursorUnusable
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request
from tests.prove.engine import INDEX, Engine, read_by_client
from tests.prove.pages import SEARCH, listed
from tests.prove.world import Case, World, options_of, recipe_of

VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**70), 1.5, 1e308, float("inf"), "", "x", "7", "\ud800",
    [], [[]], [None], [-1], [2**31], ["x"], {}, {"hits": 5}, {"hits": {"hits": None}}, {"": {"": []}}, [{}], [1, 1],
    {"value": "x"},
]  # fmt: skip
BODIES: list[Any] = [None, "", "<html>upstream connect error</html>", [], 5, {}, {"error": "x", "status": 500}]
STATUSES = [200, 200, 201, 301, 400, 401, 403, 404, 408, 413, 418, 429, 500, 502, 503, 504]
ASKED: list[dict[str, Any]] = [
    {}, {"total": "estimate"}, {"explain": ["d1", "d9", "none"]}, {"seen": [{"_id": "d2"}, {"_id": "d5"}]},
    {"members": "all"}, {"total": "estimate", "explain": ["d30"], "members": "all"},
]  # fmt: skip
NOT_WITH_MEMBERS = "max_per_group", "total"
OWN_ERRORS = CursorExpired, CursorUnusable


class Refused(Exception):
    """An error as a client raises it. status_code: of the answer, None without one."""

    def __init__(self, status: int | None) -> None:
        super().__init__("refused")
        self.status_code = status


def draw(rng: random.Random) -> Case:
    """Draw an index, a way to search it, and what becomes of one answer."""
    world = World.of(rng)
    options = world.options("mode", "max_window", "keep")
    options["mode"] = rng.choice(["group", "annotate"])
    how = rng.choice(["search", "search", "msearch", "cursor"])
    asked = rng.choice(ASKED) if how == "search" else {"members": "all"} if how == "cursor" else {}
    if "members" in asked:
        options = {name: value for name, value in options.items() if name not in NOT_WITH_MEMBERS} | {"mode": "group"}
    return {
        "documents": world.documents(40), "options": options, "k": world.k,
        "how": how, "asked": asked, "size": rng.choice([3, 10, 60]),
        "stored": rng.random() < 0.5, "counts": rng.random() < 0.5, "cache": rng.random() < 0.5,
        "at": rng.choice([0, 0, 0, 1, 1, 2, 3]), "times": rng.choice([1, 1, 2, 5]),
        "kind": rng.choice(["value", "value", "value", "body", "status", "error", "fetch", "fetch"]),
        "seed": rng.randrange(10**9),
    }  # fmt: skip


def check(case: Case) -> Counter[str]:
    """Search with one changed answer. Raises whatever the search raises, AssertionError if a hit is lost."""
    return _Search(case).check()


class _Search:
    def __init__(self, case: Case) -> None:
        self.case = case
        recipe = recipe_of(case["k"])
        self.engine = Engine(recipe.id)
        for one in case["documents"]:
            self.engine.write(one)
        settings = {
            "recipe": recipe, "cache": case["cache"], "frequency_table": case["counts"],
            **options_of(case),
        }  # fmt: skip
        if case["stored"] and case["counts"]:
            self.engine.store_table()
        self.driver = Driver(settings_of(**settings))
        self.driver.settings.bypass_seconds = 0.0
        if case["kind"] == "fetch" and self.engine.documents:
            rng = random.Random(case["seed"])
            self.engine.unreadable, self.engine.shards = {rng.choice(list(self.engine.documents))}, rng.choice([1, 2])
        self.sent = 0
        self.pages: list[list[Any]] = []  # the hits of each answer to a search of whole documents
        self.changed: Any = None  # the answer that was changed
        self.raised: Exception | None = None

    def check(self) -> Counter[str]:
        how, size = self.case["how"], self.case["size"]
        search = {**SEARCH, "size": size, "ndd": self.case["asked"] or True}
        if self.case["kind"] == "fetch":
            return self._fetched(search)
        try:
            if how == "search":
                self._holds(self._ask("_search", search), size)
            elif how == "msearch":
                self._ask("_msearch", [{"index": INDEX}, search, {"index": INDEX}, {**search, "from": 2}])
            else:
                cursor: Any = True
                for _ in range(2 * len(self.engine.documents) + 5):
                    answer = self._ask("_search", {**search, "ndd": {**self.case["asked"], "cursor": cursor}})
                    cursor = answer["ndd"]["cursor"] if isinstance(answer, dict) and "ndd" in answer else None
                    if not cursor:
                        break
                else:
                    raise AssertionError("a cursor does not end")
        except Refused:
            assert self.case["at"] <= ("seen" in self.case["asked"]) or how == "cursor" or self._was_own, (
                "a later request failed the search"
            )
            return Counter({"errors of the client": 1})
        except OWN_ERRORS:
            assert how == "cursor"
            return Counter({"documented errors": 1})
        return Counter({"changed answers": int(self.changed is not None), "searches": 1})

    def _fetched(self, search: dict[str, Any]) -> Counter[str]:
        """Search once where a document cannot be fetched."""
        plain = self.engine.send(Request("POST", f"/{INDEX}/_search", {}, {}, {**SEARCH, "size": search["size"]}))
        needed = {_id(hit) for hit in _hits(plain.body)}
        try:
            match self.case["how"]:
                case "msearch":
                    answer = self._ask("_msearch", [{"index": INDEX}, search, {"index": INDEX}, search])["responses"][1]
                case "cursor":
                    answer = self._ask("_search", {**search, "ndd": {**self.case["asked"], "cursor": True}})
                case _:
                    answer = self._ask("_search", search)
        except OWN_ERRORS:
            assert self.case["how"] == "cursor"
            assert not plain.whole
            return Counter({"documented errors": 1})
        lost = needed - self._held(answer)
        assert not lost, f"lost: {lost}"
        return Counter({"changed answers": 1, "searches": 1})

    def _ask(self, path: str, body: Any) -> Any:
        return self.driver.handle(Request("POST", f"/{INDEX}/{path}", {}, {}, body), self._send).body

    def _send(self, request: Request) -> Answer:
        answer = self.engine.send(request)
        body = copy.deepcopy(answer.body)
        answer = Answer(body, answer.status, raw=body)
        number, self.sent = self.sent, self.sent + 1
        if number == self.case["at"] and self.case["kind"] != "fetch":
            self._was_own = "docvalue_fields" not in str(request.body)
            answer = self._harmed(answer)
            self.changed = answer
        self._remember(request, answer)
        return read_by_client(request, answer)

    def _remember(self, request: Request, answer: Answer) -> None:
        """Note the hits that came with documents; in an `_msearch` of ours, those of the first search."""
        if request.path not in (f"/{INDEX}/_search", f"/{INDEX}/_msearch") or not answer.ok:
            return
        searches, body = [request.body], answer.body
        if isinstance(request.body, list):
            searches = request.body[1::2]
            responses = body.get("responses") if isinstance(body, dict) else None
            body = responses[0] if isinstance(responses, list) and responses else None
        if searches[0].get("_source") is not False:
            self.pages.append(_hits(body))

    def _harmed(self, answer: Answer) -> Answer:
        rng = random.Random(self.case["seed"])
        match self.case["kind"]:
            case "error":
                self.raised = Refused(rng.choice([None, None, *STATUSES]))
                raise self.raised
            case "body":
                return Answer(copy.deepcopy(rng.choice(BODIES)), rng.choice(STATUSES))
            case "status":
                return Answer(answer.body, rng.choice(STATUSES), raw=answer.body)
        body = answer.body
        for _ in range(self.case["times"]):
            body = changed(body, rng)
        return Answer(body, answer.status, raw=body)

    def _holds(self, answer: Any, size: int) -> None:
        """The first hits of an answer that the page can have been made of are shown or listed."""
        if self.changed is not None and answer == self.changed.body:
            return
        held = self._held(answer)
        possible = [{_id(hit) for hit in page[:size]} - {None} for page in self.pages]
        first = 1 if "seen" in self.case["asked"] else 0
        if self.case["at"] > first:  # the first search for hits was answered as it should be
            possible = possible[:1]
        assert not possible or any(needed <= held for needed in possible), f"lost: {[one - held for one in possible]}"

    def _held(self, answer: Any) -> set[str | None]:
        """The ids that an answer shows or lists."""
        held = {_id(one) for hit in _hits(answer) for one in (hit, *_copies(hit))}
        if isinstance(answer, dict) and isinstance(answer.get("ndd"), dict):
            held |= {one["_id"] for name in ("late", "seen") for one in answer["ndd"].get(name, [])}
        return held


def changed(body: Any, rng: random.Random) -> Any:
    """Return a JSON value with one part changed: another value, left out, repeated, cut short, or one level deeper."""
    if rng.random() < 0.15 or not isinstance(body, dict | list) or not body:
        return [body] if rng.random() < 0.1 else copy.deepcopy(rng.choice(VALUES))
    if isinstance(body, dict):
        name = rng.choice(list(body))
        if rng.random() < 0.1:
            return {other: value for other, value in body.items() if other != name}
        return {**body, name: changed(body[name], rng)}
    place = rng.randrange(len(body))
    before, one, rest = body[:place], body[place], body[place + 1 :]
    others: list[list[Any]] = [before, [*before, *rest], [*body, copy.deepcopy(one)]]
    return rng.choice(others) if rng.random() < 0.3 else [*before, changed(one, rng), *rest]


def _hits(body: Any) -> list[Any]:
    found = body.get("hits") if isinstance(body, dict) else None
    hits = found.get("hits") if isinstance(found, dict) else None
    return [one for one in hits if isinstance(one, dict)] if isinstance(hits, list) else []


def _id(hit: Any) -> str | None:
    id = hit.get("_id")
    return id if isinstance(id, str) else None


def _copies(hit: Any) -> list[Any]:
    inner = hit.get("inner_hits")
    return listed(hit) if isinstance(inner, dict) and "near_duplicates" in inner else []
