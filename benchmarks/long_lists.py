"""Time the collapse of lists of up to 50,000 hits, with min_similarity="auto" and a table of the list.

python -m benchmarks.long_lists
"""

from __future__ import annotations

from time import process_time

import numpy as np

import ndd_search as ndd
from ndd_search.core.matching.choose_leaders import assign_leaders
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketch

COUNTS = (2_000, 8_000, 20_000, 50_000)
COPIED, SHINGLES, EDITED, FRAME = 0.3, 120, 10, 60


def sketches(count: int, frame: int) -> list[Sketch]:
    """Sketch texts of which a share are edited copies of the one before, each in a frame of so many shingles."""
    rng = np.random.default_rng(1)
    shared, text = rng.choice(2**31, frame), rng.choice(2**31, SHINGLES)
    made = []
    for copied in rng.random(count) < COPIED:
        if copied:
            text = text.copy()
            text[rng.integers(0, SHINGLES, EDITED)] = rng.integers(0, 2**31, EDITED)
        else:
            text = rng.choice(2**31, SHINGLES)
        made.append(np.unique(np.concatenate((shared, text)))[:64].astype(np.int32))
    return made


def main() -> None:
    print("| hits, s | leaders | ndd.collapse | in one frame: leaders | ndd.collapse |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    plain, framed = sketches(COUNTS[-1], 0), sketches(COUNTS[-1], FRAME)
    for count in COUNTS:
        times = []
        for page in (plain[:count], framed[:count]):
            table = count_document_frequency(page, Recipe())
            began = process_time()
            assign_leaders(page, 64, Decision.of("auto", Recipe(), table))
            times.append(process_time() - began)
            began = process_time()
            ndd.collapse([""] * count, sketches=page, size=count)
            times.append(process_time() - began)
        print(f"| {count:,} | " + " | ".join(f"{one:.2f}" for one in times) + " |", flush=True)


if __name__ == "__main__":
    main()
