"""Compare the native core with numpy, bit for bit, on random texts and pages for a given time.

    python -m tests.fuzz [--seconds 60] [--texts 10000000] [--seed 1]

`make fuzz` does the same on a core with the sanitizers of gcc.

The property tests of Hypothesis find small examples; this tries a thousand times as many.
"""

from __future__ import annotations

import argparse
import random
import sys
import unicodedata
from functools import partial
from itertools import pairwise
from time import monotonic

import numpy as np

from benchmarks.page_kinds import sketches_of
from ndd_search import native
from ndd_search.core.matching.choose_leaders import assign_leaders
from ndd_search.core.matching.decision import Constants, Decision
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch, sketch_many
from ndd_search.core.sketching.stored_sketch import SketchField
from tests.native.both import FLOORS, both, in_frames, same_answers, same_decisions
from tests.strategies import AWKWARD

ODD = "".join(AWKWARD)
MARKS = [chr(point) for point in range(0x110000) if unicodedata.category(chr(point))[0] == "M"]
PAGE = 50  # hits
BLOCKS = [0, 0x300, 0x370, 0x400, 0x590, 0x600, 0x900, 0x980, 0xB00, 0xC00, 0xD80, 0xE00, 0xE80, 0xF00, 0x1000, 0x1100,
          0x1780, 0x1E00, 0x1F00, 0x3040, 0xAC00, 0x11000, 0x11300]  # fmt: skip


def random_text(rng: random.Random) -> str:
    """Return letters of one script and others, with more combining marks than real texts have."""
    block, marks = rng.choice(BLOCKS), rng.choice([MARKS, [chr(point) for point in range(0x300, 0x370)]])
    kinds = {
        "ab cde ": 20, "aeioıİI": 15, ODD: 30, "".join(chr(block + i) for i in range(256)): 20, "".join(marks): 20
    }  # fmt: skip
    pools = rng.choices(list(kinds), list(kinds.values()), k=rng.randrange(60))
    text = [rng.choice(pool) for pool in pools]
    text += [chr(rng.randrange(0x110000)) for _ in range(rng.randrange(4))]
    rng.shuffle(text)
    return "".join(text) * rng.choice([1, 1, 1, 1, 2, 40])


def try_texts(rng: random.Random) -> int:
    texts = [random_text(rng) for _ in range(20)]
    recipe = Recipe(
        kind=rng.choice(["words", "characters"]), size=rng.choice([1, 2, 3, 5, 64]), k=rng.choice([1, 8, 64, 200]),
        seed=rng.choice([0, rng.getrandbits(64)]),
    )  # fmt: skip
    found, plain = both(lambda: [one.tolist() for one in sketch_many(texts, recipe)])
    single, plain_single = both(lambda: [sketch(text, recipe).tolist() for text in texts])
    for text, *four in zip(texts, found, plain, single, plain_single, strict=True):
        assert four == four[:1] * 4, (recipe, ascii(text))
    return len(texts)


def try_many(rng: random.Random) -> int:
    """Compare a thousand short texts, from text to leaders: at once, in a hundredth of the time of one by one."""
    generator, block = np.random.default_rng(rng.getrandbits(32)), rng.choice(BLOCKS)
    letters = [block + place for place in range(rng.choice([3, 256]))]
    others = [*map(ord, ODD + rng.choice(["", "".join(MARKS)])), *rng.choices(range(0x110000), k=9)]
    spaces = [ord(" ")] * (len(letters) // 4 + 1)
    alphabet = np.array([*letters, *spaces, *rng.choices(others, k=len(letters) // 3)], "<u4")
    points, ends = generator.choice(alphabet, 30_000), np.sort(generator.integers(0, 30_000, 1000)).tolist()
    texts = [points[start:end].tobytes().decode("utf-32-le", "surrogatepass") for start, end in pairwise([0, *ends])]
    texts[700:] = [f"{text} {text[:3]}" for text in texts[:300]]
    recipe = Recipe(kind=rng.choice(["words", "characters"]), size=rng.choice([1, 2, 3]), k=rng.choice([4, 64]))
    found, plain = both(lambda: sketch_many(texts, recipe))
    assert found.offsets.tolist() == plain.offsets.tolist(), (recipe, ascii(texts))
    assert found.values.tolist() == plain.values.tolist(), (recipe, ascii(texts))
    sketches, decision = [*plain], Decision.of(rng.choice(["auto", "moderate"]), recipe)
    rng.shuffle(sketches)
    for start in range(0, len(sketches), PAGE):
        page = sketches[start : start + PAGE]
        for one, other in zip(*both(partial(assign_leaders, page, recipe.k, decision)), strict=True):
            assert one.tolist() == other.tolist(), (recipe, decision, page)
    return len(texts)


def try_page(rng: random.Random) -> int:
    generator = np.random.default_rng(rng.getrandbits(32))
    pool = np.sort(generator.choice(rng.choice([300, 2**31]), 250, replace=False)).astype(np.int32)
    k, shares = rng.choice([1, 16, 64, 128]), generator.random(rng.randrange(1, 130)) ** rng.choice([0, 0.1, 1, 3])
    same_answers([pool[generator.random(len(pool)) < share][:k] for share in shares], k, rng.choice(FLOORS))
    return 1


def try_frames(rng: random.Random) -> int:
    generator, k = np.random.default_rng(rng.getrandbits(32)), rng.choice([16, 64, 128])
    page, frequency_table = in_frames(generator, rng.randrange(2, 130), rng.choice([50, 800]))
    sketches = sketches_of(page, k)
    for _ in range(4):
        constants = Constants(least=rng.uniform(0.05, 0.6), power=rng.uniform(0.1, 40), margin=rng.choice([0, 8]))
        same_decisions(sketches, rows_of(sketches, k), Decision(None, 3, frequency_table, constants))
    return 1


def try_stored(rng: random.Random) -> int:
    """Doc values of hits: good sketches, and whatever else a response may hold."""
    field, recipe = SketchField(), Recipe(k=rng.choice([1, 4, 64]))

    def stored() -> object:
        values = sorted(rng.sample(range(2**31), rng.randrange(1, 80)))
        odd: list[object] = [None, "17", ["17"], ["\ud800"], [-1, 2**70], [2.5], {}, values[::-1], [*values, None]]
        return rng.choice([values, values, *odd])

    recipes: list[object] = [[recipe.id], [recipe.id], [recipe.id], ["stale"], [], None, recipe.id]
    hits = [{"fields": {field.sketch: stored(), field.recipe: rng.choice(recipes)}} for _ in range(rng.randrange(30))]
    found, plain = both(lambda: [one if isinstance(one, str) else one.tolist() for one in field.decode(hits, recipe)])
    assert found == plain, (recipe, hits)
    return len(hits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--texts", type=int, default=0, help="go on until so many texts were compared")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if native.core is None:
        sys.exit(f"there is nothing to compare: this is {native.in_use()}")
    rng, end = random.Random(arguments.seed), monotonic() + arguments.seconds
    texts = pages = stored = 0
    while monotonic() < end or texts < arguments.texts:
        texts += sum(try_texts(rng) for _ in range(3)) + sum(try_many(rng) for _ in range(40))
        pages += try_page(rng) + try_frames(rng)
        stored += sum(try_stored(rng) for _ in range(10))
    print(f"{texts:,} texts, {pages:,} pages and {stored:,} stored sketches, all the same")


if __name__ == "__main__":
    main()
