"""Fuzz the native core, guided by its coverage: bytes -> texts -> sketches -> page, under the address sanitizer.

    python -m tests.guided_fuzz [options of libFuzzer]      make fuzz-guided ARGS="-max_total_time=60"
    python -m tests.guided_fuzz --keep                      adds what was found to the inputs that the tests use

Needs gcc and the package atheris, which holds libFuzzer and the runtime of the address sanitizer. Inputs that reach new
code are kept in .fuzz/inputs. An input that fails is written to a file, and its path as the argument runs it again.
"""

from __future__ import annotations

import os
import sys
from hashlib import sha1
from pathlib import Path
from zlib import crc32

import numpy as np

from ndd_search import native
from ndd_search.core.matching.choose_leaders import assign_leaders
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import sketch, sketch_many
from tests.compiled_core import compiled, loaded
from tests.native.both import FLOORS, both, same_answers

CORPUS = Path(__file__).parent / "data" / "fuzz.txt"  # an input in hexadecimal digits a line
HEADER = Path(__file__).parent / "coverage_counters.h"
FOLDER = Path(".fuzz/inputs")
MOST = 400  # inputs that are kept for the tests
SIZES, KS = [1, 2, 3, 5, 64], [1, 4, 16, 64]
BETWEEN = "\x1e"  # separates texts


def try_input(data: bytes) -> None:
    """Run the core on some bytes, under the address sanitizer; compare one input of sixteen with numpy."""
    if crc32(data) % 16 == 0:
        compare(data)
    else:
        recipe, texts, bar = read(data)
        sketches = list(sketch_many(texts, recipe))
        assert [one.tolist() for one in sketches] == [sketch(text, recipe).tolist() for text in texts]
        table = FrequencyTable(100, np.arange(8, dtype=np.int32), np.full(8, 50.0), recipe.id)
        for decision in (Decision(bar or 0.5, recipe.size), Decision(None, recipe.size, table)):
            assign_leaders(sketches, recipe.k, decision)


def compare(data: bytes) -> None:
    """Compare what the core and numpy make of some bytes. Raises AssertionError."""
    recipe, texts, bar = read(data)
    found, plain = both(lambda: [one.tolist() for one in sketch_many(texts, recipe)])
    single, plain_single = both(lambda: [sketch(text, recipe).tolist() for text in texts])
    assert found == plain == single == plain_single, (recipe, ascii(texts))
    same_answers(list(sketch_many(texts, recipe)), recipe.k, bar)


def read(data: bytes) -> tuple[Recipe, list[str], float]:
    """Return the recipe, the texts and the bar in some bytes: four bytes of choices, then UTF-8, also of surrogates."""
    chosen, rest = data[:4].ljust(4, b"\0"), data[4:]
    try:
        text = rest.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = rest.decode("utf-8", "replace")
    recipe = Recipe(
        kind="words" if chosen[0] % 2 else "characters",
        size=SIZES[chosen[1] % len(SIZES)],
        k=KS[chosen[2] % len(KS)],
        seed=chosen[0] // 2,
    )
    return recipe, text.split(BETWEEN)[:40], FLOORS[chosen[3] % len(FLOORS)]


def kept() -> list[bytes]:
    """Return the inputs that the tests use."""
    return [bytes.fromhex(line) for line in CORPUS.read_text().split()]


def keep() -> None:
    """Keep the smallest inputs that were found for the tests."""
    inputs = sorted({file.read_bytes() for file in FOLDER.iterdir()} - {b""}, key=lambda one: (len(one), one))
    CORPUS.write_text("".join(f"{one.hex()}\n" for one in inputs[:MOST]))


def main() -> None:
    if sys.argv[1:] == ["--keep"]:
        return keep()
    import atheris

    if "LD_PRELOAD" not in os.environ:  # the runtime has to be there before Python is
        runtime = Path(atheris.path()) / "asan_with_fuzzer.so"
        environment = {**os.environ, "LD_PRELOAD": str(runtime), "ASAN_OPTIONS": "detect_leaks=0"}
        os.execve(sys.executable, [sys.executable, "-m", "tests.guided_fuzz", *sys.argv[1:]], environment)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for one in kept():
        (FOLDER / sha1(one).hexdigest()).write_bytes(one)
    flags = ["-O1", "-g", "-fsanitize=address", "-fsanitize-coverage=trace-pc,trace-cmp", "-include", str(HEADER)]
    native.core = loaded(compiled(FOLDER.parent, *flags))
    given = sys.argv[1:]
    if all(one.startswith("-") for one in given):
        given += ["-timeout=60", str(FOLDER)]
    atheris.Setup([sys.argv[0], *given], try_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
