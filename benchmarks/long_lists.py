"""Time the collapse of lists of up to 50,000 hits.

python -m benchmarks.long_lists
"""

from __future__ import annotations

from time import process_time

import numpy as np

import ndd_search as ndd
from ndd_search.core.matching import leaders
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
    print("| hits, s | leaders | ndd.collapse | in one frame: leaders |\n| ---: | ---: | ---: | ---: |")
    plain, framed = sketches(COUNTS[-1], 0), sketches(COUNTS[2], FRAME)
    for count in COUNTS:
        times = []
        for page in (plain[:count], framed[:count]):
            began = process_time()
            leaders(page)
            times.append(f"{process_time() - began:.2f}" if len(page) == count else "")
        began = process_time()
        ndd.collapse([""] * count, sketches=plain[:count], size=count)
        print(f"| {count:,} | {times[0]} | {process_time() - began:.2f} | {times[1]} |")


if __name__ == "__main__":
    main()
