"""For long-running programs: keep memory that is freed with the process. Nothing here is done unless it is called."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def keep_freed() -> None:
    """Have the allocator of glibc keep freed memory for the next page or batch, for the rest of the process.

    Otherwise it gives large blocks back to the system and fetches fresh pages each time, which makes long batches up to
    twice as slow. The process then keeps free memory of up to twice the size of the largest block that was ever freed
    (see M_MMAP_THRESHOLD in mallopt(3)), in this library and in everything else that runs in it; so this is the
    program's decision, not the library's. `ndd-search` calls it when NDD_KEEP_FREED is set. Other allocators ignore it.
    """
    np.empty(2**24, np.uint8)  # never touched, so it costs nothing
