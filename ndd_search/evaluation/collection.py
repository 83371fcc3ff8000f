"""A folder of labelled pairs.

    documents.jsonl[.gz]  {"id", "text", ...} or {"id", "fields": {...}}; a "lang" is used where there is one
    pairs.jsonl[.gz]      {"a", "b", "label", "kind"}: 1 near-duplicates, 0 not, -1 not scored
    clusters.jsonl[.gz]   {"cluster", "members"}                     } with these two, whole
    results.jsonl[.gz]    {"qid", "results": [{"id", "rank"}]}       } result pages are judged as well

Only the documents are required: without labels there is a histogram and samples near the bar to look at.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.documents import text_of
from ndd_search.errors import InvalidDocument

Places = npt.NDArray[np.int64]

TEXT_FIELDS = ("title", "text", "body", "fields")


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Pairs of documents by place; arrays of one length.

    first, second: places of the documents; label: 1, 0 or -1 (not scored); kind: a name of what kind of pair it is.
    """

    first: Places
    second: Places
    label: npt.NDArray[np.int64]
    kind: npt.NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, eq=False)
class Collection:
    """What a folder holds.

    texts, languages: of each document, in the order of the file; a language is "" where none is given.
    pairs:    the labelled pairs, None without a file of them.
    pages:    the results of each query by place, best first; empty without queries.
    cluster:  of each document; documents of one number are near-duplicates.
    """

    name: str
    ids: list[str]
    texts: list[str]
    languages: npt.NDArray[np.str_]
    pairs: LabelledPairs | None
    pages: list[Places]
    cluster: Places

    def unscored(self) -> set[tuple[int, int]]:
        """The pairs labelled -1, each as (smaller place, larger place)."""
        if self.pairs is None:
            return set()
        out = self.pairs.label == -1
        ends = np.sort(np.stack((self.pairs.first[out], self.pairs.second[out])), axis=0)
        return set(zip(*ends.tolist(), strict=True)) if ends.size else set()


def read_collection(folder: Path, fields: tuple[str, ...] = TEXT_FIELDS) -> Collection:
    """Read a folder. Raises InvalidDocument for a line that cannot be taken, OSError for a missing file."""
    documents = list(_lines(folder, "documents", ("id",), required=True))
    if not documents:
        raise InvalidDocument(str(folder / "documents"), "it is empty", "put the documents there, an object a line")
    ids = [str(document["id"]) for document in documents]
    place = {name: i for i, name in enumerate(ids)}
    if len(place) < len(ids):
        raise InvalidDocument(str(folder), "two documents have one id", "give each its own")
    return Collection(
        name=folder.resolve().name,
        ids=ids,
        texts=[text_of(document, fields) or "" for document in documents],
        languages=np.array([str(document.get("lang", "")) for document in documents]),
        pairs=_pairs(folder, place),
        pages=_pages(folder, place),
        cluster=_clusters(folder, place),
    )


def _pairs(folder: Path, place: dict[str, int]) -> LabelledPairs | None:
    rows = list(_lines(folder, "pairs", ("a", "b", "label")))
    if not rows:
        return None
    first, second = (_places(folder, [row[end] for row in rows], place) for end in "ab")
    labels = [row["label"] for row in rows]
    if wrong := [label for label in labels if label not in (-1, 0, 1)]:
        raise InvalidDocument(str(folder / "pairs"), f"a label is {wrong[0]!r}, not 1, 0 or -1", "correct it")
    return LabelledPairs(
        first, second, np.array(labels, np.int64), np.array([str(row.get("kind", "")) for row in rows])
    )


def _pages(folder: Path, place: dict[str, int]) -> list[Places]:
    pages = []
    for row in _lines(folder, "results", ("results",)):
        try:
            results = sorted(row["results"], key=lambda result: result.get("rank", 0))
            names = [result["id"] for result in results]
        except (AttributeError, KeyError, TypeError):
            raise InvalidDocument(
                str(folder / "results"),
                f"results are {str(row['results'])[:80]}, not objects with id and rank",
                "correct it",
            ) from None
        pages.append(_places(folder, names, place))
    return pages


def _clusters(folder: Path, place: dict[str, int]) -> Places:
    cluster = np.arange(len(place))
    for row in _lines(folder, "clusters", ("members",)):
        if not isinstance(row["members"], list):
            raise InvalidDocument(str(folder / "clusters"), f"members are {row['members']!r}, not a list", "correct it")
        members = _places(folder, row["members"], place)
        if len(members):
            cluster[members] = members.min()
    return cluster


def _places(folder: Path, names: list[Any], place: dict[str, int]) -> Places:
    try:
        return np.array([place[str(name)] for name in names], np.int64)
    except KeyError as error:
        raise InvalidDocument(str(folder), f"no document has the id {error}", "add it or leave the line out") from None


def _lines(folder: Path, name: str, keys: tuple[str, ...], required: bool = False) -> Iterator[dict[str, Any]]:
    """The objects of a file, each with these keys at least. Raises InvalidDocument naming the line."""
    found = [path for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl") if path.exists()]
    if not found:
        if required:
            raise FileNotFoundError(f"{folder} holds no {name}.jsonl or {name}.jsonl.gz")
        return
    for number, line in enumerate(_read(found[0]).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{found[0]}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidDocument(where, f"it is no JSON: {error}", "correct it") from None
        if not isinstance(row, dict) or any(key not in row for key in keys):
            raise InvalidDocument(where, f"it is no object with {', '.join(keys)}", "correct it")
        yield row


def _read(file: Path) -> str:
    found = file.read_bytes()
    try:
        return (gzip.decompress(found) if file.suffix == ".gz" else found).decode()
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidDocument(str(file), f"it is no whole gzip file: {error}", "get it again") from None
    except UnicodeDecodeError as error:
        raise InvalidDocument(str(file), f"it is no UTF-8: {error}", "convert it") from None
