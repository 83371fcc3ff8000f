"""Make labelled collections for `python -m benchmarks.study` from public sources, of kinds that its sets do not hold.

    git clone https://github.com/opentofu/opentofu              # pages of a manual: release 1.6 and today
    git clone https://github.com/eslint/eslint                  # rules of a program: release 8 and today
    git clone https://github.com/tldr-pages/tldr                # examples of commands in three languages: 2023, today
    git clone https://github.com/bundestag/gesetze              # paragraphs of German laws: 2013 and today
    git clone https://github.com/linpingyu/JobListings          # adverts of jobs, collected twice
    pip download --no-deps google-api-python-client==2.197.0    # descriptions of operations: two versions of an API
    python -m benchmarks.study_sets FOLDER --laws gesetze --jobs JobListings --operations FILE.whl \
        --pages manual opentofu v1.6:website/docs HEAD:website/docs \
        --pages rules eslint v8.0.0:docs/rules HEAD:docs/src/rules \
        --pages commands tldr v2.0:pages HEAD:pages --pages befehle tldr v2.0:pages.de HEAD:pages.de \
        --pages mingling tldr v2.0:pages.zh HEAD:pages.zh
    python -m benchmarks.study FOLDER/* --methods auto,min-k,high --no-speed

Two documents of one key (a page, a paragraph, an advert, an operation) are copies if at least 60 % of the words of the
longer one are kept in order, else they are not scored. Documents of different keys are different, but those that keep
90 % are not scored: two keys may have one text. Of adverts it is 60 %, as one job is advertised under several titles.
Each collection has 120 ranked lists: the best hundred hits of BM25 for the first sixty words of a document. Half of
these documents have a second version.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import random
import re
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import tantivy

KEPT, SURE, LISTS, QUERY = 0.6, 0.9, 120, 60
LAWS = ("442d6c43", "HEAD")
MOST = 1100  # pages, operations


class Document(NamedTuple):
    key: str
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.study_sets", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the collections are written to its subfolders")
    parser.add_argument("--pages", nargs=4, action="append", default=[], metavar=("NAME", "SOURCE", "OLD", "NEW"))
    for name in ("laws", "jobs", "operations"):
        parser.add_argument(f"--{name}", type=Path, metavar="SOURCE")
    arguments = parser.parse_args()
    for name, source, *folders in arguments.pages:
        write(arguments.folder / name, list(pages(Path(source), folders)), SURE)
    for name, read, sure in (("laws", laws, SURE), ("jobs", jobs, KEPT), ("operations", operations, SURE)):
        if source := getattr(arguments, name):
            write(arguments.folder / name, list(read(source)), sure)


def pages(source: Path, folders: Sequence[str]) -> Iterator[Document]:
    """Yield the pages of a repository. folders: as git names them, such as v1.6:website/docs."""
    names = {folder: [name for name in _names(source, folder) if name.endswith((".md", ".mdx"))] for folder in folders}
    chosen = _some(set().union(*names.values()))
    for folder, found in names.items():
        for name in found:
            if name in chosen:
                yield from _long_enough(Document(name, _git(source, "show", f"{folder}/{name}")), 30)


def laws(source: Path) -> Iterator[Document]:
    both = set.intersection(*(set(_names(source, version)) for version in LAWS))
    names = sorted(name for name in both if name.endswith("index.md"))
    random.Random(2).shuffle(names)
    for name in names[:160]:
        for version in LAWS:
            parts = re.split(r"(?m)^#+ (?=§)", _git(source, "show", f"{version}:{name}"))
            for part in parts[1:31]:
                number = " ".join(part.split()[:2])
                yield from _long_enough(Document(f"{name} {number}", " ".join(part.split())), 15)


def jobs(source: Path) -> Iterator[Document]:
    for name in _names(source, "HEAD"):
        if name.endswith(".csv"):
            for row in csv.DictReader(io.StringIO(_git(source, "show", f"HEAD:{name}"))):
                key = f"{row['company'].strip()} {row['title'].strip().lower()}"
                yield from _long_enough(Document(key, f"{row['title']}\n{row['description']}"), 15)


def operations(source: Path) -> Iterator[Document]:
    with zipfile.ZipFile(source) as wheel:
        versions = defaultdict(list)
        for name in sorted(wheel.namelist()):
            if found := re.search(r"/documents/([^./]+)\.(.+)\.json$", name):
                versions[found[1]].append(name)
        documents = [
            Document(key, text)
            for names in versions.values()
            if len(names) > 1
            for name in names[:2]
            for key, text in _described(json.loads(wheel.read(name)))
        ]
    chosen = _some({document.key for document in documents})
    for document in documents:
        if document.key in chosen:
            yield from _long_enough(document, 5)


def write(folder: Path, documents: Sequence[Document], sure: float) -> None:
    """Write a collection: documents, ranked lists, labels of the pairs that a list or a key brings together."""
    words = [_words(document.text) for document in documents]
    lists = _ranked(documents, words)
    keys = defaultdict(list)
    for place, document in enumerate(documents):
        keys[document.key].append(place)
    together = {
        pair for places in [*keys.values(), *(sorted(each) for _, each in lists)] for pair in combinations(places, 2)
    }
    pairs = []
    groups = list(range(len(documents)))
    for one, other in sorted(together):
        same = documents[one].key == documents[other].key
        kept = _kept(words[one], words[other], KEPT if same else sure)
        label = (1 if kept else -1) if same else (-1 if kept else 0)
        if label or _kept(words[one], words[other], 0.5):
            pairs.append({"a": str(one), "b": str(other), "label": label, "kind": "one key" if same else "two keys"})
        if label == 1:
            groups = [groups[one] if group == groups[other] else group for group in groups]
    members = defaultdict(list)
    for place, group in enumerate(groups):
        members[group].append(str(place))
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "documents", [{"id": str(place), **document._asdict()} for place, document in enumerate(documents)])
    _write(folder / "pairs", pairs)
    _write(folder / "clusters", [{"cluster": str(c), "members": some} for c, some in members.items() if len(some) > 1])
    _write(folder / "results", [{"query": str(q), "results": [{"id": str(hit)} for hit in hits]} for q, hits in lists])
    labels = Counter(pair["label"] for pair in pairs)
    print(f"{folder.name}: {len(documents):,} documents, {labels[1]:,} copies", file=sys.stderr)


def _ranked(documents: Sequence[Document], words: Sequence[list[str]]) -> list[tuple[int, list[int]]]:
    """Return documents, half of them with a second version, each with the places of its hundred best hits."""
    schema = tantivy.SchemaBuilder().add_text_field("text").add_unsigned_field("place", stored=True).build()
    index = tantivy.Index(schema)
    writer = index.writer(num_threads=1)
    for place, some in enumerate(words):
        writer.add_document(tantivy.Document(text=" ".join(some), place=place))
    writer.commit()
    index.reload()
    searcher = index.searcher()
    draw, seen = random.Random(1), Counter(document.key for document in documents)
    places = draw.sample(range(len(documents)), len(documents))
    versions = [place for place in places if seen[documents[place].key] > 1]
    asked = dict.fromkeys([*versions[: LISTS // 2], *places])
    lists = []
    for place in list(asked)[:LISTS]:
        query, _ = index.parse_query_lenient(" ".join(words[place][:QUERY]), ["text"])
        hits = [searcher.doc(address)["place"][0] for _, address in searcher.search(query, 100).hits]
        lists.append((place, hits))
    return lists


def _kept(one: list[str], other: list[str], least: float) -> bool:
    """Return whether a share of the words of the longer text is in the other one, in the same order."""
    asked = least * max(len(one), len(other))
    if (Counter(one) & Counter(other)).total() < asked:
        return False
    return sum(block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()) >= asked


def _described(api: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for method in api.get("methods", {}).values():
        yield method["id"], method.get("description", "")
    for resource in api.get("resources", {}).values():
        yield from _described(resource)


def _some(keys: Iterable[str]) -> set[str]:
    drawn = sorted(keys)
    random.Random(3).shuffle(drawn)
    return set(drawn[:MOST])


def _long_enough(document: Document, words: int) -> Iterator[Document]:
    if len(_words(document.text)) >= words:
        yield document


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _names(source: Path, version: str) -> list[str]:
    return _git(source, "ls-tree", "-r", "--name-only", version).splitlines()


def _git(source: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", source, *words], capture_output=True, check=True).stdout.decode(
        errors="replace"
    )


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with gzip.open(f"{path}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


if __name__ == "__main__":
    main()
