"""The folder of an embedded index: what it says of itself, and what can be wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ndd_search.errors import IndexUnusable, NDDError

FORMAT = 1


@dataclass(frozen=True)
class Meta:
    """What decides how an index is read; kept in ndd.json."""

    format: int
    text: tuple[str, ...]
    language: str
    recipe: str


def read_meta(folder: Path) -> Meta | None:
    """What ndd.json says, None when the folder is empty or not there yet."""
    if not folder.exists():
        return None
    try:
        if not any(folder.iterdir()):
            return None
        found = json.loads((folder / "ndd.json").read_text("utf-8"))
        meta = Meta(found["format"], tuple(found["text"]), found["language"], found["recipe"])
    except (OSError, ValueError, KeyError, TypeError):
        raise IndexUnusable(folder, "it is no index of ndd-search", "name another folder, or an empty one") from None
    if meta.format != FORMAT:
        raise IndexUnusable(
            folder,
            f"it was written by a version with index format {meta.format}, this one reads {FORMAT}",
            "update ndd-search",
        )
    return meta


def write_meta(folder: Path, meta: Meta) -> None:
    with told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ndd.json").write_text(json.dumps(asdict(meta)), "utf-8")


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """Say in a sentence of ours what the file system or the engine could not do."""
    try:
        yield
    except OSError as error:
        raise IndexUnusable(folder, f"it cannot be written: {error.strerror or error}", "see to the disk") from error
    except ValueError as error:
        if isinstance(error, NDDError):
            raise
        if "LockBusy" in str(error):
            raise IndexUnusable(folder, "another writer is at work on it", "wait until it is done") from None
        raise IndexUnusable(folder, f"the engine failed: {error}", "see to the disk, or make the index anew") from error
