"""Passages for a language model: facts in the first ten and within a budget, and the time that choosing them takes.

    python -m benchmarks.passages [facts] [times] [--json out.json]

facts: The demonstration collection (sections of the CIA World Factbook, each as of July and of October 2022) is cut
       into chunks of 120 words, 40 of them repeated from the chunk before. An embedded index finds 50 chunks for each
       question, and each method chooses from these: the first ten, and the first that 1,000 words have room for.
       A question is the title of a section, or a few words about many countries. A fact is a line of the Factbook
       that belongs to the section, or holds all words of the question; equal lines are one fact, and a line that was
       updated between July and October is two. A passage has a fact if the whole line stands in it.
times: 50 and 5,000 passages of 200 words to ten, with and without stored sketches: all different, a fifth of them
       copies, and all with the same 60 words at their head. Milliseconds of processor time, the median of the runs.

The methods with TF-IDF vectors stand in for embeddings: maximal marginal relevance (lambda 0.5) and dropping what has a
cosine of 0.95 to something above it, as retrieval frameworks do. They need the extra `bench`.
"""

from __future__ import annotations

from benchmarks.measure import measure  # first: it limits threads before numpy is imported

# isort: split
import argparse
import gzip
import json
import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean
from time import process_time
from typing import Any

import numpy as np

import ndd_search as ndd

FACTBOOK = Path(ndd.__file__).parent / "demo_data" / "factbook.jsonl.gz"
CHUNK, REPEATED, FOUND, SHOWN, BUDGET = 120, 40, 50, 10, 1000
TOPICS = [
    "independence from Spain",
    "independence from France",
    "national holiday",
    "capital etymology",
    "highest point mountain",
    "natural gas exports",
    "crude oil reserves",
    "military service age",
    "drinking water source rural",
    "refugees Ukraine",
    "active volcano",
    "earthquakes hazards",
    "president elected vote",
    "constitution amendments proposed",
    "supreme court judges appointed",
    "coal consumption",
    "mobile cellular subscriptions",
    "unemployment rate",
    "land boundaries border countries",
    "flag stripes symbolizes",
]
Chunk = dict[str, Any]
Choose = Callable[[str, list[Chunk], int | None], list[str]]


def chunks() -> tuple[list[Chunk], dict[str, set[str]]]:
    """The chunks of the collection, and the lines of each section in either version."""
    made: list[Chunk] = []
    lines: dict[str, set[str]] = {}
    with gzip.open(FACTBOOK, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            country = row["title"].partition(":")[0]
            whole = [f"{country}: {line}" for line in row["text"].splitlines() if len(line.split()) > 3]
            lines.setdefault(row["title"], set()).update(" ".join(line.split()) for line in whole)
            words = [*row["title"].split(), *(word for line in whole for word in line.split())]
            for number, start in enumerate(range(0, max(len(words) - REPEATED, 1), CHUNK - REPEATED)):
                text = " ".join(words[start : start + CHUNK])
                made.append({"id": f"{row['id']}-{number}", "text": text, "document": row["id"]})
    return made, lines


def as_ranked(question: str, found: list[Chunk], budget: int | None) -> list[str]:
    return first([one["text"] for one in found], budget)


def different_texts(question: str, found: list[Chunk], budget: int | None) -> list[str]:
    return first(list(dict.fromkeys(one["text"] for one in found)), budget)


def marginal_relevance(question: str, found: list[Chunk], budget: int | None) -> list[str]:
    texts = [one["text"] for one in found]
    rows, wanted = vectors(texts, question)
    relevance, alike = rows @ wanted, rows @ rows.T
    order: list[int] = []
    left = list(range(len(texts)))
    while left:
        best = max(left, key=lambda i: relevance[i] - max((alike[i, j] for j in order), default=0))
        order.append(best)
        left.remove(best)
    return first([texts[i] for i in order], budget)


def redundancy_filter(question: str, found: list[Chunk], budget: int | None) -> list[str]:
    texts = [one["text"] for one in found]
    rows, _ = vectors(texts, question)
    alike = rows @ rows.T
    kept: list[int] = []
    for i in range(len(texts)):
        if all(alike[i, j] < 0.95 for j in kept):
            kept.append(i)
    return first([texts[i] for i in kept], budget)


def ours(question: str, found: list[Chunk], budget: int | None) -> list[str]:
    return ndd.passages(found, size=SHOWN if budget is None else None, max_tokens=budget).texts


def ours_merged(question: str, found: list[Chunk], budget: int | None) -> list[str]:
    return ndd.passages(found, size=SHOWN if budget is None else None, max_tokens=budget, merge=True).texts


METHODS: dict[str, Choose] = {
    "as ranked": as_ranked,
    "equal texts dropped": different_texts,
    "TF-IDF, cosine below 0.95": redundancy_filter,
    "TF-IDF, marginal relevance": marginal_relevance,
    "ndd.passages": ours,
    "ndd.passages, merge": ours_merged,
}


def first(texts: list[str], budget: int | None) -> list[str]:
    """The first ten, or the first that fit one after the other."""
    if budget is None:
        return texts[:SHOWN]
    chosen = []
    for text in texts:
        if (words := len(text.split())) <= budget:
            chosen.append(text)
            budget -= words
    return chosen


def vectors(texts: list[str], question: str) -> tuple[Any, Any]:
    """Of unit length, dense."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    made = TfidfVectorizer().fit_transform([*texts, question]).toarray()
    return made[:-1], made[-1]


def facts() -> list[dict[str, Any]]:
    every, lines = chunks()
    all_lines = set().union(*lines.values())
    about = {topic: {line for line in all_lines if holds(line, topic)} for topic in TOPICS}
    rows = []
    with (
        tempfile.TemporaryDirectory() as place,
        ndd.Index.open(Path(place) / "index", text=["text"], language="english") as index,
    ):
        index.add(every)
        for kind, questions in (("one section", lines), ("many countries", about)):
            found = {
                one: [hit["_source"] for hit in index.search(one, size=FOUND, mode="annotate")["hits"]["hits"]]
                for one in questions
            }
            for name, choose in METHODS.items():
                ten, budget, words, taken = [], [], [], []
                for question, relevant in questions.items():
                    began = process_time()
                    texts = choose(question, found[question], None)
                    taken.append(process_time() - began)
                    ten.append(covered(texts, relevant))
                    words.append(sum(len(text.split()) for text in texts))
                    budget.append(covered(choose(question, found[question], BUDGET), relevant))
                rows.append(
                    {
                        "questions": f"{kind} ({len(questions)})",
                        "method": name,
                        "facts in ten": round(mean(ten), 2),
                        "words of ten": round(mean(words)),
                        "facts in 1,000 words": round(mean(budget), 2),
                        "ms a question": round(1000 * mean(taken), 2),
                    }
                )
    return rows


def covered(texts: list[str], relevant: set[str]) -> int:
    return sum(any(line in text for text in texts) for line in relevant)


def holds(line: str, topic: str) -> bool:
    folded = line.casefold()
    return all(word.casefold() in folded for word in topic.split())


def times() -> list[dict[str, Any]]:
    recipe = ndd.Recipe()
    rows = []
    for count in (50, 5000):
        for kind, texts in lists(count).items():
            stored = [
                {"text": text, "ndd": {"sketch": sketch.tolist(), "recipe": recipe.id}}
                for text, sketch in zip(texts, ndd.sketch_many(texts), strict=True)
            ]
            found = measure(
                {
                    "from texts": partial(ndd.passages, texts),
                    "sketches stored": partial(ndd.passages, stored),
                    "stored, no frequency table": partial(ndd.passages, stored, frequency_table=False),
                },
                rounds=11 if count == 50 else 3,
            )
            milliseconds = {name: round(value / 1000, 3) for name, value in found.items()}
            rows.append({"passages": count, "kind": kind, **milliseconds})
    return rows


def lists(count: int) -> dict[str, list[str]]:
    pick = random.Random(count)
    words = np.array(sorted({word for chunk in chunks()[0] for word in chunk["text"].split()}))
    different = [" ".join(words[[pick.randrange(len(words)) for _ in range(200)]]) for _ in range(count)]
    copies = [f"{text} updated" for text in different[: count // 5]]
    head = " ".join(words[:60])
    return {
        "different": different,
        "a fifth copies": different[: count - len(copies)] + copies,
        "one head": [f"{head} {text}" for text in different],
    }


PARTS = {"facts": facts, "times": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="facts, times (both)")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    found = {name: part() for name, part in PARTS.items() if not arguments.parts or name in arguments.parts}
    for rows in found.values():
        print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
        for row in rows:
            print("| " + " | ".join(map(str, row.values())) + " |")
        print()
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
