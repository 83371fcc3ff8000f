"""The folder of an embedded index: its metadata and its frequency table.

ndd.json holds the metadata, common.json the frequency table. The other files are tantivy's, which replaces meta.json
with every commit.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ndd_search.atomic_file import replace_file
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.recipe import Recipe
from ndd_search.errors import IndexUnusable, NDDError

FORMAT = 3
WAIT = 10.0  # seconds that a writer waits for one of another process

State = tuple[int, int]
Identity = tuple[int, int]

_UNFINISHED = "ndd.json.*new"  # left over if the creation of an index was interrupted


@dataclass(frozen=True)
class Meta:
    """The metadata of an index, stored in ndd.json."""

    format: int
    text: tuple[str, ...]
    language: str
    recipe: str


def read_meta(folder: Path) -> Meta | None:
    """Read ndd.json; None if the folder is empty or does not exist.

    Raises IndexUnusable if the folder holds something else, another format or a damaged index, or cannot be read.
    """
    try:
        if not folder.exists() or all(path.match(_UNFINISHED) for path in folder.iterdir()):
            return None
        stored = json.loads((folder / "ndd.json").read_text("utf-8"))
        if isinstance(stored["format"], int) and stored["format"] < FORMAT:
            what = f"it is in the older index format {stored['format']}, this version reads {FORMAT}"
            raise IndexUnusable(folder, what, "index the documents again into another folder")
        if stored["format"] != FORMAT:
            raise _written_by_another(folder, f"index format {stored['format']}, this one reads {FORMAT}")
        meta = Meta(FORMAT, tuple(map(str, stored["text"])), str(stored["language"]), str(stored["recipe"]))
    except PermissionError as error:
        raise IndexUnusable(
            folder, f"it cannot be read: {error.strerror}", "check its owner and permissions"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise IndexUnusable(
            folder, "it is not an index of ndd-search", "name one, or an empty folder to make one"
        ) from None
    try:
        Recipe.parse(meta.recipe)
    except ValueError:
        raise _written_by_another(folder, f"recipe {meta.recipe}, this one makes {Recipe().id}") from None
    if not (folder / "meta.json").exists() and any(folder.glob("*.store")):
        raise IndexUnusable(
            folder, "its meta.json is missing", "restore it, or index the documents into another folder"
        )
    return meta


def write_meta(folder: Path, meta: Meta) -> None:
    """Create the folder if needed, and write its ndd.json."""
    with engine_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / "ndd.json", json.dumps(asdict(meta)))


def check_meta(folder: Path, meta: Meta) -> None:
    """Raise IndexUnusable unless the folder holds the index with this metadata, here and now."""
    stored = read_meta(folder)
    if stored is None:
        raise IndexUnusable(
            folder, "there is no index here", "this process must have access to the folder in which it was opened"
        )
    if stored != meta:
        raise IndexUnusable(folder, "it holds another index than when it was opened", _OPEN_AGAIN)


def linked(folder: Path) -> Path:
    """Create a temporary folder of links to the files of an index, for a user without write permission to the folder.

    tantivy needs it because it creates a lock file beside the files that it reads. Raises OSError if links fail.
    """
    links = Path(tempfile.mkdtemp(prefix="ndd-search-"))
    for path in folder.iterdir():
        if path.suffix != ".lock":
            (links / path.name).symlink_to(path)
    return links


def identity_of(folder: Path) -> Identity:
    """Identify the index in a folder, whatever is written to it. Raises IndexUnusable if there is none any more."""
    try:
        status = (folder / "ndd.json").stat()
    except FileNotFoundError:
        raise IndexUnusable(folder, *_GONE) from None
    return status.st_dev, status.st_ino


def state_of(folder: Path, identity: Identity) -> State:
    """Identify the current state of an index; every commit changes it. Raises IndexUnusable if it is another index."""
    if identity_of(folder) != identity:
        raise IndexUnusable(folder, "it holds another index than when it was opened", _OPEN_AGAIN)
    status = (folder / "meta.json").stat()
    return status.st_mtime_ns, status.st_ino


_OPEN_AGAIN = "open it again with Index.open"
_GONE = "the index was moved or removed after it was opened", "open it with Index.open where it is now"
MAY_NOT_WRITE = "this user has no write permission", "give this user write permission, or copy the folder"

# Errors from reading a damaged file, a half-written one, or one of another program.
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


class CommonFile:
    """The frequency table of an index, in common.json; read again when the file is replaced."""

    def __init__(self, folder: Path, recipe: str) -> None:
        self._path, self._recipe = folder / "common.json", recipe
        self._written: int = 0
        self._cached: tuple[FrequencyTable | None, int] = None, 0

    def table(self) -> FrequencyTable | None:
        """The frequency table, None if there is none with the recipe of the index, or it cannot be read."""
        return self._read()[0]

    def documents(self) -> int:
        """The number of documents in the index when the table was counted, 0 without a readable table."""
        return self._read()[1]

    def write(self, table: FrequencyTable, documents: int) -> None:
        replace_file(self._path, json.dumps({**table.to_dict(), "of": documents}))

    def _read(self) -> tuple[FrequencyTable | None, int]:
        try:
            written = self._path.stat().st_mtime_ns
            if written != self._written:
                content = json.loads(self._path.read_text("utf-8"))
                table = FrequencyTable.from_dict(content)
                self._cached = (table, int(content["of"])) if table.recipe == self._recipe else (None, 0)
                self._written = written
        except _UNREADABLE:
            return None, 0
        return self._cached


@contextmanager
def engine_errors(folder: Path) -> Iterator[None]:
    """Translate errors of the file system and of tantivy into IndexUnusable."""
    try:
        yield
    except OSError as error:
        raise IndexUnusable(
            folder, f"it cannot be used: {error.strerror or error}", "check free space and permissions"
        ) from error
    except ValueError as error:
        if isinstance(error, NDDError):
            raise
        is_gone = "NotFound" in str(error) and not (folder / "ndd.json").exists()
        raise IndexUnusable(folder, *(_GONE if is_gone else _reason(str(error)))) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # tantivy raises it for damaged files
            raise
        raise IndexUnusable(folder, *_reason(str(error))) from error


def unwritable(message: str) -> bool:
    """Whether a message of tantivy says that write permission is missing."""
    return any(word in message for word in ("PermissionDenied", "ReadOnlyFilesystem", "Permission denied", "Read-only"))


def is_busy(message: str) -> bool:
    """Whether a message of tantivy says that another writer has the folder."""
    return "LockBusy" in message


def _reason(message: str) -> tuple[str, str]:
    """The problem and the remedy for an error message of tantivy."""
    if is_busy(message):
        return f"another process is writing to it, for {WAIT:g} seconds now", "wait until it has finished"
    if unwritable(message):
        return MAY_NOT_WRITE
    if "No space left" in message or "StorageFull" in message:
        return "there is no space left on the disk", "free some space; what was committed before is still there"
    return (
        f"the engine failed: {message}",
        "check free space and permissions, or create the index again",
    )


def _written_by_another(folder: Path, what: str) -> IndexUnusable:
    return IndexUnusable(folder, f"it was written by a version with {what}", "update ndd-search")
