"""Read a folder of labelled pairs.

    documents.jsonl[.gz]  {"id", "text", ...} or {"id", "fields": {...}}, optionally "lang"
    pairs.jsonl[.gz]      {"a", "b", "label", "kind"}; label 1 near-duplicates, 0 not, -1 not scored
    clusters.jsonl[.gz]   {"cluster", "members"}
    results.jsonl[.gz]    {"qid", "results": [{"id", "rank"}]}

Only documents are required. Clusters and results together allow whole result pages to be judged. Without labelled
pairs, the report has a histogram of similarities and sample pairs near the bar.
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

from ndd_search.core.document_fields import text_of
from ndd_search.errors import InvalidDocument

Places = npt.NDArray[np.int64]

TEXT_FIELDS = ("title", "text", "body", "fields")


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Pairs of documents, as arrays of equal length.

    first, second: positions of the documents in the collection; label: 1, 0 or -1 (not scored);
    kind: name of the kind of pair, "" if not given.
    """

    first: Places
    second: Places
    label: npt.NDArray[np.int64]
    kind: npt.NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, eq=False)
class Collection:
    """The documents and labels of a folder.

    ids, texts, languages: one per document, in the order of the file; a language is "" if not given.
    pairs:    the labelled pairs, None without a file of pairs.
    pages:    for each query the positions of its results, best first; empty without a file of results.
    cluster:  cluster number of each document; documents with the same number are near-duplicates.
    """

    name: str
    ids: list[str]
    texts: list[str]
    languages: npt.NDArray[np.str_]
    pairs: LabelledPairs | None
    pages: list[Places]
    cluster: Places

    def unscored(self) -> set[tuple[int, int]]:
        """Return the pairs labelled -1, each as (smaller position, larger position)."""
        if self.pairs is None:
            return set()
        unscored = self.pairs.label == -1
        ends = np.sort(np.stack((self.pairs.first[unscored], self.pairs.second[unscored])), axis=0)
        return set(zip(*ends.tolist(), strict=True)) if ends.size else set()


def read_collection(folder: Path, fields: tuple[str, ...] = TEXT_FIELDS) -> Collection:
    """Read a folder. Raises InvalidDocument if a file or line is invalid, OSError if a file cannot be read."""
    documents = [document for _, document in _lines(folder, "documents", ("id",), required=True)]
    if not documents:
        raise InvalidDocument(str(folder / "documents"), "it is empty", "write one JSON object per line")
    ids = [str(document["id"]) for document in documents]
    place = {name: i for i, name in enumerate(ids)}
    if len(place) < len(ids):
        raise InvalidDocument(str(folder), "two documents have the same id", "give each its own id")
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
    lines = list(_lines(folder, "pairs", ("a", "b", "label")))
    if not lines:
        return None
    rows = [row for _, row in lines]
    first, second = (_places(folder, [row[end] for row in rows], place) for end in "ab")
    known: dict[frozenset[int], int] = {}
    once = np.zeros(len(lines), bool)  # True at the first of the lines that label a pair
    for number, ((where, row), one, other) in enumerate(zip(lines, first.tolist(), second.tolist(), strict=True)):
        label, pair, ends = row["label"], f"the pair {row['a']!r} and {row['b']!r}", frozenset((one, other))
        if label not in (-1, 0, 1):
            raise InvalidDocument(where, f"a label is {label!r}, not 1, 0 or -1", "correct it")
        if one == other:
            raise InvalidDocument(where, f"{pair} is one document", "remove the line")
        once[number] = ends not in known
        if known.setdefault(ends, label) != label:
            raise InvalidDocument(where, f"{pair} has two labels", "keep one of the lines")
    labels, kinds = [row["label"] for row in rows], [str(row.get("kind", "")) for row in rows]
    return LabelledPairs(first[once], second[once], np.array(labels, np.int64)[once], np.array(kinds)[once])


def _pages(folder: Path, place: dict[str, int]) -> list[Places]:
    pages = []
    for _, row in _lines(folder, "results", ("results",)):
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
    cluster, clustered = np.arange(len(place)), np.zeros(len(place), bool)
    for _, row in _lines(folder, "clusters", ("members",)):
        if not isinstance(row["members"], list):
            raise InvalidDocument(str(folder / "clusters"), f"members are {row['members']!r}, not a list", "correct it")
        members = _places(folder, row["members"], place)
        if clustered[members].any():
            name = row["members"][int(clustered[members].argmax())]
            raise InvalidDocument(str(folder / "clusters"), f"{name!r} is in two clusters", "keep it in one of them")
        if len(members):
            cluster[members], clustered[members] = members.min(), True
    return cluster


def _places(folder: Path, names: list[Any], place: dict[str, int]) -> Places:
    try:
        return np.array([place[str(name)] for name in names], np.int64)
    except KeyError as error:
        raise InvalidDocument(
            str(folder), f"no document has the id {error}", "add the document or remove the line"
        ) from None


def _lines(
    folder: Path, name: str, keys: tuple[str, ...], required: bool = False
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file and line number, object) of a file. Raises InvalidDocument if an object lacks one of `keys`."""
    files = [path for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl") if path.exists()]
    if not files:
        if required:
            raise FileNotFoundError(f"{folder} holds no {name}.jsonl or {name}.jsonl.gz")
        return
    for number, line in enumerate(_read(files[0]).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{files[0]}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidDocument(where, f"it is not valid JSON: {error}", "correct it") from None
        if not isinstance(row, dict) or any(key not in row for key in keys):
            raise InvalidDocument(where, f"it is not an object with {', '.join(keys)}", "correct it")
        yield where, row


def _read(file: Path) -> str:
    content = file.read_bytes()
    try:
        return (gzip.decompress(content) if file.suffix == ".gz" else content).decode()
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidDocument(
            str(file), f"it is not a complete gzip file: {error}", "copy or download it again"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidDocument(str(file), f"it is not UTF-8: {error}", "convert it") from None
