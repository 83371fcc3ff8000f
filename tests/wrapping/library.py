"""The documents that wrapped clients are tested on, and what a search for them ought to give."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ndd_search as ndd
from ndd_search.core.sketching import sketch_many
from ndd_search.core.sketching.estimate_similarity import standard_error
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.core.text.shingles import shingle_texts
from ndd_search.search.rest.mapping import mapping_properties
from tests.engines.find import Engine

RECIPE = ndd.Recipe()
BAR = 0.6  # min_similarity of these tests
FORMS = 150  # documents that fill one form
CHANGED = (0.01, 0.02, 0.25)  # share of words changed in each copy: resemblance about 0.94, 0.89 and 0.27
STORIES = 60
DIMENSIONS = 8

FIELDS: dict[str, Any] = {
    "title": {"type": "text"},
    "body": {"type": "text"},
    "site": {"type": "keyword"},
    "language": {"type": "keyword"},
    "price": {"type": "integer"},
    "published": {"type": "date"},
}
VECTOR = {"type": "dense_vector", "dims": DIMENSIONS, "index": True, "similarity": "cosine"}


@cache
def documents() -> tuple[dict[str, Any], ...]:
    """Every story with 0..3 copies, some words changed in each; every tenth has a copy whose case is open."""
    rng = random.Random(4)
    words = [
        f"{a}{b}{c}" for a in ("ka", "lo", "mi", "re", "su") for b in ("ban", "dor", "fel", "gim") for c in range(40)
    ]
    made = []
    for story in range(STORIES):
        original = [rng.choice(words) for _ in range(rng.randrange(70, 130))]
        vector = [rng.gauss(0, 1) for _ in range(DIMENSIONS)]
        shares = [0.0, *CHANGED[: story % 4], *([0.10] if story % 10 == 0 else [])]
        for copy, share in enumerate(shares):
            body = [rng.choice(words) if rng.random() < share else word for word in original]
            body += ["market"] * rng.choice((1, 1, 2))
            made.append(
                {
                    "_id": f"{story}-{copy}",
                    "title": f"story {story} from the market" if story % 3 else f"report {story}",
                    "body": " ".join(body),
                    "site": f"site{rng.randrange(45)}",
                    "language": "en" if rng.random() < 0.7 else "de",
                    "price": rng.randrange(25),
                    "published": f"2024-{story % 12 + 1:02}-{rng.randrange(1, 28):02}T12:00:00Z",
                    "vector": [round(value + rng.gauss(0, 0.01), 5) for value in vector],
                }
            )
    rng.shuffle(made)
    return tuple(made)


def text_of(document: Mapping[str, Any]) -> str:
    """What is sketched."""
    return f"{document['title']}\n{document['body']}"


@cache
def shingles() -> dict[str, frozenset[str]]:
    """Every document's full set of shingles, by id."""
    return {one["_id"]: frozenset(shingle_texts(text_of(one), RECIPE)) for one in documents()}


@cache
def jaccard(a: str, b: str) -> float:
    """The true resemblance of two documents."""
    one, other = shingles()[a], shingles()[b]
    return len(one & other) / len(one | other)


def actions(
    index: str, engine: Engine, recipe: ndd.Recipe | None = RECIPE, where: Sequence[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Bulk actions, with sketches of a recipe or, for None, without."""
    chosen = where or documents()
    sketches = sketch_many([text_of(one) for one in chosen], recipe or RECIPE)
    made = []
    for document, sketch in zip(chosen, sketches, strict=True):
        source = {key: value for key, value in document.items() if key != "vector" or engine.family == "elasticsearch"}
        made.append(
            {
                "_index": index,
                **source,
                **({"ndd": SketchField().encode(sketch, recipe, text=("title", "body"))} if recipe else {}),
            }
        )
    return made


def mapping(engine: Engine, sketches: bool = True) -> dict[str, Any]:
    """Settings and mapping of an index: two shards, so that an order is made of two."""
    fields = {**FIELDS, **({"vector": VECTOR} if engine.family == "elasticsearch" else {})}
    return {
        "settings": {"number_of_shards": 2, "number_of_replicas": 0},
        "mappings": {"properties": {**fields, **(mapping_properties() if sketches else {})}},
    }


@dataclass(frozen=True)
class Expected:
    """What true resemblance makes of a ranked list.

    leader:   of each id, the id that stands for it.
    doubtful: ids whose case is within three standard errors of the bar, or hangs on one that is.
    """

    leader: Mapping[str, str]
    doubtful: frozenset[str] = field(default_factory=frozenset)

    @property
    def kept(self) -> list[str]:
        """The ids to show, in order, where there is no doubt."""
        return [one for one, leader in self.leader.items() if one == leader and one not in self.doubtful]


def expected(ranked: Sequence[str], lacking: Sequence[str] = (), bar: float = BAR) -> Expected:
    """Collapse a ranked list of ids by true resemblance. lacking: ids without a sketch, which stand alone."""
    leader: dict[str, str] = {}
    doubtful = set()
    error = standard_error(bar, RECIPE.k)
    for place, one in enumerate(ranked):
        leader[one] = one
        if one in lacking:
            continue
        for other in ranked[:place]:
            if other in lacking:
                continue
            similarity = jaccard(one, other)
            if abs(similarity - bar) < 3 * error or (similarity >= bar and other in doubtful):
                doubtful.add(one)
            elif similarity >= bar and leader[other] == other and leader[one] == one:
                leader[one] = other
    return Expected(leader, frozenset(doubtful))


def form(number: int) -> dict[str, Any]:
    """A document that fills the form that all of them fill: half of its words are its own."""
    rng = random.Random(number)
    own = [f"own{rng.randrange(100_000)}" for _ in range(20)]
    words = [f"field{place} says {own[place]} here" for place in range(20)]
    return {"_id": str(number), "title": "a form", "body": " ".join(["market", *words]), "price": number}
