"""Make labelled collections of short texts in 29 languages: headlines, and teasers as a news page shows them.

    python -m benchmarks.short_texts BASE... --out FOLDER [--seed 77]    # BASE: see benchmarks.language_collections

heads:   the first lines of the base texts.
teasers: the first line and the first sentence after it.

Near-duplicates: half of the texts are passed on one to three times, as a post with a link, a name or a tag, or in a
news ticker (kind passed_on). Not: each text's nearest other one of its language, by characters and by words in turn, so
that no kind of shingle is favoured (nearest_other). All random choices use one seed and do not depend on the order
of the files.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from benchmarks.kinds_of_text import TOWNS, WORDS, Collection
from ndd_search.core.recipe import Recipe
from ndd_search.core.text.tokens import tokens

LENGTHS = {"heads": (18, 110), "teasers": (36, 275)}  # characters
DENSE = {"ja", "km", "ko", "my", "th"}  # scripts in which half as many characters say as much
SITE_HEADING = 10  # a first line of more texts of its language than this names the site, not the text
SENTENCE_END = r"(?<=[.!?।؟])\s+|(?<=[。！？។။])\s*"
LEAST, COMMON = 0.2, 400  # least resemblance of a nearest other text; shingles in more texts than this are not compared

Text = tuple[str, str]  # language, text or a part of one
Change = Callable[[str, random.Random], str]


def framed(*frames: str) -> Change:
    """Return the text in one of the frames."""

    def change(text: str, rng: random.Random) -> str:
        one, two = rng.sample(WORDS, 2)
        filled = {"one": one, "two": two, "town": rng.choice(TOWNS), "link": f"{rng.getrandbits(40):x}"}
        return rng.choice(frames).format(text, n=rng.randint(1, 9), m=rng.randint(10, 28), **filled)

    return change


def cut(text: str, rng: random.Random) -> str:
    return text[: round(len(text) * rng.uniform(0.8, 0.96))] + "…"


def cased(text: str, rng: random.Random) -> str:
    return text.upper() if rng.random() < 0.5 else text.lower()


def tagged_inside(text: str, rng: random.Random) -> str:
    words = text.split()
    place = rng.randrange(len(words))
    return " ".join([*words[:place], f"#{words[place]}", *words[place + 1 :]])


def mistyped(text: str, rng: random.Random) -> str:
    """Return the text with one letter left out, doubled, or swapped with the next."""
    at = rng.choice([at for at, letter in enumerate(text) if letter.isalpha()])
    one, two = text[at], text[at + 1 : at + 2]
    return text[:at] + rng.choice([two, one + one + two, two + one]) + text[at + 2 :]


LINKED = framed("{} https://short.example/{link}")
POST = [
    framed("@{one}{m} {}", "@{one}{m} @{two}{n} {}"),
    framed("{} — {town} Times", "{} — {town} Info", "{} — {town} TV"),
    framed("{} (via @{one}_{m})"),
    framed("{} #{one}", "{} #{one} #{two}"),
    framed("😂 {}", "👇 {} 👍", "🔁 {}", "❤️ {} 🙏"),
    framed("{} ({n}/{m})"),
    framed("Exactly! {}", "Read this: {}", "+1 {}", "Interesting {}"),
    *(tagged_inside, cut, cased),
]
TICKER = [
    framed("Did you know? {}", "FACT: {}", "In numbers - {}", "Update: {}"),
    framed("{} (source: almanac)", "{} - World Data", "{} via @worlddata", "{} #facts"),
    framed("{m}.{n}. {}"),
    *(LINKED, cut, cased, mistyped),
]


def short_texts(bases: Iterable[Text]) -> dict[str, list[Text]]:
    """Return the distinct texts of each collection."""
    split = [(language, text.split("\n")) for language, text in sorted(set(bases))]
    headings = Counter((language, lines[0]) for language, lines in split)
    found: dict[str, dict[tuple[str, ...], Text]] = {name: {} for name in LENGTHS}
    for language, lines in split:
        head, *rest = lines[headings[language, lines[0]] > SITE_HEADING :] or [""]
        teaser = f"{head}: {re.split(SENTENCE_END, ' '.join(rest))[0]}"
        for name, text in {"heads": head, "teasers": teaser}.items():
            shortest, longest = (length // (2 if language in DENSE else 1) for length in LENGTHS[name])
            if rest and shortest <= len(text) <= longest:
                found[name].setdefault((language, *tokens(text, Recipe())), (language, text))
    return {name: list(texts.values()) for name, texts in found.items()}


def passed_on(texts: Iterable[Text], rng: random.Random) -> Collection:
    """Return the texts with their copies, and the labelled pairs."""
    made, owner = Collection(), dict[str, str]()
    for language, text in texts:
        members = [made.add(text, language)]
        for _ in range(rng.randint(1, 3) if rng.random() < 0.5 else 0):
            post = rng.random() < 0.5
            copy, changes = text, rng.sample(POST if post else TICKER, rng.randint(1, 3))
            for change in [*changes, LINKED] if post and rng.random() < 0.6 else changes:
                copy = change(copy, rng)
            members.append(made.add(copy, language))
        made.family(members, 1, "passed_on")
        owner |= dict.fromkeys(members, members[0])
    pairs: dict[tuple[str, str], None] = {}
    for start, parts in enumerate((_characters, _words)):
        features = {one["id"]: {(one["lang"], part) for part in parts(one["text"])} for one in made.documents}
        pairs |= dict.fromkeys(_nearest(features, owner, start))
    made.pairs += [(a, b, 0, "nearest_other") for a, b in pairs]
    return made


def _nearest(features: dict[str, set[Text]], owner: dict[str, str], start: int) -> Iterator[tuple[str, str]]:
    """Pair every second document, from `start` on, with the most similar one of another owner."""
    holders = defaultdict(list)
    for name, own in features.items():
        for feature in own:
            holders[feature].append(name)
    for name, own in list(features.items())[start::2]:
        met = Counter(one for each in own if len(holders[each]) < COMMON for one in holders[each])
        others = [(n / (len(own) + len(features[one]) - n), one) for one, n in met.items() if owner[one] != owner[name]]
        resemblance, best = max(others, default=(0.0, ""))
        if LEAST <= resemblance < 1:  # 1: a cut removed the difference
            yield min(name, best), max(name, best)


def _characters(text: str) -> set[str]:
    plain = " ".join(text.lower().split())
    return {plain[start : start + 4] for start in range(len(plain) - 3)}


def _words(text: str) -> set[str]:
    return set(tokens(text, Recipe()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bases", type=Path, nargs="+", metavar="BASE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=77)
    arguments = parser.parse_args()
    lines = [line for path in arguments.bases for line in gzip.decompress(path.read_bytes()).splitlines()]
    bases = [(one["lang"], one["text"]) for one in map(json.loads, lines)]
    for name, texts in short_texts(bases).items():
        passed_on(texts, random.Random(arguments.seed)).write(arguments.out / name)


if __name__ == "__main__":
    main()
