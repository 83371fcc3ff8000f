"""Replaces a file once its new content is whole."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the name of a new file, which takes the place of `path` at the end of the block.

    A reader, or a restart after a crash, finds the old or the new content. If `path` is a symbolic link, the file
    that it names is replaced. Raises PermissionError for a link that another user made in a folder where all users
    write, such as /tmp: Linux does not open such links either. A file that is there keeps its permissions. After an
    error the new file is deleted. A process that is killed leaves it, and other processes do not delete it: it may
    belong to one that is still writing, on another machine with the same file system.
    """
    if path.is_symlink() and path.parent.stat().st_mode & stat.S_ISVTX and path.lstat().st_uid != os.geteuid():
        raise PermissionError(errno.EACCES, "another user made this link in a folder where all users write", str(path))
    path = path.resolve()
    partial = path.with_name(f"{path.name}.ndd-{os.getpid()}.new")
    try:
        if path.exists():
            partial.touch(0o600)  # nobody else reads the new content while it is written
        yield partial
        with partial.open("r+b") as file:
            os.fsync(file.fileno())  # the content reaches the disk before the name
        if path.exists():
            shutil.copymode(path, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def replace_file(path: Path, text: str) -> None:
    """Replace a text file, in UTF-8. Raises OSError."""
    with replacing(path) as partial:
        partial.write_text(text, "utf-8")
