"""Opt-in allocator setting for long-running programs. Importing this module changes nothing."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def keep_freed() -> None:
    """Make glibc's allocator reuse freed memory instead of returning it to the system, for the rest of the process.

    By default glibc returns large blocks and maps new pages for each batch, which makes long batches up to twice as
    slow. With this call the process keeps up to twice the size of the largest block that was ever freed (see
    M_MMAP_THRESHOLD in mallopt(3)). It affects the whole process, so the program decides, not the library. `ndd-search`
    calls it if NDD_KEEP_FREED is set. Other allocators are not affected.
    """
    np.empty(2**24, np.uint8)  # never written to, so no memory is committed
