"""Measure result pages of a labelled collection before and after collapsing: repeated, full, lost.

    python -m benchmarks.pages FOLDER... [--size 20] [--json out.json]

A FOLDER holds documents.jsonl.gz ({id, text, title}), clusters.jsonl.gz ({cluster, members}) and queries.jsonl.gz
({qid, query}). Its documents are put into an embedded index, and every query is run on it.

dup@10:   share of the first ten hits whose cluster was already shown above.
full:     share of the pages with `size` hits, among those whose query has so many different clusters in its window.
lost:     share of the clusters in a window of 100 hits without a document in the stream.
balanced: whether examined = kept + hidden, and shown + listed = examined, on every page.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ndd_search as ndd

WINDOW = 100


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def repeats(ids: list[str], cluster: dict[str, str]) -> float:
    """Return the share of hits whose cluster was already shown above."""
    seen: set[str] = set()
    found = 0
    for one in ids:
        found += cluster.get(one, one) in seen
        seen.add(cluster.get(one, one))
    return found / max(len(ids), 1)


def measure(folder: Path, size: int, settings: dict[str, Any]) -> dict[str, Any]:
    cluster = {member: row["cluster"] for row in rows(folder / "clusters.jsonl.gz") for member in row["members"]}
    queries = [row["query"] for row in rows(folder / "queries.jsonl.gz")]
    before, after, fillable, full, lost, clusters, balanced = [], [], 0, 0, 0, 0, True
    with (
        tempfile.TemporaryDirectory() as place,
        ndd.Index.open(Path(place) / "index", text=["title", "text"], language="none") as index,
    ):
        count = index.add(rows(folder / "documents.jsonl.gz"))
        for query in queries:
            plain = [
                hit["_id"] for hit in index.search(query, size=WINDOW, mode="annotate", **settings)["hits"]["hits"]
            ]
            page = index.search(query, size=size, **settings)
            stream = index.search(query, size=WINDOW, max_window=WINDOW, **settings)
            hits = page["hits"]["hits"]
            before.append(repeats(plain[:10], cluster))
            after.append(repeats([hit["_id"] for hit in hits[:10]], cluster))
            in_window = {cluster.get(one, one) for one in plain}
            fillable += len(in_window) >= size
            full += len(in_window) >= size and len(hits) == size
            clusters += len(in_window)
            lost += len(in_window - {cluster.get(hit["_id"], hit["_id"]) for hit in stream["hits"]["hits"]})
            listed = sum(
                len(hit["inner_hits"]["near_duplicates"]["hits"]["hits"]) if "inner_hits" in hit else 0
                for hit in stream["hits"]["hits"]
            )
            facts = stream["ndd"]
            balanced &= facts["examined"] == facts["kept"] + facts["hidden"] == len(stream["hits"]["hits"]) + listed
    return {
        "set": folder.name,
        "documents": count,
        "queries": len(queries),
        "dup@10 before": sum(before) / len(before),
        "dup@10 after": sum(after) / len(after),
        "full": full / max(fillable, 1),
        "lost": lost / max(clusters, 1),
        "balanced": balanced,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--size", type=int, default=20, help="hits on a page (20)")
    parser.add_argument("--min-similarity", help="instead of auto: a name or a number")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    arguments = parser.parse_args()
    given = arguments.min_similarity
    settings = {} if given is None else {"min_similarity": float(given) if given[0].isdigit() else given}
    found = [measure(folder, arguments.size, settings) for folder in arguments.folders]
    names = list(found[0])
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row in found:
        cells = [f"{value:.4f}" if isinstance(value, float) else str(value) for value in row.values()]
        print("| " + " | ".join(cells) + " |")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
