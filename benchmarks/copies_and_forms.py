"""Measure short texts: copies of one brief should be joined, fillings of one form kept apart.

    python -m benchmarks.copies_and_forms DATA [--part held_out] [--seeds 8]    # DATA: the development collections
    python -m benchmarks.copies_and_forms DATA --part feeds --twice     # as a title, and a description that repeats it
    python -m benchmarks.copies_and_forms DATA --part twelve_languages
    python -m benchmarks.copies_and_forms DATA --part folder
    apt-get download fortunes fortunes-de fortunes-es gimp-data evolution-common nautilus-data      # Debian 12
    for package in *.deb; do dpkg-deb -x $package unpacked; done
    python -m benchmarks.copies_and_forms unpacked --part sayings
    python -m benchmarks.copies_and_forms unpacked --part dictionary        # of dict-foldoc and dict-devil
    git clone --depth 1 https://github.com/aws/aws-cli                  # notes on releases
    git clone --depth 1 https://github.com/ambicuity/New-Grad-Jobs      # titles, firms and towns of jobs
    python -m benchmarks.copies_and_forms . --part notices

Copies:  sentences of real texts, 12 to 60 words, 2 to 30 times. Each copy has an edge of its own (dateline, byline,
         mark, source, site, link, tag), one in three has one other word changed. Stories are in English, German,
         Spanish and French; and in Russian, Arabic and Chinese with a site or a link.
Forms:   20 to 60 fillings of one sentence, by where its slots lie: S at the start, I inside, E at the end.
Entries: 3 sentences of one form that differ in one number alone, as notes, orders and reports of an agent do.
Manuals: sections in sentences of one form, cut into chunks, in two versions that differ in one word or two.

A list has 100 texts and counts its own frequency table; an index has 300 or 3,000, and its table is counted in all of
them. The other texts are sentences of the same collections. Printed is the share of pairs that have one leader: high
for copies and versions, low for forms; and of fillings the share that others hide. The part "train" has other texts,
edges and forms than "held_out"; constants were chosen with the first only. Those of the part "independent" were written
before their author had read the rule, also in Russian, Arabic and Chinese; its texts are those of "held_out". The part
"feeds" has edges and forms of feeds, in English; one of two rules was chosen by it. The part "licences" has sentences
of licence texts, edges that were written without knowledge of the rule, and forms filled with the fields of records; no
rule was chosen by it. The part "sayings" was made when the rule was fixed: its texts are those of `fortune`, its forms
are the messages of programs with one or two slots, 48 of them for each seed, and its edges those of "licences". The
part "dictionary", with edges and forms of its own, was made when a former rule was fixed. The last two numbers of the
rule in use were chosen by the part "notices": of its fillings (adverts, weather, reports, scores) many share an answer,
and most have a last sentence that counts as an edge. The part "twelve_languages" is a set of copies and fillings that a
third author wrote, who had seen nothing of the rule: twelve_languages.json.gz says more. Its stories are one index, in
lots of 20 stories for an index of 300. The folder indexes hold teasers of 24 words of "held_out" and "train", and
copies of some of them, each with a dateline of its own.
"""

from __future__ import annotations

import argparse
import gettext
import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import ndd_search as ndd
from ndd_search.core.matching.choose_leaders import choose_leaders
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.document_frequency import count_document_frequency, count_in_list
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.similar_pairs import as_compared, resembling_pairs
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.sketches import Sketches, sketch_many
from ndd_search.core.text.numbers import differing_in_numbers

RECIPE = Recipe()
COPIES = (2, 4, 6, 8, 12, 20, 30)
FILLINGS = (20, 40, 60)
HITS = 100
TEASER = 24  # words
SENTENCE_END = r"(?<=[.!?؟])\s+|(?<=[。！？])\s*"
COLLECTIONS = {
    "train": ("synth_web/base", "advisories/documents"),
    "held_out": ("xquad_pages/documents", "factbook/documents"),
    "independent": ("xquad_pages/documents", "factbook/documents"),
    "feeds": ("xquad_pages/documents", "factbook/documents"),
    "licences": ("licences/documents",),
}
RECORDS = ("airports", "early_childhood", "febrl", "patstat", "countries")  # fill the forms of "licences"
EUROPEAN = ("en", "de", "es", "fr")
TWELVE_LANGUAGES = Path(__file__).with_name("twelve_languages.json.gz")

FIRST = ["North", "Saint", "Lake", "Grand", "Old", "Upper", "Green", "King's", "Mount", "Little", "Red", "Fort"]
LAST = [
    "Hill",
    "Creek",
    "Haven",
    "Ridge",
    "Falls",
    "Bay",
    "Ferry",
    "Wood",
    "Marsh",
    "Valley",
    "Bend",
    "Moor",
    "Cross",
    "Ford",
]
VALUES = [
    "baker",
    "joiner",
    "storm",
    "nurse",
    "pilot",
    "heat",
    "flood",
    "March",
    "driver",
    "frost",
    "clerk",
    "eye",
    "May",
    "skin",
]


class World:
    """The texts, edges and forms of one part; slots are {town}, {name}, {n} and so on."""

    def __init__(self, data: Path, part: str, seed: int, lines: int = 1) -> None:
        self.rng, self.lines = random.Random(f"{part} {seed}"), lines
        made = json.loads(Path(__file__).with_suffix(".json").read_text())
        self.made: dict[str, Any] = made["licences" if part == "sayings" else part]
        sentences = READ[part](data) if part in READ else _sentences(data, part)
        if part == "sayings":
            self.made["forms"] = self.rng.sample(_messages(data), 48)
        self.records = _records(data) if part == "licences" else {}
        if part == "notices":
            self.records["notices"] = list(_answers(data, self.made, self.rng))
        self.bodies = {language: self._bodies(found, language == "zh") for language, found in sentences.items()}
        self.others = [self.document(body) for bodies in self.bodies.values() for body in bodies]
        self.rng.shuffle(self.others)

    def document(self, text: str) -> str:
        return "\n".join([text] * self.lines)

    def _bodies(self, found: list[str], dense: bool) -> list[str]:
        """Return briefs of 12 to 60 words (Chinese: 24 to 120 characters): one sentence or several in a row."""
        bodies, current, wanted = [], "", self.rng.randint(12, 60)
        for sentence in found:
            current = f"{current} {sentence}".strip()
            length = len(current) // 2 if dense else len(current.split())
            if length >= 12 and (length >= wanted or self.rng.random() < 0.5):
                if length <= 60:
                    bodies.append(current)
                current, wanted = "", self.rng.randint(12, 60)
        self.rng.shuffle(bodies)
        return bodies

    def filled(self, template: str, language: str) -> str:
        rng = self.rng
        made = {kind: one[language] if isinstance(one, dict) else one for kind, one in self.made.items()}
        name, other = rng.sample(made["names"], 2)
        tag, tag2 = rng.sample(made["tags"], 2)
        town = rng.choice(made["towns"])
        return template.format(
            town=town,
            TOWN=town.upper(),
            agency=rng.choice(made["agencies"]),
            month=rng.choice(made["months"]),
            n=rng.randint(1, 28),
            name=name,
            name2=other,
            site=rng.choice(made["sites"]),
            tag=tag,
            tag2=tag2,
            link=f"{rng.getrandbits(30):x}",
        )

    def copies(self, body: str, language: str, count: int) -> list[str]:
        """Return copies of a brief, each with an edge, one in three with a changed word."""
        made = []
        for _ in range(count):
            text = self._edited(body, language == "zh") if self.rng.random() < 1 / 3 else body
            where = self.rng.random()
            if language not in self.made["heads"]:
                where = 0.6
            if where < 0.5 or where > 0.8:
                text = self.filled(self.rng.choice(self.made["heads"][language]), language) + text
            if where >= 0.5:
                known = language if language in self.made["tails"] else "en"
                tails = self.made["tails"][known]
                text += self.filled(
                    self.rng.choice(
                        tails if known == language else [one for one in tails if "{link}" in one or "{site}" in one]
                    ),
                    known,
                )
            made.append(self.document(text))
        return made

    def _edited(self, body: str, dense: bool) -> str:
        words = list(body) if dense else body.split()
        at = self.rng.randrange(1, len(words) - 1)
        words[at : at + 1] = self.rng.choice([[], [words[at][::-1]], [words[at], self.rng.choice(VALUES)]])
        return ("" if dense else " ").join(words)

    def fillings(self, form: str, count: int, records: str | None = None) -> list[str]:
        """Return `count` fillings of a form, by its records or else by words; fewer if its slots have few values."""
        rng, made = self.rng, dict[str, None]()
        if records is not None:
            filled = {form.format(**one): None for one in self.records[records] if _fields(form) <= one.keys()}
            return list(map(self.document, rng.sample(list(filled), count)))
        for _ in range(20 * count):
            if len(made) == count:
                break
            name, place = (f"{rng.choice(FIRST)} {rng.choice(LAST)}" for _ in range(2))
            if rng.random() < 0.7:
                place = place.replace(" ", "").capitalize()
            made[form.format(a=name, b=place, v=rng.choice(VALUES), n=rng.randint(2, 1999))] = None
        return list(map(self.document, made))

    def manual(self) -> list[tuple[str, str]]:
        """Return chunks of two versions, of six sentences; a third of the chunks differ in one word, a third in two."""
        rng, step = self.rng, self.made["step"]
        nouns = [f"{one.lower()} {two.lower()}" for one in FIRST for two in LAST]
        pairs = []
        for _ in range(40):
            old = " ".join(
                step.format(
                    v=rng.choice(["print", "move", "rename", "share", "sort", "lock"]),
                    n=rng.choice(nouns),
                    m=rng.choice(LAST),
                    i=rng.choice(FIRST),
                )
                for _ in range(6)
            )
            words = old.split()
            for at in rng.sample(range(len(words)), rng.choice([0, 1, 2])):
                words[at] = rng.choice(VALUES)
            pairs.append((self.document(old), self.document(" ".join(words))))
        return pairs


def _fields(form: str) -> set[str]:
    return set(re.findall(r"{(\w+)}", form))


@cache
def _records(data: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the fields of the records of collections; words in one case get capitals."""
    records: dict[str, list[dict[str, Any]]] = {}
    for name in RECORDS:
        for line in gzip.decompress((data / name / "documents.jsonl.gz").read_bytes()).splitlines():
            fields = json.loads(line)["fields"]
            one_case = {field for field, one in fields.items() if str(one) in (str(one).lower(), str(one).upper())}
            records.setdefault(name, []).append(
                {field: str(one).title() if field in one_case else one for field, one in fields.items()}
            )
    return records


@cache
def _sayings(data: Path) -> dict[str, list[str]]:
    """Return the texts of `fortune` in unpacked packages, by language."""
    found: dict[str, list[str]] = {}
    for file in sorted((data / "usr/share/games/fortunes").rglob("*")):
        if file.is_file() and not file.is_symlink() and file.suffix not in (".dat", ".u8"):
            language = file.parent.name if file.parent.name != "fortunes" else "en"
            texts = file.read_text("utf-8", errors="replace").split("\n%\n")
            found.setdefault(language, []).extend(" ".join(text.split()) for text in texts if "\ufffd" not in text)
    return {language: list(dict.fromkeys(found[language])) for language in EUROPEAN if language in found}


@cache
def _definitions(data: Path) -> dict[str, list[str]]:
    """Return the sentences of dictionaries in unpacked packages that are long enough for a brief."""
    files = sorted((data / "usr/share/dictd").glob("*.dict.dz"))
    text = "\n".join(gzip.decompress(file.read_bytes()).decode("utf-8", errors="replace") for file in files)
    entries = (" ".join(entry.split()) for entry in re.split(r"\n\s*\n", text))
    sentences = (sentence for entry in entries for sentence in re.split(SENTENCE_END, entry))
    return {"en": [one for one in dict.fromkeys(sentences) if 12 <= len(one.split()) <= 60 and one.isascii()][:20_000]}


@cache
def _notes(data: Path) -> dict[str, list[str]]:
    """Return the notes on releases of a program in a clone of its repository."""
    notes = re.findall(r"^\* [\w-]+: *`*[^:]+?`*: *(.+)$", (data / "aws-cli/CHANGELOG.rst").read_text(), re.MULTILINE)
    return {"en": [one for one in dict.fromkeys(note.replace("`", "") for note in notes) if len(one.split()) <= 60]}


def _answers(data: Path, made: dict[str, Any], rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield answers for forms: of a dozen towns, a dozen jobs, and a few words for every other slot."""
    jobs = json.loads((data / "New-Grad-Jobs/jobs.json").read_text())["jobs"]
    towns, titles = ({one[kind].split(",")[0]: None for one in jobs} for kind in ("location", "title"))
    few = rng.sample([one for one in towns if one.isalpha()], 12), rng.sample(list(titles), 12)
    for _ in range(500):
        numbers = {"pay": rng.randint(14, 40), "n": rng.randint(2, 40), "m": rng.randint(1, 9), "h": rng.randint(1, 9)}
        words = {slot: rng.choice(some) for slot, some in made["answers"]}
        town, town2 = rng.sample(few[0], 2)
        company = rng.choice(jobs)["company"]
        yield {**numbers, **words, "town": town, "town2": town2, "job": rng.choice(few[1]), "company": company}


READ = {"sayings": _sayings, "dictionary": _definitions, "notices": _notes}  # texts of unpacked packages and of clones


@cache
def _messages(data: Path) -> list[tuple[str, str]]:
    """Return the messages with slots of the programs in unpacked packages as forms, with where the slots lie."""
    forms = dict[str, str]()
    for file in sorted(data.glob("usr/share/locale/de/LC_MESSAGES/*.mo")):
        with file.open("rb") as opened:
            known = gettext.GNUTranslations(opened)._catalog  # type: ignore[attr-defined]
        for key in known:
            words = (key if isinstance(key, str) else key[0]).split("\x04")[-1].split()
            text = " ".join(words)
            slots = [at for at, word in enumerate(words) if re.search("%[sd]", word)]
            if 13 <= len(words) <= 40 and 1 <= len(slots) <= 2 and not re.search("[<>{}]|%(?![sd])", text):
                place = "start" if slots[0] < 2 else "end" if slots[0] > len(words) - 3 else "inside"
                filled = text.replace("%d", "{n}").replace("%s", "{a}", 1).replace("%s", "{b}")
                forms[filled] = place if len(slots) == 1 else "several"
    return [(place, form) for form, place in sorted(forms.items())]


@cache
def _sentences(data: Path, part: str) -> dict[str, list[str]]:
    """Return sentences of the texts of a part, by language."""
    found: dict[str, dict[str, None]] = {}
    seen = set[str]()
    for name in COLLECTIONS[part]:
        for line in gzip.decompress((data / f"{name}.jsonl.gz").read_bytes()).splitlines():
            document = json.loads(line)
            text = document["text"]
            if part == "licences":  # lines are wrapped, and most texts are versions of others
                text = re.sub(r"[^\S\n]*\n[^\S\n]*(?=\S)", " ", text)
            for paragraph in text.split("\n"):
                for sentence in re.split(SENTENCE_END, paragraph):
                    if len(sentence) > 20 and (part != "licences" or _is_new(sentence, seen)):
                        found.setdefault(document.get("lang") or "en", {})[sentence.strip()] = None
    wanted = [*EUROPEAN, "ru", "ar", "zh"]
    return {language: list(found[language])[:20_000] for language in wanted if language in found}


def _is_new(sentence: str, seen: set[str]) -> bool:
    """Tell whether most of a sentence's runs of three words are in no earlier sentence, and add them to those seen."""
    words = re.findall(r"\w+", sentence.lower())
    runs = {" ".join(words[at : at + 3]) for at in range(len(words) - 2)}
    known = len(runs & seen)
    seen |= runs
    return len(words) >= 8 and known <= 0.3 * len(runs)


class Rule:
    """A way to decide which hits of a page have one leader. counts: with a frequency table."""

    def __init__(self, name: str, setting: str | float, *, counts: bool = True) -> None:
        self.name, self.setting, self.counts = name, setting, counts

    def leaders(self, texts: Sequence[str], sketches: Sketches, table: FrequencyTable) -> np.ndarray:
        decision = Decision.of(self.setting, RECIPE, table if self.counts else None)
        pairs = resembling_pairs(rows_of(as_compared(sketches, RECIPE.k, decision), RECIPE.k), decision)
        if self.setting == "auto":
            ends = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
            differ = differing_in_numbers(RECIPE)
            apart = [differ(texts[a], texts[b]) for a, b in ends]
            pairs = pairs.where(~np.array(apart, np.bool_))
        return choose_leaders(len(sketches), pairs)[0]


RULES = [
    Rule("default", "auto"),
    Rule("default, without a table", "auto", counts=False),
    Rule("a bar of .5", 0.5),
]


def joined(members: Sequence[int], leaders: np.ndarray) -> tuple[int, int]:
    """Return how many pairs of members have one leader, and how many pairs there are."""
    pairs = list(combinations(members, 2))
    return sum(leaders[a] == leaders[b] for a, b in pairs), len(pairs)


Story = tuple[str, str, list[str]]  # language, kind of length, copies
Score = dict[tuple[str, str, str], list[tuple[int, int]]]  # of a rule, a row and a column


def measure_page(
    score: Score, row: str, column: str, texts: list[str], members: Sequence[int], table: FrequencyTable | None = None
) -> None:
    sketches = sketch_many(texts, RECIPE)
    counted = count_in_list(sketches, RECIPE) if table is None else table
    for rule in RULES:
        leaders = rule.leaders(texts, sketches, counted)
        score.setdefault((rule.name, row, column), []).append(joined(members, leaders))
        if row.startswith("forms, "):
            hidden = len(members) - len({*leaders[list(members)].tolist()})
            score.setdefault((rule.name, f"hidden, {row}", column), []).append((hidden, len(members)))


def stories(world: World, counts: Iterable[int]) -> Iterator[Story]:
    """Yield the language, the kind of length and the copies of stories, of each number of copies."""
    for count in counts:
        for language, bodies in world.bodies.items():
            for _ in range(8 if language == "en" else 3):
                body = world.rng.choice(bodies)
                words = len(body) // 2 if language == "zh" else len(body.split())
                yield (
                    language,
                    "copies, 12-20 words" if words <= 20 else "copies, 21-60 words",
                    world.copies(body, language, count),
                )


def row_of(language: str, length: str) -> str:
    """Return the row of a story: by its length if it is in English."""
    return length if language == "en" else f"copies, {'other languages' if language in EUROPEAN else 'other scripts'}"


def measure_lists(score: Score, world: World) -> None:
    for language, length, copies in stories(world, COPIES):
        texts = copies + world.rng.sample(world.others, HITS - len(copies))
        order = world.rng.sample(range(HITS), HITS)
        places = [order.index(i) for i in range(len(copies))]
        measure_page(score, row_of(language, length), "list", [texts[i] for i in order], places)
    for place, form, *records in world.made["forms"]:
        for count in FILLINGS:
            fillings = world.fillings(form, count, *records)
            page = fillings + world.rng.sample(world.others, HITS - len(fillings))
            measure_page(score, f"forms, {place}", "list", page, range(len(fillings)))
    for form in world.made.get("entries", []):
        entries = [world.document(form.format(n=number)) for number in world.rng.sample(range(2, 2000), 3)]
        measure_page(score, "entries, another number", "list", entries + world.rng.sample(world.others, 97), range(3))
    pairs = world.manual()
    texts = [old for old, _ in pairs] + [new for _, new in pairs]
    measure_page_of_versions(score, "list", texts, None)


def measure_page_of_versions(score: Score, column: str, texts: list[str], table: FrequencyTable | None) -> None:
    half, sketches = len(texts) // 2, sketch_many(texts, RECIPE)
    counted = count_in_list(sketches, RECIPE) if table is None else table
    for rule in RULES:
        leaders = rule.leaders(texts, sketches, counted)
        same = sum(leaders[i] == leaders[half + i] for i in range(half))
        score.setdefault((rule.name, "manual, versions of a chunk", column), []).append((int(same), half))
        score.setdefault((rule.name, "manual, different chunks", column), []).append(joined(range(half), leaders))


def measure_twelve_languages(score: Score, others: list[str]) -> None:
    """Measure the set of a third author as lists of HITS, and in indexes of 300 and 3,000."""
    made = json.loads(gzip.decompress(TWELVE_LANGUAGES.read_bytes()))
    stories = [
        ("copies, 12-20 words" if one["words"] <= 20 else "copies, 21-60 words", one["copies"])
        for one in made["stories"]
    ]
    forms = [(f"forms, {one['slot']}", one["fillings"]) for one in made["forms"]]
    rng = random.Random(5)
    for size, stories_in_one, forms_in_one in ((0, 1, 1), (300, 20, 4), (3000, len(stories), len(forms))):
        for kind, in_one in ((stories, stories_in_one), (forms, forms_in_one)):
            for start in range(0, len(kind), in_one):
                lot = kind[start : start + in_one]
                texts = [text for _, members in lot for text in members]
                rest = list(islice(cycle(others), max(size - len(texts), HITS)))
                table = count_document_frequency(sketch_many(texts + rest, RECIPE), RECIPE) if size else None
                for row, members in lot:
                    page = members + rng.sample(rest, max(HITS - len(members), 20))
                    column = f"index of {size:,}" if size else "list"
                    for name in {row, row.split(",")[0]}:
                        measure_page(score, name, column, page, range(len(members)), table)


def measure_folders(score: Score, worlds: Sequence[World], sizes: Sequence[int]) -> None:
    """Measure folder indexes of teasers: how many groups 5, 10 and 20 copies with datelines are in; 1 is right."""
    words = " ".join(body for world in worlds for body in world.bodies["en"]).split()
    teasers = [" ".join(words[at : at + TEASER]) for at in range(0, len(words), TEASER)]
    rng, heads = worlds[0].rng, [one for one in worlds[0].made["heads"]["en"] if "{town}" in one.lower()]
    rng.shuffle(teasers)
    for size in sizes:
        copied = [(count, text) for count, text in zip((5, 10, 20) * 4, teasers, strict=False)]
        with TemporaryDirectory() as folder, ndd.Index.open(folder, text="text") as index:
            index.add({"id": str(at), "text": text} for at, text in enumerate(teasers[len(copied) : size]))
            for number, (count, text) in enumerate(copied):
                copies = {worlds[0].filled(rng.choice(heads), "en") + text: 0 for _ in range(20 * count)}
                index.add({"id": f"s{number} {at}", "text": one} for at, one in enumerate(islice(copies, count)))
            for number, (count, text) in enumerate(copied):
                hits = index.search(" ".join(re.findall(r"\w+", text.lower())), size=HITS)["hits"]["hits"]
                shown = sum(any(one.startswith(f"s{number} ") for one in ids) for ids in map(_listed, hits))
                score.setdefault(("default", f"groups of {count:>2} copies", f"folder of {size:,}"), []).append(
                    (shown, 1)
                )


def _listed(hit: dict[str, Any]) -> list[str]:
    """Return the ids of a hit and of its near-duplicates."""
    duplicates = hit["inner_hits"]["near_duplicates"]["hits"]["hits"] if "inner_hits" in hit else []
    return [one["_id"] for one in (hit, *duplicates)]


def measure_index(score: Score, world: World, size: int) -> None:
    """Put stories of each number of copies into indexes, forms into others, and decide on pages of their hits."""
    made = list(stories(world, COPIES))
    world.rng.shuffle(made)
    others = world.others * (size // len(world.others) + 1)
    for lot in _lots(made, size / 3):
        copies = [text for _, _, texts in lot for text in texts]
        rest = others[: size - len(copies)]
        table = count_document_frequency(sketch_many(copies + rest, RECIPE), RECIPE)
        for language, length, texts in lot:
            page = texts + world.rng.sample(rest, HITS - len(texts))
            measure_page(score, row_of(language, length), f"index of {size:,}", page, range(len(texts)), table)
    for chosen in (world.made["forms"][start::6] for start in range(6)):
        forms = [
            (place, world.fillings(form, world.rng.choice(FILLINGS), *records)) for place, form, *records in chosen
        ]
        fillings = [text for _, texts in forms for text in texts]
        table = count_document_frequency(sketch_many(fillings + others[: size - len(fillings)], RECIPE), RECIPE)
        for place, texts in forms:
            page = texts + world.rng.sample(others, HITS - len(texts))
            measure_page(score, f"forms, {place}", f"index of {size:,}", page, range(len(texts)), table)
    pairs = world.manual()
    texts = [old for old, _ in pairs] + [new for _, new in pairs]
    table = count_document_frequency(sketch_many(texts + others[: size - len(texts)], RECIPE), RECIPE)
    measure_page_of_versions(score, f"index of {size:,}", texts, table)


def _lots(made: Sequence[Story], most: float) -> Iterator[list[Story]]:
    """Yield runs of stories, each of at most `most` texts."""
    lot: list[Story] = []
    for story in made:
        if sum(len(texts) for _, _, texts in (*lot, story)) > most:
            yield lot
            lot = []
        lot.append(story)
    yield lot


def print_table(score: Score) -> None:
    columns = list(dict.fromkeys(column for _, _, column in score))
    for rule in (rule for rule in RULES if any(name == rule.name for name, _, _ in score)):
        print(f"\n| {rule.name} | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}")
        for row in sorted({row for name, row, _ in score if name == rule.name}):
            cells = [np.sum(score.get((rule.name, row, column), [(0, 0)]), axis=0) for column in columns]
            print(f"| {row} | {' | '.join(f'{one / all_:.2f}' if all_ else '' for one, all_ in cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--part", choices=[*COLLECTIONS, *READ, "twelve_languages", "folder"], default="held_out")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--twice", action="store_true", help="each text is a title, and a description that repeats it")
    arguments = parser.parse_args()
    score: Score = {}
    known = arguments.part in (*COLLECTIONS, *READ)
    for seed in range(arguments.seeds if known else 1):
        world = World(arguments.data, arguments.part if known else "held_out", seed, 1 + arguments.twice)
        if arguments.part == "twelve_languages":
            measure_twelve_languages(score, world.others)
        elif arguments.part == "folder":
            measure_folders(score, (world, World(arguments.data, "train", 0)), (5_000, 20_000))
        else:
            measure_lists(score, world)
            for size in (300, 3000):
                measure_index(score, world, size)
    print_table(score)


if __name__ == "__main__":
    main()
