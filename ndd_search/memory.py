"""What we take and free again and again stays with the process."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def keep_freed() -> None:
    """Have glibc keep for the next page or batch what one frees.

    Else it hands back to the system what is large and fetches fresh pages of it each time, which takes longer than all
    the rest. It keeps free memory up to twice the size of the largest block that ever came and went (see
    M_MMAP_THRESHOLD in mallopt(3)); this one is never touched, so it costs nothing. Other allocators do not mind.
    """
    np.empty(2**24, np.uint8)
