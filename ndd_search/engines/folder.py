"""The folder of an embedded index: what it says of itself, and what can be wrong with it.

ndd.json says how the index was made, common.json holds its table of common values; the rest is tantivy's, which
replaces meta.json with every commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ndd_search.common_values import CommonValues
from ndd_search.config import Recipe
from ndd_search.errors import IndexUnusable, NDDError

FORMAT = 1

State = tuple[int, int]


@dataclass(frozen=True)
class Meta:
    """What decides how an index is read; kept in ndd.json."""

    format: int
    text: tuple[str, ...]
    language: str
    recipe: str


def read_meta(folder: Path) -> Meta | None:
    """What ndd.json says, None when the folder is empty or not there yet.

    Raises IndexUnusable for a folder that holds something else, a newer format, a damaged index, or may not be read.
    """
    try:
        if not folder.exists() or not any(folder.iterdir()):
            return None
        found = json.loads((folder / "ndd.json").read_text("utf-8"))
        if found["format"] != FORMAT:
            raise _written_by_another(folder, f"index format {found['format']}, this one reads {FORMAT}")
        meta = Meta(FORMAT, tuple(map(str, found["text"])), str(found["language"]), str(found["recipe"]))
    except PermissionError as error:
        raise IndexUnusable(folder, f"it cannot be read: {error.strerror}", "see to its owner and mode") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise IndexUnusable(folder, "it is no index of ndd-search", "name another folder, or an empty one") from None
    try:
        Recipe.parse(meta.recipe)
    except ValueError:
        raise _written_by_another(folder, f"recipe {meta.recipe}, this one makes {Recipe().id}") from None
    if not (folder / "meta.json").exists() and any(folder.glob("*.store")):
        raise IndexUnusable(folder, "its meta.json is gone", "put it back, or index the documents into another folder")
    return meta


def write_meta(folder: Path, meta: Meta) -> None:
    """Make the folder, if it is not there, and say in it what it is."""
    with told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        replace_json(folder / "ndd.json", asdict(meta))


def check_meta(folder: Path, meta: Meta) -> None:
    """Raise IndexUnusable unless the index in a folder is still, or on this machine too, the one that is meant."""
    found = read_meta(folder)
    if found is None:
        raise IndexUnusable(folder, "there is no index here", "this process must see the folder that it was opened in")
    if found != meta:
        raise IndexUnusable(folder, "it holds another index than when it was opened", "open it anew with Index.open")


def replace_json(path: Path, value: Any) -> None:
    """Write a file so that a reader, or a crash, meets the old one or the new one."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(json.dumps(value), "utf-8")
    fresh.replace(path)


def state_of(folder: Path) -> State:
    """What tells the present state of an index from the one before its last commit."""
    found = (folder / "meta.json").stat()
    return found.st_mtime_ns, found.st_ino


# What reading a file can raise that somebody else wrote, or half of it.
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


class CommonFile:
    """The table of common values of an index, in common.json; read again when it was replaced."""

    def __init__(self, folder: Path, recipe: str) -> None:
        self._path, self._recipe = folder / "common.json", recipe
        self._known: tuple[int, CommonValues | None] = 0, None

    def table(self) -> CommonValues | None:
        """The table, None when there is none of this index's recipe to be read: decide without it."""
        try:
            written = self._path.stat().st_mtime_ns
            if written != self._known[0]:
                table = CommonValues.from_dict(self._read())
                self._known = written, table if table.recipe == self._recipe else None
        except _UNREADABLE:
            return None
        return self._known[1]

    def documents(self) -> int:
        """How many documents the index held when the table was made, 0 without one that can be read."""
        try:
            return int(self._read()["of"]) if self.table() else 0
        except _UNREADABLE:
            return 0

    def write(self, table: CommonValues, documents: int) -> None:
        replace_json(self._path, {**table.to_dict(), "of": documents})

    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._path.read_text("utf-8"))
        return found


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """Say in a sentence of ours what the file system or the engine could not do."""
    try:
        yield
    except OSError as error:
        raise IndexUnusable(folder, f"it cannot be used: {error.strerror or error}", "see to the disk") from error
    except ValueError as error:
        if isinstance(error, NDDError):
            raise
        raise IndexUnusable(folder, *_reason(str(error))) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what the engine raises where a file holds nonsense
            raise
        raise IndexUnusable(folder, *_reason(str(error))) from error


def _reason(message: str) -> tuple[str, str]:
    """What is wrong, and what to do, out of a message of the engine."""
    if "LockBusy" in message:
        return "another writer is at work on it", "wait until it is done"
    if "PermissionDenied" in message or "ReadOnlyFilesystem" in message:
        remedy = "readers lock it for a moment, too: let this user write there, or copy it"
        return "this user may not write there", remedy
    if "No space left" in message or "StorageFull" in message:
        return "there is no space left on the disk", "make room; what was committed before is still there"
    return f"the engine failed: {message}", "see to the disk, or make the index anew"


def _written_by_another(folder: Path, what: str) -> IndexUnusable:
    return IndexUnusable(folder, f"it was written by a version with {what}", "update ndd-search")
