"""Finds the near-duplicates of one document in a whole index by the keys stored beside the sketches.

The keys are the smallest values of a sketch, indexed as terms. Documents that resemble each other share some of them.
So the engine's inverted index returns the few candidates, and their full sketches are compared.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.guards import long_enough
from ndd_search.core.matching.similar_pairs import as_compared
from ndd_search.core.matching.similarity_measures import similar_pairs
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.options import KINDS
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import Whole, check_whole, checked, setting
from ndd_search.core.sketching.sketches import Sketch, sketch
from ndd_search.core.sketching.stored_sketch import STALE, SketchField
from ndd_search.errors import IndexUnusable, RecipeMismatch
from ndd_search.indexing.index_facts import check_synchronous
from ndd_search.indexing.rate_and_retries import status_of
from ndd_search.search.flow.client_settings import options
from ndd_search.search.index_rules import OfRecipe
from ndd_search.search.rest.stored_keys import looked_up, needed_keys, shares_keys

_RECIPES = 20  # recipes of one index that are named
MOST_EXAMINED = 10_000  # documents compared with one; the default max_result_window of the engines
_MOST = MOST_EXAMINED  # duplicates that are asked for
_FACTOR = 2  # of the least shingles of a page: what is hidden there is still listed
_NOT_ALL_COMPARED = (
    f"only the {MOST_EXAMINED:,} documents that share most keys with it were compared: there may be more that "
    "resemble it; a higher min_similarity asks for more shared keys"
)

logger = logging.getLogger("ndd_search")


@dataclass(frozen=True)
class Candidate:
    """A document that resembles the given one. similarity: 0..1, by the measure of the recipe."""

    id: str
    index: str
    similarity: float


@checked
@dataclass(frozen=True, kw_only=True)
class CandidateSearch:
    """Settings of a search for near-duplicates in a whole index.

    recipe, field: of the stored sketches.
    keys:           number of keys in the query, 1..64, at most as many as were stored.
    min_similarity: the least similarity of a duplicate, as in CollapseOptions: a resemblance, 0 < x <= 1, or a name.
    examined:       the most documents compared, 1..10,000; those that share most keys come first.
    """

    recipe: Recipe = setting(OfRecipe(Recipe()), Recipe())
    field: str = "ndd"
    keys: int = setting(Whole(1, 64), 8)
    min_similarity: float | str = setting(KINDS["min_similarity"], 0.5)
    examined: int = setting(Whole(1, MOST_EXAMINED), 100)

    def __post_init__(self) -> None:
        looked_up(np.zeros(1, np.int32), 1, self.decision)  # refuses bits that keys do not find
        if self.recipe.method == "simhash":
            object.__setattr__(self, "keys", max(self.keys, self.recipe.k))

    @property
    def decision(self) -> Decision:
        """Decides whether two sketches resemble each other."""
        return Decision.of(self.min_similarity, self.recipe)

    def body(self, wanted: Sketch) -> dict[str, Any]:
        where = SketchField(self.field)
        return {
            "query": {"bool": shares_keys(wanted, self.keys, self.decision, where, self.recipe)},
            "size": self.examined,
            "_source": False,
            "docvalue_fields": where.read,
            "track_total_hits": False,
        }

    def needed(self, keys: int) -> int:
        """The number of keys that a document must share with the given one to be compared."""
        return needed_keys(keys, self.decision)

    def verified(self, wanted: Sketch, hits: Sequence[dict[str, Any]]) -> list[Candidate]:
        """Keep the hits whose sketches resemble the wanted one, most similar first."""
        decoded = SketchField(self.field).decode(hits, self.recipe)
        known = [(hit, sketch) for hit, sketch in zip(hits, decoded, strict=True) if not isinstance(sketch, str)]
        similarity = self.similarities(wanted, [sketch for _, sketch in known])
        order = sorted(np.flatnonzero(similarity).tolist(), key=lambda i: -similarity[i])
        return [Candidate(known[i][0]["_id"], known[i][0]["_index"], float(similarity[i])) for i in order]

    def similarities(self, wanted: Sketch, others: Sequence[Sketch]) -> npt.NDArray[np.float64]:
        """The resemblance to each other sketch, 0.0 below min_similarity; float64, shape (len(others),)."""
        rows = rows_of(as_compared([wanted, *others], self.recipe.k, self.decision), self.recipe.k)
        pairs = similar_pairs(rows, self.decision)
        pairs = pairs.where((pairs.first == 0) & long_enough(pairs, rows, _FACTOR * self.recipe.min_shingles))
        similarities = np.zeros(len(others))
        similarities[pairs.second - 1] = pairs.similarity
        return similarities


def find_duplicates(
    client: Any,
    index: str,
    document: str | npt.ArrayLike,
    *,
    size: int = 10,
    recipe: Recipe | str | None = None,
    **settings: Any,
) -> list[Candidate]:
    """Return the documents of an index that resemble a text or a sketch, most similar first; at most `size`.

    client:   of elasticsearch-py or opensearch-py, synchronous. index: must have keys, see index_templates/.
    size:     1..10,000. Documents are compared until this many are found, but at most 10,000; a warning is logged if
              there may be more. Those that share most keys with the given one are compared first.
    recipe:   of the sketches; by default the one that the index stores.
    settings: of CandidateSearch: field, keys, min_similarity, examined.
    A document that is in the index finds itself too. New documents are found after the next refresh.
    Raises TypeError for a document that is neither, IndexUnusable if the index maps no keys, RecipeMismatch if all its
    sketches are of other recipes.
    """
    check_synchronous(client)
    check_whole("size", size, 1, _MOST)
    if not isinstance(document, str | Sequence | np.ndarray):
        raise TypeError(f"find_duplicates takes a text or a sketch, got {type(document).__name__}")
    search = CandidateSearch(recipe=Recipe.of(recipe), **settings)
    if recipe is None:
        search = replace(search, recipe=stored_recipe(client, index, search.field))
    wanted = sketch(document, search.recipe) if isinstance(document, str) else np.asarray(document, np.int32)
    if not len(wanted):
        return []
    examined = min(max(search.examined, size), MOST_EXAMINED)
    while True:
        with options(enabled=False):  # a wrapped client would collapse the duplicates
            body = replace(search, examined=examined).body(wanted)
            hits = client.search(index=index, body=body)["hits"]["hits"]
        if not hits:
            _check_keys(client, index, search)
            stored_recipe(client, index, search.field, search.recipe)
        found = search.verified(wanted, hits)
        if len(hits) < examined or len(found) >= size:
            return found[:size]
        if examined == MOST_EXAMINED:
            logger.warning("find_duplicates: %s", _NOT_ALL_COMPARED)
            return found[:size]
        examined = min(10 * examined, MOST_EXAMINED)


def stored_recipe(client: Any, index: str, field: str, wanted: Recipe | None = None) -> Recipe:
    """Return the recipe of the sketches in an index: the wanted one if some are of it, else that of the most documents.

    field: the object that holds the sketches. Returns the wanted recipe, or the default one, if there are no sketches.
    Raises RecipeMismatch if there are sketches, and none of the wanted recipe; IndexUnusable if the recipe is not
    mapped as a keyword.
    """
    path = SketchField(field).recipe
    body = {"size": 0, "track_total_hits": False, "aggs": {"recipes": {"terms": {"field": path, "size": _RECIPES}}}}
    try:
        with options(enabled=False):
            buckets = client.search(index=index, body=body)["aggregations"]["recipes"]["buckets"]
    except Exception as error:
        if status_of(error) != 400:
            raise
        problem, remedy = f"{path} is not mapped as a keyword, so no sketch is found by it", "run ndd-search doctor"
        raise IndexUnusable(index, problem, remedy) from None
    found = [bucket["key"] for bucket in buckets if bucket["key"] != STALE]
    if wanted is not None:
        if found and wanted.id not in found:
            raise RecipeMismatch(f"index {index!r}", ", ".join(found), wanted.id)
        return wanted
    if len(found) > 1:
        logger.warning("%s holds sketches of several recipes (%s): only the first is compared", index, ", ".join(found))
    return Recipe.of(found[0] if found else None)


def _check_keys(client: Any, index: str, search: CandidateSearch) -> None:
    """Raise IndexUnusable if no index of the expression maps keys, so that nothing could be found."""
    keys = SketchField(search.field).keys
    try:
        found = client.field_caps(index=index, fields=keys)
    except Exception as error:
        if status_of(error) != 403:
            raise
        return  # a caller who may search, and no more
    if found["indices"] and keys not in found["fields"]:
        raise IndexUnusable(index, f"it has no keys ({keys})", "store them: ndd-search backfill")
