"""Passages for a language model: facts in the first ten and within a budget, and the time that choosing them takes.

    python -m benchmarks.passages [facts] [pools] [wordings] [times] [--json out.json]
    python -m benchmarks.passages vectors --data FOLDER
    python -m benchmarks.passages engine --elasticsearch URL

facts: The demonstration collection (sections of the CIA World Factbook, each as of July and of October 2022) is cut
       into chunks of 120 words, 40 of them repeated from the chunk before. An embedded index finds 50 chunks for each
       question, and each method chooses from these: the first ten, and the first that 1,000 words have room for.
       A question is the title of a section, or a few words about many countries. A fact is a line of the Factbook
       that belongs to the section, or holds all words of the question; equal lines are one fact, and a line that was
       updated between July and October is two. A passage has a fact if the whole line stands in it.
pools: What a retriever may find, made so that each fact is known: 30 pools of some 40 passages in random order. Three
       documents of one country each are cut into passages of five facts (lines of the Factbook), which repeat 10, 25 or
       50 % of the passage before, at least one fact; nine passages are there again with a changed word in the frame of
       another source; three texts of three facts have an update, the text with a changed word and three more facts;
       two facts are quoted inside other passages. A method shows what 400 words have room for. Words twice: of facts
       that were shown before. Lost: facts that no passage shows when there is room for all, over all pools.
       Uncited: passages given that are then neither shown nor listed under one that is shown; others list nothing.
wordings: What embeddings find and a comparison of words does not, and the reverse. A fact about a country is one
       passage in the form of the Factbook, and another one as a sentence; all seven facts about a country also make
       one passage in either form. A method drops passages from the list of all passages of both forms. It is right
       where a passage is dropped for the other form of the same passage, and wrong otherwise.
vectors: Whether the cosine of two WordLlama vectors decides better than sketches, or beside them: F1 over the labelled
       pairs of each collection in the folder `--data`, with the same bar on the cosine for all collections, and the
       share of the pairs of different texts that are joined.
engine: The same on an Elasticsearch (9.3 or later), which finds 50 chunks by `match` for 40 of the questions about one
       section and the 20 about many countries: the first ten of them, ten by its `diversify` (lambda 0.5, vectors of
       WordLlama), ten by `ndd.passages`. The index is made for it, and deleted.
times: 50 and 5,000 passages of 200 words to ten, with and without stored sketches: all different, a fifth of them
       copies, and all with the same 60 words at their head; and as many chunks of 120 words as hold most words of a
       question (all 4,157 instead of 5,000). Milliseconds of processor time, the median of the runs.

Vectors are of TF-IDF weights, and of WordLlama, a model of static word embeddings of 16 MB that its package contains.
With either of them: maximal marginal relevance (lambda 0.5), as LangChain computes it, and dropping passages whose
cosine to a better one is 0.95 or more, the default of LangChain's EmbeddingsRedundantFilter. Neither is a transformer.
These methods need the extra `bench`.
"""

from __future__ import annotations

from benchmarks.measure import measure  # first: it limits threads before numpy is imported

# isort: split
import argparse
import gzip
import json
import random
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from statistics import mean
from time import process_time
from typing import Any

import numpy as np

import ndd_search as ndd
from benchmarks.real_words import FACTBOOK
from ndd_search.core.sketching import sketch_many
from ndd_search.errors import InvalidDocument

CHUNK, REPEATED, FOUND, SHOWN, BUDGET = 120, 40, 50, 10, 1000
COSINE = 0.95
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
QUESTION = {"natural", "hazards:", "earthquakes,", "volcanic", "activity", "tropical", "storms"}
Chunk = dict[str, Any]
Choose = Callable[[str, list[Chunk], int | None], list[str]]
Vectors = Callable[[list[str]], Any]


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


def marginal_relevance(vectors: Vectors, question: str, found: list[Chunk], budget: int | None) -> list[str]:
    most = SHOWN if budget is None else len(found)
    return first([one["text"] for one in by_marginal_relevance(vectors, question, found, most)], budget)


def by_marginal_relevance(vectors: Vectors, question: str, found: list[Chunk], most: int) -> list[Chunk]:
    from langchain_core.vectorstores.utils import maximal_marginal_relevance

    rows = vectors([*(one["text"] for one in found), question])
    return [found[i] for i in maximal_marginal_relevance(rows[-1], list(rows[:-1]), k=most)]


def redundancy_filter(vectors: Vectors, bar: float, question: str, found: list[Chunk], budget: int | None) -> list[str]:
    texts = [one["text"] for one in found]
    return first([texts[i] for i, of in dropped(vectors(texts), bar).items() if of is None], budget)


def dropped(rows: Any, bar: float) -> dict[int, int | None]:
    """For each passage the better one for which it is dropped, None if it is kept."""
    alike = rows @ rows.T
    found: dict[int, int | None] = {}
    kept: list[int] = []
    for i in range(len(rows)):
        found[i] = next((j for j in kept if alike[i, j] >= bar), None)
        if found[i] is None:
            kept.append(i)
    return found


def ours(question: str, found: list[Chunk], budget: int | None, **options: Any) -> list[str]:
    size = SHOWN if budget is None else None
    return ndd.passages(found, size=size, max_tokens=budget, count_tokens=_words, **options).texts


def _words(text: str) -> int:
    return len(text.split())


ours_merged = partial(ours, merge=True)


def both(question: str, found: list[Chunk], budget: int | None) -> list[str]:
    return ours_merged(question, by_marginal_relevance(static_embeddings, question, found, FOUND), budget)


def tf_idf(texts: list[str]) -> Any:
    """Of unit length, dense."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer().fit_transform(texts).toarray()


def static_embeddings(texts: list[str]) -> Any:
    """Of unit length."""
    return _model().embed(texts, norm=True)


@cache
def _model() -> Any:
    import wordllama

    # the files are in the package, whose own search for the tokenizer looks in another folder
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def words_of_model(text: str) -> int:
    """How many tokens a model of WordLlama's vocabulary, which is Llama's, makes of a text."""
    return len(_model().tokenizer.encode(text, add_special_tokens=False).ids)


METHODS: dict[str, Choose] = {
    "as ranked": as_ranked,
    "equal texts dropped": different_texts,
    "TF-IDF, cosine below 0.95": partial(redundancy_filter, tf_idf, COSINE),
    "TF-IDF, marginal relevance": partial(marginal_relevance, tf_idf),
    "WordLlama, cosine below 0.95": partial(redundancy_filter, static_embeddings, COSINE),
    "WordLlama, marginal relevance": partial(marginal_relevance, static_embeddings),
    "ndd.passages": ours,
    "ndd.passages, merge": ours_merged,
    "WordLlama, marginal relevance, then ndd.passages, merge": both,
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


def facts() -> list[dict[str, Any]]:
    every, lines = chunks()
    all_lines = set().union(*lines.values())
    about = {topic: {line for line in all_lines if holds(line, topic)} for topic in TOPICS}
    rows = []
    for choose in METHODS.values():  # what they load once is not timed
        choose(every[0]["text"], every[:2], None)
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


RECORDS = {"airports", "febrl", "persons"}  # collections of records, which have no text
POOLS, POOL_BUDGET, FACTS_EACH, EDIT = 30, 400, 5, "so-called"
FRAMES = [
    ("PARIS, May 3 (AFP) -", ""),
    ("LONDON (Wire) -", "| City Post"),
    ("UPDATE 2 -", "Reporting by Jane Smith; editing by Bob Jones"),
]
BARS = {"TF-IDF": (tf_idf, 0.7), "WordLlama": (static_embeddings, 0.85)}  # the best of 0.7, 0.8, 0.85, 0.9 and 0.95


def pools() -> list[dict[str, Any]]:
    methods = {name: choose for name, choose in METHODS.items() if choose is not both}
    for name, (vectors, bar) in BARS.items():
        methods[f"{name}, cosine below {bar}"] = partial(redundancy_filter, vectors, bar)
    methods["ndd.passages, keep longest"] = partial(ours, keep=["longest"])
    rows = []
    for name, choose in methods.items():
        shown, twice, words, lost, uncited = [], [], [], [], []
        for seed in range(POOLS):
            question, facts, found = pool(seed, (0.1, 0.25, 0.5)[seed % 3])
            texts = choose(question, found, POOL_BUDGET)
            times = [sum(map(partial(tells, fact), texts)) for fact in facts]
            shown.append(sum(map(bool, times)))
            twice.append(
                sum((often - 1) * len(fact.split()) for often, fact in zip(times, facts, strict=True) if often)
            )
            words.append(sum(len(text.split()) for text in texts))
            every = choose(question, found, 10**6)
            lost.append(sum(not any(map(partial(tells, fact), every)) for fact in facts))
            uncited.append(len(found) - len(every) if "ndd" not in name else _uncited(found, name))
        by_overlap = [round(mean(shown[part::3]), 1) for part in range(3)]
        rows.append(
            {
                "method": name,
                "facts in 400 words": round(mean(shown), 2),
                "overlap of 10, 25, 50 %": ", ".join(map(str, by_overlap)),
                "words": round(mean(words)),
                "words twice": round(mean(twice), 1),
                "lost": f"{sum(lost)} of {sum(len(pool(seed, 0.1)[1]) for seed in range(POOLS))}",
                "uncited": sum(uncited),
            }
        )
    return rows


def pool(seed: int, overlap: float) -> tuple[str, list[str], list[Chunk]]:
    """Return a question, the facts of a pool, and its passages in random order."""
    pick = random.Random(seed)
    countries = pick.sample([one for one, lines in _of_countries().items() if len(lines) >= 14], 3)
    documents = [pick.sample(_of_countries()[country], 14) for country in countries]
    others = [line for country, lines in _of_countries().items() if country not in countries for line in lines]
    rest = pick.sample(others, 24)
    found: list[Chunk] = []

    def add(parts: list[str], source: str, start: int = 0) -> None:
        found.append({"id": len(found), "text": " ".join(parts), "document": source, "source": source, "start": start})

    repeated = max(round(FACTS_EACH * overlap), 1)
    for country, facts in zip(countries, documents, strict=True):
        starts = [sum(len(fact) + 1 for fact in facts[:at]) for at in range(len(facts))]
        for at in range(0, len(facts) - repeated, FACTS_EACH - repeated):
            add(facts[at : at + FACTS_EACH], country, starts[at])
    for number, one in enumerate(pick.sample(found, 9)):
        head, foot = pick.choice(FRAMES)
        add([head, edited(one["text"], pick), foot], f"copy {number}")
    for number in range(3):
        old, new = rest[6 * number : 6 * number + 3], rest[6 * number + 3 : 6 * number + 6]
        add(old, f"report {number}")
        add([edited(" ".join(old), pick), *new], f"update {number}")
    for number in range(2):
        before, quoted, after = rest[18 + 3 * number : 21 + 3 * number]
        add([quoted], f"quoted {number}")
        add([before, quoted, after], f"page {number}")
    pick.shuffle(found)
    return " ".join(countries), [*(fact for facts in documents for fact in facts), *rest], found


@cache
def _of_countries() -> dict[str, list[str]]:
    """The lines of 13 to 19 words about each country."""
    found: dict[str, list[str]] = {}
    for line in sorted(set().union(*chunks()[1].values())):
        if 13 <= len(line.split()) <= 19:
            found.setdefault(line.partition(":")[0], []).append(line)
    return found


def edited(text: str, pick: random.Random) -> str:
    words = text.split()
    words[pick.randrange(len(words))] = EDIT
    return " ".join(words)


def tells(fact: str, text: str) -> bool:
    """Whether a text has a fact, which may have a changed word."""
    words = fact.split()
    forms = (" ".join([*words[:at], EDIT, *words[at + 1 :]]) for at in range(len(words)))
    return fact in text or (EDIT in text and any(form in text for form in forms))


def _uncited(found: list[Chunk], name: str) -> int:
    keep = ["longest"] if "longest" in name else ["score"]
    chosen = ndd.passages(found, size=len(found), merge="merge" in name, keep=keep)
    named = {one.id for one in chosen} | {copy.id for one in chosen for copy in one.copies}
    return len(found) - len(named)


SENTENCES = {
    "Government type": "{country} is governed as a {value}.",
    "Independence": "The {value}: on this day {country} became independent.",
    "National holiday": "The people of {country} celebrate {value}.",
    "Suffrage": "Whoever votes in {country} has to be at least {value}.",
    "Legal system": "The courts of {country} follow {value}.",
    "residency requirement for naturalization": "Foreigners can become citizens of {country} after {value}.",
    "National symbol(s)": "Symbols of {country} are {value}.",
}


def profiles() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return of each fact, and of all facts of each country, a passage as in the Factbook and one of sentences."""
    values: dict[str, dict[str, str]] = {}
    for lines in chunks()[1].values():
        for country, name, value in (line.split(": ", 2) for line in sorted(lines) if line.count(": ") >= 2):
            if name in SENTENCES:
                values.setdefault(country, {})[name] = value
    facts, whole = [], []
    for country, known in values.items():
        of_one = [
            (f"{country}: {name}: {value}", SENTENCES[name].format(country=country, value=value))
            for name, value in sorted(known.items())
        ]
        facts += of_one
        whole.append((" ".join(listed for listed, _ in of_one), " ".join(sentence for _, sentence in of_one)))
    return facts, whole


def wordings() -> list[dict[str, Any]]:
    methods: dict[str, Callable[[list[str]], dict[int, int | None]]] = {
        f"{name}, cosine below {bar}": partial(_dropped_by_vectors, vectors, bar)
        for name, vectors in (("TF-IDF", tf_idf), ("WordLlama", static_embeddings))
        for bar in (COSINE, 0.9, 0.8)
    }
    methods["ndd.passages"] = _dropped_by_us
    rows = []
    for kind, pairs in zip(("one fact", "seven facts"), profiles(), strict=True):
        texts = [pair[form] for form in (0, 1) for pair in pairs]
        for name, method in methods.items():
            found = [(one, other) for one, other in method(texts).items() if other is not None]
            right = sum((one - other) % len(pairs) == 0 for one, other in found)
            rows.append(
                {"passages": f"{kind} (2 x {len(pairs)})", "method": name, "right": right, "wrong": len(found) - right}
            )
    return rows


def _dropped_by_vectors(vectors: Vectors, bar: float, texts: list[str]) -> dict[int, int | None]:
    return dropped(vectors(texts), bar)


def _dropped_by_us(texts: list[str]) -> dict[int, int | None]:
    return {copy.rank: one.rank for one in ndd.passages(texts, size=len(texts)) for copy in one.copies}


def engine(address: str) -> list[dict[str, Any]]:
    from elasticsearch import Elasticsearch, helpers

    every, lines = chunks()
    all_lines = set().union(*lines.values())
    titles = sorted(lines)
    questions = {title: lines[title] for title in titles[:: len(titles) // 40][:40]}
    questions |= {topic: {line for line in all_lines if holds(line, topic)} for topic in TOPICS}
    rows = static_embeddings([one["text"] for one in every])
    vector = {"type": "dense_vector", "dims": rows.shape[1], "similarity": "cosine"}
    name, covering = "ndd-benchmark-passages", dict[str, list[int]]()
    with Elasticsearch(address, request_timeout=60) as client:
        client.indices.create(index=name, mappings={"properties": {"text": {"type": "text"}, "vector": vector}})
        try:
            actions = ({"_index": name, **one, "vector": row.tolist()} for one, row in zip(every, rows, strict=True))
            helpers.bulk(client, actions, refresh=True)
            for question, relevant in questions.items():
                match = {"standard": {"query": {"match": {"text": question}}}}
                spread = {
                    "type": "mmr",
                    "field": "vector",
                    "lambda": 0.5,
                    "size": SHOWN,
                    "rank_window_size": FOUND,
                    "query_vector": static_embeddings([question])[0].tolist(),
                    "retriever": match,
                }
                found = [
                    [hit["_source"] for hit in client.search(index=name, retriever=one, size=size)["hits"]["hits"]]
                    for one, size in ((match, FOUND), ({"diversify": spread}, SHOWN))
                ]
                chosen = {
                    "as ranked": as_ranked(question, found[0], None),
                    "diversify": as_ranked(question, found[1], None),
                    "ndd.passages": ours(question, found[0], None),
                    "ndd.passages, merge": ours_merged(question, found[0], None),
                }
                for method, texts in chosen.items():
                    covering.setdefault(method, []).append(covered(texts, relevant))
        finally:
            client.indices.delete(index=name)
    return [
        {"method": method, "one section (40)": mean(facts[:40]), "many countries (20)": mean(facts[40:])}
        for method, facts in covering.items()
    ]


def vectors(folder: Path) -> list[dict[str, Any]]:
    from benchmarks.study.collection import read_collection
    from benchmarks.study.methods import by_presets

    default, found = by_presets()[0], dict[str, dict[str, float]]()
    for place in sorted(folder.iterdir()):
        if not (place / "pairs.jsonl.gz").exists():
            continue
        try:
            collection = read_collection(place)
        except InvalidDocument as error:
            print(f"{error}: left out", file=sys.stderr)
            continue
        if (pairs := collection.pairs) is None or (place.name in RECORDS):
            continue
        scored = pairs.label >= 0
        first, second, label = pairs.first[scored], pairs.second[scored], pairs.label[scored] == 1
        texts = collection.texts
        ours = default.prepare(texts).scores(first, second) >= default.bar
        parts = [static_embeddings(texts[at : at + 256]) for at in range(0, len(texts), 256)]
        cosines = np.einsum("ij,ij->i", np.concatenate(parts)[first], np.concatenate(parts)[second])
        said = {"default": ours}
        for bar in (COSINE, 0.9):
            said[f"cosine of {bar}"] = cosines >= bar
            said[f"default or {bar}"] = ours | (cosines >= bar)
            said[f"default and {bar}"] = ours & (cosines >= bar)
        found[place.name] = {name: round(_f1(one, label), 3) for name, one in said.items()}
        joined = {name: round(float(said[name][~label].mean()), 3) for name in ("default", f"default or {COSINE}")}
        found[place.name] |= {f"different joined, {name}": share for name, share in joined.items()}
    means = {name: round(mean(one[name] for one in found.values()), 3) for name in next(iter(found.values()))}
    return [{"collection": name, **one} for name, one in {**found, "mean": means}.items()]


def _f1(said: Any, label: Any) -> float:
    return float(2 * (said & label).sum() / max(said.sum() + label.sum(), 1))


def times() -> list[dict[str, Any]]:
    recipe = ndd.Recipe()
    rows = []
    for count in (50, 5000):
        for kind, texts in lists(count).items():
            stored = [
                {"text": text, "ndd": {"sketch": sketch.tolist(), "recipe": recipe.id}}
                for text, sketch in zip(texts, sketch_many(texts), strict=True)
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
            rows.append({"passages": len(texts), "kind": kind, **milliseconds})
    return rows


def lists(count: int) -> dict[str, list[str]]:
    pick = random.Random(count)
    cut = [chunk["text"] for chunk in chunks()[0]]
    words = np.array(sorted({word for text in cut for word in text.split()}))
    different = [" ".join(words[[pick.randrange(len(words)) for _ in range(200)]]) for _ in range(count)]
    copies = [f"{text} updated" for text in different[: count // 5]]
    head = " ".join(words[:60])
    return {
        "different": different,
        "a fifth copies": different[: count - len(copies)] + copies,
        "one head": [f"{head} {text}" for text in different],
        "chunks": sorted(cut, key=lambda text: -len(QUESTION & set(text.casefold().split())))[:count],
    }


ELSEWHERE: dict[str, tuple[str, Callable[[Any], list[dict[str, Any]]]]] = {
    "vectors": ("data", vectors),
    "engine": ("elasticsearch", engine),
}
PARTS = {"facts": facts, "pools": pools, "wordings": wordings, "times": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="facts, pools, wordings, times (all); vectors, engine")
    parser.add_argument("--data", type=Path, help="a folder of labelled collections, for vectors")
    parser.add_argument("--elasticsearch", metavar="URL", help="of an Elasticsearch, for engine")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - {*PARTS, *ELSEWHERE}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    found = {name: part() for name, part in PARTS.items() if not arguments.parts or name in arguments.parts}
    for name, (option, part) in ELSEWHERE.items():
        if name in arguments.parts:
            if (where := getattr(arguments, option)) is None:
                parser.error(f"{name} needs --{option}")
            found[name] = part(where)
    for rows in found.values():
        print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
        for row in rows:
            print("| " + " | ".join(map(str, row.values())) + " |")
        print()
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
