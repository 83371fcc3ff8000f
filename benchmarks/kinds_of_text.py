"""Make labelled collections of products, messages, chunks for language models, and filled forms.

    apt-get update -o Acquire::Languages=en                         # Debian 12
    /usr/lib/apt/apt-helper cat-file /var/lib/apt/lists/*bookworm_main*Translation-en.lz4 > descriptions
    python -m benchmarks.kinds_of_text descriptions unpacked out    # unpacked: see benchmarks.language_collections

products: package descriptions, as a catalogue of real short texts. Near-duplicates: the same package as another shop
          would show it (kind offer; offer_with_counters where it adds deliveries and ratings). Not: packages whose
          names differ in a number only (other_number: gcc-11 and gcc-12), the most similar other ones (nearest_other).
          Not scored: parts of one package (libfoo-dev and libfoo-doc).
messages: sentences of the GNOME manual in twelve languages. Near-duplicates: quoted, linked, shortened, tagged again.
          Not: one template filled with other facts, the nearest other sentence of its language.
chunks:   pages of the manual joined by topic, cut into 120 words with 20 repeated, in two versions that differ in a
          few words and sentences, so that their cuts drift apart. Near-duplicates: two chunks of which at least 60 %
          are the same words in the same order (kind version); not scored: 25 to 60 %; not: neighbours, which share
          their repeated words, and others.
forms, forms_half: bases for the generator of near-duplicates (see benchmarks.language_collections): advertisements and
          notices out of four forms, each with a remark of its own; in the second every other text is none of them.

All random choices use one seed. Texts are CC-BY-SA (GNOME) and under the licences of the packages; they are not part
of this repository.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from benchmarks.language_collections import manual

LANGUAGES = ["de", "es", "fr", "it", "pl", "ru", "el", "hi", "ko", "ja", "cs", "sv"]
WORDS = ["fast", "simple", "free", "modern", "small", "extended", "classic", "lightweight", "handy", "reliable"]
HEADS = ["New:", "Sale!", "Original", "Recommended:", "Official"]
TAILS = [
    "Ready to ship.",
    "Free returns.",
    "Sold and shipped by the maker.",
    "Ask our team for a quote.",
    "Bestseller in its category.",
]
COUNTERS = ["Delivered in {} days.", "Rated {} of 100 by our customers.", "Only {} left.", "{} people look at this."]
FEEDS = [
    "Playing a show in {a} at {n}:00 PM today at {b} https://shows.example/a/{h}",
    "I'm at {b} ({a}) https://places.example/{h}",
    "{a} is hiring! {b} wanted, {n} openings, apply here: https://jobs.example/{h} #jobs",
    "Road closed: {a} between {b} and the {n} exit, use the other lane. #traffic https://roads.example/{h}",
    "{a} {n}, {b} {n2}: final score, read the whole report https://scores.example/{h}",
    "Now reading {b} by {a}, page {n} https://books.example/{h}",
]
FORMS = [
    "Flat to let in {a}: {n} rooms, {m} square metres, floor {n2}, available from {d}. The rent is {p} a month plus "
    "heating and water. The flat has a fitted kitchen, a bathroom with a window and a place in the cellar. Pets by "
    "arrangement. Please call the office in {b} street between nine and noon to see it. {remark}",
    "We are looking for a {job} in {a} from {d}, {n} days a week, for at least {n2} years. You bring a completed "
    "training, a driving licence and a liking for work in a team. We offer {p} a month, thirty days of leave and a "
    "ticket for local transport. Send your papers to the office in {b} street with the number {m}. {remark}",
    "Roadworks in {a}: {b} street is closed between numbers {n} and {m} from {d}. Please follow the signs; buses stop "
    "at the corner instead. Residents can reach their houses on foot at all times. The works cost {p} thousand and "
    "should be done within {n2} weeks, if the weather allows. The town asks for your patience. {remark}",
    "Lost in {a}, near {b} street, on {d}: a {job}'s bag with {n} keys, a notebook of {m} pages and a purse. Whoever "
    "has found it is asked to bring it to the office or to call extension {p}. There is a reward of {n2} times ten. "
    "The office is open on working days from eight to four and on Saturdays until noon. {remark}",
]
JOBS = ["nurse", "carpenter", "teacher", "driver", "gardener", "cook", "plumber", "librarian", "tailor", "optician"]
TOWNS = ["Aldersbach", "Brenham", "Corvallis", "Dunmore", "Esbjerg", "Falun", "Girona", "Hexham", "Ivrea", "Joensuu"]
CHUNK, REPEATED = 120, 20  # words

# Prefixes that many names share.
_GENERIC = {
    "perl",
    "pyth",
    "ruby",
    "gola",
    "java",
    "node",
    "data",
    "comm",
    "util",
    "doc",
    "dev",
    "tool",
    "cora",
    "font",
}

Pair = tuple[str, str, int, str]


class Collection:
    """Collects documents and labelled pairs, and writes them to a folder."""

    def __init__(self) -> None:
        self.documents: list[dict[str, str]] = []
        self.pairs: list[Pair] = []

    def add(self, text: str, language: str = "en") -> str:
        self.documents.append({"id": f"d{len(self.documents):05}", "text": text, "lang": language})
        return self.documents[-1]["id"]

    def family(self, members: Sequence[str], label: int, kind: str) -> None:
        self.pairs += [(a, b, label, kind) for a, b in combinations(members, 2)]

    def nearest(self, owner: dict[str, str], least: float = 0.15) -> None:
        """Pair each document with the most similar one of another owner, by three-word shingles: kind nearest_other."""
        sets = {one["id"]: _shingles(one["text"]) for one in self.documents if one["id"] in owner}
        holders = defaultdict(list)
        for name, shingles in sets.items():
            for shingle in shingles:
                holders[shingle].append(name)
        known = {frozenset(pair[:2]) for pair in self.pairs}
        for name, shingles in sets.items():
            met = Counter(one for shingle in shingles if len(holders[shingle]) < 300 for one in holders[shingle])
            others = [(n / (len(shingles) + len(sets[one]) - n), one) for one, n in met.items()]
            resemblance, best = max((pair for pair in others if owner[pair[1]] != owner[name]), default=(0.0, ""))
            if resemblance >= least and frozenset((name, best)) not in known:
                known.add(frozenset((name, best)))
                kin = _words_of(owner[name]) & _words_of(owner[best])
                self.pairs.append((name, best, *((-1, "part") if kin else (0, "nearest_other"))))

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "documents.jsonl.gz", self.documents)
        rows = [{"a": a, "b": b, "label": label, "kind": kind} for a, b, label, kind in self.pairs]
        _write(folder / "pairs.jsonl.gz", rows)
        print(folder.name, len(self.documents), sorted(Counter((one[2], one[3]) for one in self.pairs).items()))


def products(descriptions: Path, rng: random.Random) -> Collection:
    found = list(_packages(descriptions))
    families = defaultdict(list)
    sources = defaultdict(list)
    for name, text in found:
        families[re.sub(r"\d+(\.\d+)*", "#", name)].append((name, text))
        sources[re.split(r"\d|-", name)[0] or name].append((name, text))
    numbered = [family for key, family in sorted(families.items()) if "#" in key and len(family) > 1]
    parts = [family for key, family in sorted(sources.items()) if 2 < len(family) < 6]
    made, owner = Collection(), dict[str, str]()
    taken = set()
    for kind, label, chosen in (
        ("other_number", 0, rng.sample(numbered, 500)),
        ("part", -1, rng.sample(parts, 400)),
        ("", 0, [[one] for one in rng.sample(found, 3000)]),
    ):
        for family in chosen:
            members = [made.add(f"{name}. {text}") for name, text in family[:4] if name not in taken]
            taken |= {name for name, _ in family}
            made.family(members, label, kind)
            owner |= dict.fromkeys(members, family[0][0])
            for member in members:
                if rng.random() < 0.3:
                    offers = [_offer(made.documents[int(member[1:])]["text"], rng) for _ in range(rng.randint(1, 2))]
                    copies = [(made.add(text), kind_of) for text, kind_of in offers]
                    made.pairs += [(member, copy, 1, kind_of) for copy, kind_of in copies]
                    owner |= dict.fromkeys((copy for copy, _ in copies), family[0][0])
    made.nearest(owner)
    return made


def _packages(descriptions: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of every package with a text of 12 to 120 words."""
    for block in descriptions.read_text("utf-8").split("\n\n"):
        name, start = re.search("^Package: (.*)$", block, re.M), block.find("Description-en: ")
        lines = block[start + 16 :].split("\n")
        text = " ".join(" ".join(line for line in lines if line.strip() != ".").split())
        if name and start >= 0 and 12 <= len(text.split()) <= 120:
            yield name[1], text


def _offer(text: str, rng: random.Random) -> tuple[str, str]:
    """Return the product as another shop would show it, and the kind of the pair."""
    parts = re.split(r"(?<=[.!?]) +", text)
    for change in rng.sample(["head", "tail", "drop", "word", "spacing", "order"], rng.randint(1, 3)):
        place = rng.randrange(1, len(parts)) if len(parts) > 1 else 0
        if change == "head":
            parts.insert(0, rng.choice(HEADS))
        elif change == "tail":
            parts.append(rng.choice(TAILS))
        elif change == "drop" and len(parts) > 3 and not re.search(r"\d", parts[place]):
            parts.pop(place)
        elif change == "word":
            words = parts[place].split(" ")
            words.insert(rng.randrange(len(words)), rng.choice(WORDS))
            parts[place] = " ".join(words)
        elif change == "spacing":
            parts = [re.sub(r"(\d) ?-?(bit|MB|GB|D)\b", r"\1 \2", part) for part in parts]
        elif change == "order" and len(parts) > 3:
            parts[1:] = rng.sample(parts[1:], len(parts) - 1)
    if rng.random() < 0.2:
        return " ".join([*parts, rng.choice(COUNTERS).format(rng.randint(2, 99))]), "offer_with_counters"
    return " ".join(parts), "offer"


def forms(descriptions: Path, share: float, rng: random.Random) -> Iterator[dict[str, str]]:
    """Write base texts; `share` of them are filled forms."""
    others = [text for _, text in _packages(descriptions) if len(text.split()) > 50]
    for number in range(900):
        text = rng.choice(others)
        if rng.random() < share:
            text = rng.choice(FORMS).format(
                a=rng.choice(TOWNS),
                b=rng.choice(JOBS + TOWNS).title(),
                d=f"{rng.randint(1, 28)}.{rng.randint(1, 12)}.",
                n=rng.randint(1, 9),
                m=rng.randint(20, 140),
                n2=rng.randint(1, 9),
                p=rng.randint(300, 2900),
                job=rng.choice(JOBS),
                remark=" ".join(re.split(r"(?<=[.!?]) +", text)[:2]),
            )
        yield {"id": f"f{number:03}", "text": text}


def messages(unpacked: Path, rng: random.Random) -> Collection:
    made, owner = Collection(), dict[str, str]()
    names = [word for word in " ".join(HEADS + TAILS + WORDS).title().split() if len(word) > 4]
    for language, sentences in sorted(_sentences(unpacked).items()):
        for text in rng.sample(sentences, min(250, len(sentences))):
            first = made.add(_posted(text, rng, 0.3), language)
            copies = []
            if rng.random() < 0.4:
                copies = [made.add(_reposted(text, rng), language) for _ in range(rng.randint(1, 3))]
            made.family([first, *copies], 1, "repost")
            owner |= dict.fromkeys([first, *copies], first)
    for number, feed in enumerate(FEEDS):
        filled = [
            made.add(
                feed.format(
                    a=f"{rng.choice(names)} {rng.choice(names)}",
                    b=" ".join(rng.sample(names, 2)),
                    n=rng.randint(1, 12),
                    n2=rng.randint(0, 9),
                    h=f"{rng.getrandbits(30):x}",
                )
            )
            for _ in range(60)
        ]
        pairs = rng.sample(list(combinations(filled, 2)), 150)
        made.pairs += [(a, b, 0, "one_template") for a, b in pairs]
        owner |= dict.fromkeys(filled, f"feed {number}")
    made.nearest(owner)
    return made


def _sentences(unpacked: Path) -> dict[str, list[str]]:
    """Return the distinct sentences of each language, 40 to 200 characters (15 to 80 in Japanese)."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for language, _, paragraphs in manual(unpacked, LANGUAGES):
        shortest, longest = (15, 80) if language == "ja" else (40, 200)
        for paragraph in paragraphs:
            for sentence in re.split(r"(?<=[.!?。।])\s*(?=\S)", paragraph):
                if shortest <= len(sentence) <= longest:
                    found[language][sentence] = None
    return {language: list(sentences) for language, sentences in found.items()}


def _posted(text: str, rng: random.Random, share: float) -> str:
    return f"{text} https://short.example/{rng.getrandbits(35):x}" if rng.random() < share else text


def _reposted(text: str, rng: random.Random) -> str:
    for change in rng.sample(["quote", "via", "tags", "cut", "case", "comment"], rng.randint(1, 3)):
        if change == "quote":
            text = f"RT @user{rng.randint(1, 999)}: {text}"
        elif change == "via":
            text = f"{text} via @user{rng.randint(1, 999)}"
        elif change == "tags":
            text = f"{text} #{rng.choice(WORDS)} #{rng.choice(WORDS)}"
        elif change == "cut":
            text = text[: round(len(text) * rng.uniform(0.8, 0.95))] + "…"
        elif change == "case":
            text = text.upper() if rng.random() < 0.5 else text.lower()
        elif change == "comment":
            text = f"{rng.choice(['So true!', 'Wow.', 'Good to know:', 'This!'])} {text}"
    return _posted(text, rng, 0.6)


def chunks(unpacked: Path, rng: random.Random) -> Collection:
    topics: dict[tuple[str, str], list[str]] = defaultdict(list)
    for language, topic, paragraphs in manual(unpacked, [one for one in LANGUAGES if one != "ja"]):
        topics[language, topic] += paragraphs
    made = Collection()
    for (language, _), paragraphs in rng.sample(sorted(topics.items()), 90):
        text = " ".join(paragraphs).split()[:2500]
        if len(text) < 300:
            continue
        old, new = ([made.add(" ".join(one), language) for one in _cut(words)] for words in (text, _edited(text, rng)))
        made.pairs += [(a, b, 0, "neighbour") for ids in (old, new) for a, b in pairwise(ids)]
        made.pairs += [pair for a in old for b in new for pair in _by_words(made, a, b)]
    pool = [one["id"] for one in made.documents]
    labelled = {frozenset(pair[:2]) for pair in made.pairs}
    drawn = dict.fromkeys(tuple(sorted(rng.sample(pool, 2))) for _ in range(1000))  # none twice
    made.pairs += [(a, b, 0, "random") for a, b in drawn if frozenset((a, b)) not in labelled]
    return made


def _cut(words: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, max(len(words) - REPEATED, 1), CHUNK - REPEATED):
        yield words[start : start + CHUNK]


def _edited(words: Sequence[str], rng: random.Random) -> list[str]:
    """Return another version: one word in forty replaced, one run of ten words in fifteen left out, some added."""
    edited: list[str] = []
    for start in range(0, len(words), 10):
        run = [rng.choice(words) if rng.random() < 1 / 40 else word for word in words[start : start + 10]]
        edited += [] if rng.random() < 1 / 15 else run
        edited += rng.sample(list(words), 6) if rng.random() < 1 / 25 else []
    return edited


def _by_words(made: Collection, a: str, b: str) -> Iterator[Pair]:
    """Yield the pair, labelled by the share of words that both hold in the same order; nothing for unrelated texts."""
    one, other = (made.documents[int(name[1:])]["text"].split() for name in (a, b))
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    share = sum(block.size for block in blocks if block.size > 1) / max(len(one), len(other))
    if share >= 0.25:
        yield (a, b, 1, "version") if share >= 0.6 else (a, b, -1, "overlap")


def _words_of(name: str) -> set[str]:
    """Return the prefixes of the words of a name; names of one source share some: libwmflite and libwmf-doc."""
    words = re.split(r"[^a-z]+", name.lower())
    return {word.removeprefix("lib")[:4] for word in words if len(word.removeprefix("lib")) > 2} - _GENERIC


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return set(zip(words, words[1:], words[2:], strict=False))


def _write(path: Path, rows: Iterable[Any]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("descriptions", type=Path)
    parser.add_argument("unpacked", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    products(arguments.descriptions, random.Random(1)).write(arguments.out / "products")
    messages(arguments.unpacked, random.Random(2)).write(arguments.out / "messages")
    chunks(arguments.unpacked, random.Random(3)).write(arguments.out / "chunks")
    for name, share in (("forms", 1.0), ("forms_half", 0.5)):
        _write(arguments.out / f"{name}.jsonl.gz", forms(arguments.descriptions, share, random.Random(4)))


if __name__ == "__main__":
    main()
