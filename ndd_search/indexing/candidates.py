"""Near-duplicates of one document in a whole index, found by the keys stored beside the sketches.

The keys are the smallest values of a sketch, as terms. Two documents that resemble each other share some of them, so
the engine's inverted index hands out the few documents worth comparing, and their full sketches decide.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.config import CollapseOptions, Measure, Recipe
from ndd_search.decision import Decision
from ndd_search.engines.answers import reason_of
from ndd_search.engines.hook import options
from ndd_search.errors import IndexUnusable
from ndd_search.estimators import similar_pairs
from ndd_search.field import SketchField, keys_of
from ndd_search.guards import long_enough
from ndd_search.indexing.patience import BUSY, Busy, Patience
from ndd_search.indexing.scan import snapshot
from ndd_search.pairs import rows_of
from ndd_search.sketches import Sketch, sketch

_MISSED = 0.01  # of the documents exactly at the bar, the share that may share too few keys to be looked at
_AT_ONCE = 100  # searches in a request


@dataclass(frozen=True)
class Candidate:
    """A document that resembles the one asked about. similarity: by the recipe's measure, 0..1."""

    id: str
    index: str
    similarity: float


@dataclass(frozen=True, kw_only=True)
class CandidateSearch:
    """How near-duplicates are looked for in a whole index.

    recipe, field: of the stored sketches.
    keys:           how many of the smallest values are asked for, at most as many as were stored, 1..64.
    min_similarity: from when on a document counts, as in CollapseOptions: a resemblance, 0 < x <= 1, or a name.
    min_shingles:   below this many shingles only an identical sketch counts; more than on a page, where a hidden hit is
                    still listed.
    examined:       the most documents compared, 1..10,000; those that share most keys come first.
    """

    recipe: Recipe = dataclasses.field(default_factory=Recipe)
    field: str = "ndd"
    keys: int = 8
    min_similarity: float | str = 0.5
    min_shingles: int = 8
    examined: int = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", Recipe.of(self.recipe))
        _ = self._options  # checks them
        for name, least, most in (("keys", 1, 64), ("examined", 1, 10_000)):
            if not least <= getattr(self, name) <= most:
                raise ValueError(f"{name} must be {least}..{most}, got {getattr(self, name)}")

    @property
    def _options(self) -> CollapseOptions:
        return CollapseOptions(min_similarity=self.min_similarity, min_shingles=self.min_shingles)

    @property
    def _decision(self) -> Decision:
        return Decision.of(self._options.min_similarity, self.recipe)

    def body(self, wanted: Sketch, *, only_leaders: bool = False) -> dict[str, Any]:
        """The search request. only_leaders: without documents marked as somebody's duplicate."""
        where = SketchField(self.field)
        keys = keys_of(wanted.tolist(), self.keys)
        terms = [{"constant_score": {"filter": {"term": {where.keys: key}}}} for key in keys]
        query: dict[str, Any] = {
            "should": terms,
            "minimum_should_match": self.needed(len(keys)),
            "filter": [{"term": {where.recipe: self.recipe.id}}],
        }
        if only_leaders:
            query["must_not"] = [{"exists": {"field": where.duplicate_of}}]
        return {
            "query": {"bool": query},
            "size": self.examined,
            "_source": False,
            "docvalue_fields": [where.sketch, where.recipe],
            "track_total_hits": False,
        }

    def needed(self, keys: int) -> int:
        """How many of a document's keys another one must have to be worth comparing."""
        decision = self._decision
        if decision.measure == "cosine":
            return 1  # block, for at most three bits; farther ones are found as far as they share one
        return shared_keys(keys, decision.floor, self.recipe.measure)

    def verified(self, wanted: Sketch, hits: Sequence[dict[str, Any]]) -> list[Candidate]:
        """Those of the engine's hits whose sketches resemble the wanted one, most similar first."""
        decoded = SketchField(self.field).decode([hit.get("fields", {}) for hit in hits], self.recipe)
        known = [(hit, found) for hit, found in zip(hits, decoded, strict=True) if not isinstance(found, str)]
        similarity = self.similarities(wanted, [found for _, found in known])
        order = sorted(np.flatnonzero(similarity).tolist(), key=lambda i: -similarity[i])
        return [Candidate(known[i][0]["_id"], known[i][0]["_index"], float(similarity[i])) for i in order]

    def similarities(self, wanted: Sketch, others: Sequence[Sketch]) -> npt.NDArray[np.float64]:
        """The resemblance to each of the others, 0.0 where it does not count; float64, shape (len(others),)."""
        rows = rows_of([wanted, *others], self.recipe.k)
        pairs = similar_pairs(rows, self._decision)
        pairs = pairs.where(pairs.first == 0)
        pairs = pairs.where(long_enough(pairs, rows, self._options.min_shingles))
        found = np.zeros(len(others))
        found[pairs.second - 1] = pairs.similarity
        return found


def find_duplicates(
    client: Any, index: str, document: str | npt.ArrayLike, *, size: int = 10, **settings: Any
) -> list[Candidate]:
    """The documents of an index that resemble a text or a sketch, most similar first; at most `size`.

    client:   of elasticsearch-py or opensearch-py, synchronous. index: must have keys, see index_templates/.
    settings: of CandidateSearch: recipe, field, keys, min_similarity, min_shingles, examined.
    A document that is in the index finds itself too. Documents indexed a moment ago are found after the next refresh.
    """
    search = CandidateSearch(**settings)
    wanted = sketch(document, search.recipe) if isinstance(document, str) else np.asarray(document, np.int32)
    return resembling(client, index, wanted, search)[0][:size]


def resembling(client: Any, index: str, wanted: Sketch, search: CandidateSearch) -> tuple[list[Candidate], bool]:
    """All that resemble a sketch, most similar first; and whether all that may were compared.

    Where there are more than `examined`, those that share fewest keys with it were not.
    """
    if not len(wanted):
        return [], True
    with options(enabled=False):  # a wrapped client would collapse what we are looking for
        hits = client.search(index=index, body=search.body(wanted))["hits"]["hits"]
    return search.verified(wanted, hits), len(hits) < search.examined


def all_duplicates(client: Any, index: str, search: CandidateSearch) -> Iterator[tuple[str, Candidate]]:
    """Every pair of resembling documents: the id of one, and the other as a candidate, which comes after it by id.

    Documents of one id, of several indexes, come in the order of those.

    client: synchronous. One search for each document of the index, sent 100 at a time, and again while the server is
    busy. Raises IndexUnusable for a search that the server refuses.
    """
    where = SketchField(search.field)
    request = {
        "query": {"term": {where.recipe: search.recipe.id}},
        "_source": False,
        "docvalue_fields": [where.sketch, where.recipe],
    }
    patience = Patience()
    with snapshot(client, index, patience) as now:
        for hits in now.pages(request, _AT_ONCE):
            found = where.decode([hit.get("fields", {}) for hit in hits], search.recipe)
            known = [(hit, one) for hit, one in zip(hits, found, strict=True) if not isinstance(one, str)]
            if not known:
                continue
            header = {"index": index, "allow_partial_search_results": False}
            lines = [line for _, one in known for line in (header, search.body(one))]
            responses = patience.call(partial(_responses, client, index, lines))
            for (hit, one), response in zip(known, responses, strict=True):
                for candidate in search.verified(one, response["hits"]["hits"]):
                    if (candidate.id, candidate.index) > (hit["_id"], hit["_index"]):
                        yield hit["_id"], candidate


def _responses(client: Any, index: str, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers to a multi search, all of them. Raises Busy or IndexUnusable where one is missing."""
    with options(enabled=False):
        responses: list[dict[str, Any]] = client.msearch(body=lines)["responses"]
    for one in responses:
        if one.get("status") in BUSY:
            raise Busy(index, "the server was too busy for minutes", "run the same again later")
        if "hits" not in one:
            raise IndexUnusable(index, f"the server refuses a search: {reason_of(one)}", "see whether it has keys")
    return responses


def shared_keys(keys: int, min_similarity: float, measure: Measure = "kmv") -> int:
    """How many of its keys a document must share with another to be worth comparing, 1..keys.

    Two documents of resemblance J have each of their smallest values in common with probability 2J / (1 + J), and of
    overlap b with probability b; the number returned is the largest that at most 1 % of the documents at the bar fall
    short of.
    """
    share = min_similarity if measure == "overlap" else 2 * min_similarity / (1 + min_similarity)
    short = 0.0
    for needed in range(1, keys + 1):
        short += comb(keys, needed - 1) * share ** (needed - 1) * (1 - share) ** (keys - needed + 1)
        if short > _MISSED:
            return max(needed - 1, 1)
    return keys
