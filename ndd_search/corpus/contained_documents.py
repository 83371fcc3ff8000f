"""Documents that a longer one holds word for word, as a reply holds the mails that it quotes."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from ndd_search.core.matching.contained_texts import normalised, place_of, possible_containers
from ndd_search.core.matching.similar_pairs import overlaps
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.corpus.collection_pairs import Effort, Led
from ndd_search.corpus.guard_columns import Guards

_QUOTED = re.compile(r"^(?:[ \t]{0,4}[>＞] ?)+", re.MULTILINE)
_BETWEEN_PARAGRAPHS = re.compile(r"\n\s*\n")


def most_inclusive(sketches: Sketches, texts: Mapping[int, str], guards: Guards, recipe: Recipe) -> Led:
    """Let each document join the longest one in which its paragraphs stand word for word, in their order.

    Marks of quotes (">"), case, white space and what stands between the paragraphs do not matter. Of equal texts the
    first one leads. Pairs are found by the sketches and verified in the texts: a text that holds few values of a sketch
    of a much longer one may be missed, and stands alone.
    texts: by place; a document without one stands alone.
    """
    split = {place: _paragraphs(text) for place, text in texts.items()}
    wholes = [" ".join(split.get(place, ())) for place in range(len(sketches))]
    first: dict[object, int] = {}
    leader = [
        first.setdefault((whole, key), place) if whole and (key := guards.key(place)) is not None else place
        for place, whole in enumerate(wholes)
    ]
    lengths = [len(whole) for whole in wholes]
    possible = possible_containers(list(sketches), lengths, recipe)
    compared = 0
    for place in sorted(possible, key=lambda place: -lengths[place]):  # a longer one has its leader by then
        longer = {leader[one] for one in possible[place]} if leader[place] == place else ()
        for one in sorted(longer, key=lambda one: (-lengths[one], one)):
            compared += 1
            if guards.allow(np.array([place]), np.array([one])).all() and _holds(wholes[one], split[place]):
                leader[place] = one
                break
    leaders = np.array(leader, np.int64)
    leaders = leaders[leaders]  # of equal texts the first one may have joined another
    alike = overlaps(rows_of(sketches, recipe.k), np.arange(len(leaders)), leaders, None).resemblance
    return Led(leaders, alike, Effort(len(wholes), compared, compared, 0))


def _paragraphs(text: str) -> list[str]:
    pieces = _BETWEEN_PARAGRAPHS.split(_QUOTED.sub("", text))
    return [whole for piece in pieces if (whole := normalised(piece))]


def _holds(long: str, paragraphs: list[str]) -> bool:
    end = 0
    for one in paragraphs:
        if (at := place_of(one, long, end)) < 0:
            return False
        end = at + len(one)
    return True
