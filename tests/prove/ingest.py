"""Documents on their way into an index, while the answers to the searches for duplicates are changed: none is lost.

`with_sketches` asks a client for similar documents (`msearch`). One of its answers is changed as in `answers`, or is an
error. Every document is passed on once, or left out as a duplicate of another one if the caller leaves out all.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import ndd_search as ndd
from ndd_search.indexing.duplicate_policy import DuplicatePolicy
from tests.prove.answers import BODIES, Refused, changed
from tests.prove.world import Case

WORDS = [f"word{number}" for number in range(40)]


def draw(rng: random.Random) -> Case:
    """Draw texts with copies, some of which are stored before, and what becomes of one answer."""
    texts = [" ".join(rng.choices(WORDS, k=30)) for _ in range(4)]
    return {
        "stored": [rng.choice(texts) for _ in range(rng.randint(0, 3))],
        "given": [[f"d{rng.randrange(12)}", rng.choice(texts)] for _ in range(rng.randint(1, 8))],
        "leaves out": rng.random() < 0.5,
        "kind": rng.choice(["value", "value", "value", "body", "error"]),
        "at": rng.choice([0, 0, 1, 2, 3]), "times": rng.choice([1, 1, 3]), "whole": rng.random() < 0.5,
        "seed": rng.randrange(10**9),
    }  # fmt: skip


def check(case: Case) -> Counter[str]:
    """Pass documents through with one changed answer. Raises whatever the iteration raises."""
    client = Client(case)
    policy = DuplicatePolicy(client=client, on_duplicate=lambda _: not case["leaves out"])
    given = [{"_index": "news", "_id": id, "body": text} for id, text in case["given"]]
    actions: Any = given if case["whole"] else iter(given)
    done = ndd.with_sketches(actions, fields=["body"], keys=8, duplicates=policy)
    passed = [one["_id"] for one in done]
    missing = Counter(one["_id"] for one in given) - Counter(passed)
    assert sum(missing.values()) == done.report.skipped, f"{missing} are missing, {done.report.skipped} were skipped"
    assert not missing or case["leaves out"], f"lost: {missing}"
    texts = Counter([*case["stored"], *(text for _, text in case["given"])])
    copies = {id for id, text in case["given"] if texts[text] > 1}
    assert missing.keys() <= copies, f"skipped without a copy: {missing}"
    return Counter({"documents": len(given), "changed answers": int(client.was_changed)})


class Client:
    """Stored documents with their sketches; answers like the clients of both engines, but for one answer."""

    def __init__(self, case: Case) -> None:
        self.case, self.asked, self.was_changed = case, 0, False
        stored = [{"_index": "news", "_id": f"s{number}", "body": text} for number, text in enumerate(case["stored"])]
        self.documents = {one["_id"]: one for one in ndd.with_sketches(stored, fields=["body"], keys=8)}

    def msearch(self, body: list[Any]) -> Any:
        hits = [
            {
                "_index": "news",
                "_id": id,
                "_score": 1.0,
                "_seq_no": 5,
                "_primary_term": 1,
                "fields": dict(doc_values(one)),
            }
            for id, one in self.documents.items()
        ]
        response = {"took": 1, "hits": {"hits": hits}, "status": 200}
        return self._answer({"took": 1, "responses": [copy.deepcopy(response) for _ in body[1::2]]})

    def _answer(self, answer: Any) -> Any:
        number, self.asked = self.asked, self.asked + 1
        if number != self.case["at"]:
            return answer
        self.was_changed = True
        rng = random.Random(self.case["seed"])
        if self.case["kind"] == "error":
            raise Refused(503)
        if self.case["kind"] == "body":
            return copy.deepcopy(rng.choice(BODIES))
        for _ in range(self.case["times"]):
            answer = changed(answer, rng)
        return answer


def doc_values(document: Any) -> Iterator[tuple[str, list[Any]]]:
    """The doc values of the sketch in a document."""
    yield "ndd.sketch", list(document["ndd"]["sketch"])
    yield "ndd.recipe", [document["ndd"]["recipe"]]
