"""The folder of an embedded index: what it says of itself, and what can be wrong with it.

ndd.json says how the index was made, common.json holds its table of common values; the rest is tantivy's, which
replaces meta.json with every commit.
"""

from __future__ import annotations

import json
import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ndd_search.errors import IndexUnusable, NDDError
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.recipe import Recipe

FORMAT = 2

State = tuple[int, int]

_FRESH = "ndd.json.new"  # left over where making an index was interrupted
_PARTS = ("fast", "fieldnorm", "idx", "pos", "store", "term")  # the files of a segment
_FOOTER = struct.Struct("<II")  # length of the footer before it, and a number that says that it is one
_IS_FOOTER = 1337


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
        if not folder.exists() or {path.name for path in folder.iterdir()} <= {_FRESH}:
            return None
        found = json.loads((folder / "ndd.json").read_text("utf-8"))
        if isinstance(found["format"], int) and found["format"] < FORMAT:
            what = f"it is in the older index format {found['format']}, this version reads {FORMAT}"
            raise IndexUnusable(folder, what, "index the documents again into another folder")
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


def damages(folder: Path) -> dict[str, str]:
    """What is wrong with the files of an index, by their names; empty when nothing is.

    Every file of tantivy ends in a checksum of what stands before it, which is compared with what is there.
    """
    while True:
        try:
            state = state_of(folder)
        except FileNotFoundError:
            return {}  # nothing was added yet
        found = _segment_damages(folder)
        if not found or state == state_of(folder):  # else a writer has replaced the files meanwhile
            break
    try:
        FrequencyTable.from_dict(json.loads((folder / "common.json").read_text("utf-8")))
    except FileNotFoundError:
        pass
    except _UNREADABLE as error:
        found["common.json"] = f"it cannot be read, and searches do without it: {error}"
    return found


def _segment_damages(folder: Path) -> dict[str, str]:
    try:
        meta = json.loads((folder / "meta.json").read_text("utf-8"))
        segments = [(str(one["segment_id"]).replace("-", ""), one.get("deletes")) for one in meta["segments"]]
        names = [f"{name}.{part}" for name, _ in segments for part in _PARTS]
        names += [f"{name}.{deletes['opstamp']}.del" for name, deletes in segments if deletes]
    except _UNREADABLE as error:
        return {"meta.json": f"it cannot be read: {error}"}
    return {name: problem for name in names if (problem := _damage(folder / name))}


def _damage(path: Path) -> str | None:
    """What is wrong with a file of tantivy, None when nothing is."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - _FOOTER.size, 0))
            length, kind = _FOOTER.unpack(file.read())
            if kind != _IS_FOOTER or length > size - _FOOTER.size:
                return "its end is damaged"
            body = size - _FOOTER.size - length
            file.seek(body)
            wanted = json.loads(file.read(length))["crc"]
            file.seek(0)
            crc = 0
            while body and (piece := file.read(min(body, 2**20))):
                crc, body = zlib.crc32(piece, crc), body - len(piece)
    except FileNotFoundError:
        return "it is gone"
    except (*_UNREADABLE, struct.error) as error:
        return f"its end is damaged: {error}"
    return None if crc == wanted else "its bytes are not those that were written"


def linked(folder: Path) -> Path:
    """A new temporary folder of links to the files of an index, for a reader who may not write into the index's own.

    tantivy makes a lock file beside the files that it reads. Raises OSError where no link can be made.
    """
    made = Path(tempfile.mkdtemp(prefix="ndd-search-"))
    for path in folder.iterdir():
        if path.suffix != ".lock":
            (made / path.name).symlink_to(path)
    return made


def state_of(folder: Path) -> State:
    """What tells the present state of an index from the one before its last commit."""
    found = (folder / "meta.json").stat()
    return found.st_mtime_ns, found.st_ino


MAY_NOT_WRITE = "this user may not write there", "let this user write there, or copy the folder"

# What reading a file can raise that somebody else wrote, or half of it.
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


class CommonFile:
    """The table of common values of an index, in common.json; read again when it was replaced."""

    def __init__(self, folder: Path, recipe: str) -> None:
        self._path, self._recipe = folder / "common.json", recipe
        self._known: tuple[int, FrequencyTable | None] = 0, None

    def table(self) -> FrequencyTable | None:
        """The table, None when there is none of this index's recipe to be read: decide without it."""
        try:
            written = self._path.stat().st_mtime_ns
            if written != self._known[0]:
                table = FrequencyTable.from_dict(self._read())
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

    def write(self, table: FrequencyTable, documents: int) -> None:
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


def unwritable(message: str) -> bool:
    """Whether the engine says that it may not write."""
    return any(word in message for word in ("PermissionDenied", "ReadOnlyFilesystem", "Permission denied", "Read-only"))


def _reason(message: str) -> tuple[str, str]:
    """What is wrong, and what to do, out of a message of the engine."""
    if "LockBusy" in message:
        return "another writer is at work on it", "wait until it is done"
    if unwritable(message):
        return MAY_NOT_WRITE
    if "No space left" in message or "StorageFull" in message:
        return "there is no space left on the disk", "make room; what was committed before is still there"
    return (
        f"the engine failed: {message}",
        "ndd-search verify names damaged files; see to the disk, or make the index anew",
    )


def _written_by_another(folder: Path, what: str) -> IndexUnusable:
    return IndexUnusable(folder, f"it was written by a version with {what}", "update ndd-search")
