"""Replaces a file once its new content is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the name of a new file, which takes the place of `path` at the end of the block.

    After an error the new file is deleted. A process that is killed leaves it, and other processes do not delete it: it
    may belong to one that is still writing, on another machine with the same file system.
    """
    partial = path.with_name(f"{path.name}.ndd-{os.getpid()}.new")
    try:
        yield partial
        with partial.open("r+b") as file:
            os.fsync(file.fileno())  # the content reaches the disk before the name
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
