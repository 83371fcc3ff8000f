"""Replaces a file once its new content is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the name of a new file, which takes the place of `path` at the end of the block.

    After an error the new file is deleted. Those that killed processes left for the same path are deleted, too.
    """
    for left in path.parent.glob(f"{escape(path.name)}.ndd-*.new"):
        if _has_ended(left.suffixes[-2].removeprefix(".ndd-")):
            left.unlink(missing_ok=True)
    partial = path.with_name(f"{path.name}.ndd-{os.getpid()}.new")
    try:
        yield partial
        with partial.open("r+b") as file:
            os.fsync(file.fileno())  # the content reaches the disk before the name
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _has_ended(process: str) -> bool:
    """Return whether there is no process with this id. On Windows the question would end the process."""
    if os.name == "nt":
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError, ValueError):  # a process of another user, or no id
        return False
    return False
