"""Folders that another user may read."""

from pathlib import Path


def let_in(path: Path) -> None:
    """Let everybody into the folders above."""
    for folder in path.parents:
        if not folder.stat().st_mode & 0o001:
            folder.chmod(0o755)
