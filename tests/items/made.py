"""Records made for tests and benchmarks: people of the past, with nicknames, gaps and errors.

Each person has one to eight records. The first is complete; the others were written by somebody else: with a short form
of the first name, a slip in a name, a day and month swapped, another home, or nothing at all in a field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import ndd_search as ndd
from ndd_search.items.record_groups import ItemGroups
from ndd_search.items.synonyms import LISTS

PEOPLE = ndd.items.Items(
    first_name=ndd.items.Name(synonyms="english-nicknames"),
    surname=ndd.items.Name(),
    born=ndd.items.Date(),
    birth_place=ndd.items.Name(),
    occupation=ndd.items.Category(),
    postcode=ndd.items.Name(),
)


def _words(text: str) -> list[str]:
    return text.split()


_FIRST = _words(
    "John William Thomas George James Charles Henry Robert Joseph Edward Alfred Arthur Frederick Samuel David Richard "
    "Daniel Benjamin Walter Albert Francis Peter Stephen Michael Matthew Alexander Andrew Hugh Philip Isaac Edmund "
    "Mary Elizabeth Sarah Ann Jane Margaret Alice Emily Ellen Florence Martha Hannah Catherine Harriet Eliza Emma "
    "Annie Edith Susan Charlotte Caroline Frances Louisa Eleanor Rebecca Agnes Isabella Maria Lucy Rachel "
    "Dorothy Theodore"
)
_ROOTS = _words(
    "Ash Black Wood Hart Brad Stan Whit Green Red Cold Fair Long Good West North South East Mill Stone Brook Thorn "
    "Hal Clif Har Lang Win Wal Den Hol Car Bar Mar Wes Pres Ald Ing Tem Cra Shel Rad Bur Har New Old High Low Chal Ban"
)
_ENDS = _words("ford ham ton ley worth well wood field by man bury den croft wick stead more combe gate son ridge")
_TRADES = _words(
    "farmer weaver miller baker smith clerk teacher writer painter lawyer physician engineer sailor soldier priest "
    "politician merchant grocer tailor carpenter mason printer miner servant actor singer architect botanist"
)


@dataclass(frozen=True)
class Made:
    """Records with an "id", and of each record the number of its person."""

    records: list[dict[str, Any]]
    person: list[int]


def people(count: int, seed: int = 0) -> Made:
    """Return the records of so many people."""
    random = np.random.default_rng(seed)
    surnames = _common_first(random, [root + end.lower() for root in _ROOTS for end in _ENDS])
    towns = _common_first(
        random, [f"{root}{end}" for root in _ROOTS for end in ("ton", "ham", "bridge", "port", "mouth")]
    )
    made = Made([], [])
    for person in range(count):
        born = (int(random.integers(1780, 1920)), int(random.integers(1, 13)), int(random.integers(1, 29)))
        truth = {
            "first_name": _FIRST[int(random.beta(0.7, 2.5) * len(_FIRST))],
            "surname": surnames(),
            "born": "{:04}-{:02}-{:02}".format(*born),
            "birth_place": towns(),
            "occupation": _TRADES[int(random.integers(len(_TRADES)))],
            "postcode": _postcode(random, "ABCDEFGHKLMNPRSTW"[int(random.integers(17))]),
        }
        for number in range(int(min(random.geometric(0.35), 8))):
            record = dict(truth) if number == 0 else _written_again(random, truth, born, towns)
            made.records.append({"id": f"p{len(made.records)}", **{k: v for k, v in record.items() if v}})
            made.person.append(person)
    order = random.permutation(len(made.records))
    return Made([made.records[i] for i in order], [made.person[i] for i in order])


def _common_first(random: np.random.Generator, values: list[str]) -> Any:
    """Return a function that chooses a value; some are chosen much more often than others."""
    shares = np.cumsum(1 / np.arange(3, len(values) + 3))
    shuffled = random.permutation(np.array(values))
    return lambda: str(shuffled[np.searchsorted(shares, random.random() * shares[-1])])


def _written_again(
    random: np.random.Generator, truth: dict[str, str], born: tuple[int, int, int], towns: Any
) -> dict[str, str]:
    record = dict(truth)
    chance = random.random
    if chance() < 0.25:
        record["first_name"] = _short(random, truth["first_name"])
    for name, rate in (("first_name", 0.08), ("surname", 0.15), ("birth_place", 0.12), ("occupation", 0.05)):
        if chance() < rate:
            record[name] = _slip(random, record[name])
    year, month, day = born
    match int(chance() * 10):
        case 0:
            record["born"] = f"{year}"
        case 1:
            record["born"] = f"{year + int(random.choice([-1, 1]))}-{month:02}-{day:02}"
        case 2:
            record["born"] = f"{year}-{day:02}-{month:02}" if day < 13 else f"{year}-{month:02}-{day - 1 or 2:02}"
    if chance() < 0.2:
        record["postcode"] = _postcode(random, truth["postcode"][0])
    if chance() < 0.1:
        record["birth_place"] = towns()
    if chance() < 0.2:
        record["occupation"] = _TRADES[int(random.integers(len(_TRADES)))]
    for name, rate in zip(truth, (0.03, 0.03, 0.15, 0.2, 0.35, 0.25), strict=True):
        if chance() < rate:
            record[name] = ""
    return record


def _postcode(random: np.random.Generator, area: str) -> str:
    return f"{area}{random.integers(1, 99)} {random.integers(1, 9)}QX"


def _short(random: np.random.Generator, first_name: str) -> str:
    short = [word for word, readings in LISTS["english-nicknames"].items() if first_name.lower() in readings]
    return str(random.choice(short)).title() if short and random.random() < 0.8 else first_name[0]


def _slip(random: np.random.Generator, text: str) -> str:
    """Return a text with one letter left out, doubled, replaced or swapped with the next."""
    at = int(random.integers(len(text)))
    letter = "abcdefghijklmnopqrstuvwxyz"[int(random.integers(26))]
    return [
        text[:at] + text[at + 1 :] if len(text) > 2 else text,
        text[:at] + text[at] + text[at:],
        text[:at] + letter + text[at + 1 :],
        text[:at] + text[at : at + 2][::-1] + text[at + 2 :],
    ][int(random.integers(4))]


def quality(groups: ItemGroups, made: Made) -> tuple[float, float, float]:
    """Precision, recall and F1 of the pairs in groups."""

    def pairs(keys: Any) -> int:
        sizes = np.unique(keys, return_counts=True, axis=0)[1]
        return int((sizes * (sizes - 1) // 2).sum())

    right = pairs(np.stack([groups.leader, np.array(made.person)], axis=1))
    found, there = pairs(groups.leader), pairs(np.array(made.person))
    return right / found, right / there, 2 * right / (found + there)


_VARIANTS = (  # what somebody else leaves out or writes in another way; each after the first adds one
    lambda record, chance: record.update(name=" ".join([*record["name"].split()[:2], "Centre"])),
    lambda record, chance: record.update(name=" ".join(record["name"].split()[::-1][:2]), zip=None),
    lambda record, chance: record.update(name=record["name"].split()[0], address=None),
)


def sites(count: int, copies: float, sorts: int, seed: int = 0) -> Made:
    """Return three records of each of so many sites: two are copies of the first (a share of them), or edited.

    sorts: of records, 2 to 4: the first one, and those edited in other ways. All have the same phone.
    """
    random = np.random.default_rng(seed)
    made = Made([], [])
    for site in range(count):
        words = [f"{_ROOTS[i]}{_ENDS[j]}" for i, j in random.integers((len(_ROOTS), len(_ENDS)), size=(4, 2))]
        truth = {
            "name": " ".join(words[:3]),
            "address": f"{random.integers(1, 9999)} {words[3]} Street",
            "zip": str(random.integers(60000, 60100)),
            "phone": str(random.integers(2_000_000, 9_999_999)),
        }
        for number in range(3):
            record: dict[str, Any] = dict(truth)
            if number and random.random() >= copies:
                record["address"] = record["address"].replace("Street", "St")
                record["zip"] = record["zip"] if random.random() < 0.5 else None
                _VARIANTS[int(random.integers(sorts - 1))](record, random)
            made.records.append({"id": str(len(made.records)), **{k: v for k, v in record.items() if v}})
            made.person.append(site)
    return made


def households(count: int, seed: int = 0) -> Made:
    """Return the people of so many households in two lists, the second with slips. A family shares name and address."""
    random = np.random.default_rng(seed)
    made = Made([], [])
    for _ in range(count):
        family, town = (f"{_ROOTS[i]}{_ENDS[j]}" for i, j in random.integers((len(_ROOTS), len(_ENDS)), size=(2, 2)))
        address = f"{random.integers(1, 99)} {_ROOTS[int(random.integers(len(_ROOTS)))]} Lane"
        for _ in range(int(random.integers(1, 7))):
            first, born = _FIRST[int(random.beta(0.7, 2.5) * len(_FIRST))], int(random.integers(1790, 1850))
            truth = {"first": first, "surname": family, "born": str(born), "birth_place": town, "address": address}
            number = made.person[-1] + 1 if made.person else 0
            for record in (truth, {**truth, "born": str(born + int(random.integers(-1, 2)))}):
                if record is not truth and random.random() < 0.3:
                    record["first"] = _slip(random, record["first"])
                made.records.append({"id": str(len(made.records)), **record})
                made.person.append(number)
    return made


def swapped(count: int, seed: int = 0) -> Made:
    """Return four records of each of so many people, in which first name and surname are often swapped or missing."""
    random = np.random.default_rng(seed)
    made = Made([], [])
    for person in range(count):
        root, end, town = (int(random.integers(len(of))) for of in (_ROOTS, _ENDS, _ROOTS))
        truth = {
            "first": _FIRST[int(random.integers(len(_FIRST)))],
            "surname": f"{_ROOTS[root]}{_ENDS[end]}",
            "born": f"{random.integers(1940, 2000)}-{random.integers(1, 13):02}-{random.integers(1, 29):02}",
            "town": f"{_ROOTS[town]}ton",
            "email": f"{_ENDS[end]}{random.integers(9999)}@{_ROOTS[town].lower()}{random.integers(99)}.net",
        }
        for number in range(4):
            record = dict(truth)
            if number and random.random() < 0.3:
                record["first"], record["surname"] = record["surname"], record["first"]
            for name in ("first", "surname", "town", "email"):
                if number and random.random() < 0.3:
                    record[name] = _slip(random, record[name])
                if random.random() < 0.25:
                    record[name] = ""
            made.records.append({"id": str(len(made.records)), **{k: v for k, v in record.items() if v}})
            made.person.append(person)
    return made


def districts(count: int, seed: int = 0, moved: float = 0.5) -> Made:
    """Return the districts of so many towns in two lists, one to thirty of each, which share name, state and region.

    moved: the share of the places that are not exact.
    """
    random = np.random.default_rng(seed)
    made = Made([], [])
    for _ in range(count):
        root, end, state = (int(random.integers(len(of))) for of in (_ROOTS, _ENDS, _TRADES))
        town, centre = f"{_ROOTS[root]}{_ENDS[end]}", random.uniform((30, -120), (48, -70))
        for _ in range(int(min(random.geometric(0.2), 30))):
            place = centre + random.normal(0, 0.05, 2)
            number = made.person[-1] + 1 if made.person else 0
            for _ in range(2):
                latitude, longitude = (place + random.normal(0, 0.01, 2) * (random.random() < moved)).round(4).tolist()
                record = {"town": town, "state": _TRADES[state], "latitude": latitude, "longitude": longitude}
                made.records.append({"id": str(len(made.records)), **record})
                made.person.append(number)
    return made


def provinces(count: int, seed: int = 0) -> Made:
    """Return the provinces of so many countries in two lists; the second spells some otherwise and adds local names."""
    random = np.random.default_rng(seed)
    made = Made([], [])
    for country in range(count):
        kinds = [_TRADES[kind] for kind in random.integers(len(_TRADES), size=2)]
        for number in range(len(made.person), len(made.person) + int(min(5 + random.geometric(0.05), 60))):
            root, end, other = (int(random.integers(len(of))) for of in (_ROOTS, _ENDS, _ROOTS))
            name = f"{_ROOTS[root]}{_ENDS[end]} {_ROOTS[other]}"
            first = {"name": name, "type": kinds[int(random.random() < 0.2)], "country": f"C{country}"}
            second = first if random.random() < 0.7 else {**first, "name": f"{_ROOTS[other]} {_ENDS[end]}"}
            second = second if random.random() < 0.7 else {**second, "local": name[::-1]}
            for record in (first, second):
                made.records.append({"id": str(len(made.records)), **record})
                made.person.append(number)
    return made


def shades(count: int, copies: int = 0) -> Made:
    """Return so many signs in five shades, which three sources name alike; each source fills fields of its own.

    copies: of each record of the first source.
    """
    made = Made([], [])
    for sign in range(count):
        root, end = f"{_ROOTS[sign % len(_ROOTS)]} {_TRADES[sign % len(_TRADES)]}", f"sign {sign:04}"
        for shade in ("", " light", " medium light", " medium dark", " dark"):
            number = made.person[-1] + 1 if made.person else 0
            for extra in (*[{"group": root}] * (1 + copies), {"alias": f"{sign} {shade}"}, {"tags": f"{root} {sign}"}):
                record = {"name": f"{root} {end}{shade and f' with {shade} tone'}", "version": sign % 7, **extra}
                made.records.append({"id": str(len(made.records)), **record})
                made.person.append(number)
    return made


def counties(count: int, lists: int, seed: int = 0) -> Made:
    """Return so many counties of a few states in lists that hold each once; a fiftieth has a typing error in one list.

    A fifth of the names is near to another one of the same state, as "Dale County" is to "Dallas County".
    """
    random = np.random.default_rng(seed)
    made, names = Made([], []), dict[tuple[str, str], None]()

    def part() -> str:
        return "".join(random.choice(list("bcdfglmnprst" if place % 2 else "aeiou")) for place in range(1, 4))

    while len(names) < count:
        begins, state = part() + part(), _TRADES[int(random.integers(len(_TRADES)))]
        for _ in range(1 + (random.random() < 0.1)):
            names[f"{begins}{part()} County".title(), state] = None
    for number, (name, state) in enumerate(names):
        for place in range(lists):
            wrong = place == 0 and random.random() < 1 / 50
            written = name[0] + name[2] + name[1] + name[3:] if wrong else name
            made.records.append({"id": str(len(made.records)), "name": written, "state": state})
            made.person.append(number)
    return made


def artists(count: int, shared: int, seed: int = 0) -> Made:
    """Return so many artists in two lists, the shared ones in both, under equal names; all others in one of them.

    A life, as "French, 1901 - 1985", repeats what three other fields say, and so do many artists.
    """
    random = np.random.default_rng(seed)
    made = Made([], [])

    def word() -> str:
        parts = (
            random.choice(list("bdfgklmnprstvz")) + random.choice(list("aeiou")) for _ in range(random.integers(2, 5))
        )
        return "".join(parts).title()

    firsts = [word() for _ in range(150)]
    for number in range(count):
        name = f"{firsts[random.integers(150)]} {word()}"
        nation = str(random.choice(["American"] * 6 + ["French", "German", "Italian", "Dutch"]))
        born = int(random.integers(1880, 1961))
        died = born + int(random.integers(50, 91))
        for _ in range(1 + (number < shared)):
            told = born + int(random.random() < 0.03)
            life = f"{nation}, {told}" + (f" - {died}" if died < 1990 else "")
            record = {"id": str(len(made.records)), "name": name, "nationality": nation, "life": life, "born": told}
            made.records.append(record | ({"died": died} if died < 1990 else {}))
            made.person.append(number)
    return made


def titles(shared: int, alone: int, seed: int = 0) -> Made:
    """Return titles of words that many titles hold: the shared ones in both of two lists, so many in each alone."""
    random = np.random.default_rng(seed)
    sciences = [one + other for one in ("bio", "geo", "hydro", "neuro", "photo", "psycho") for other in (
        "logy", "physics", "chemistry", "metrics", "graphy", "dynamics", "therapy", "informatics")]  # fmt: skip
    heads = ("Journal of", "International Journal of", "Annals of", "Advances in", "Archives of")
    every = [f"{head} {one} and {other}" for head in heads for one in sciences for other in sciences if one < other]
    made = Made([], [])
    for number, name in enumerate(random.permutation(every)[: shared + 2 * alone].tolist()):
        for _ in range(1 + (number < shared)):
            made.records.append({"id": str(len(made.records)), "name": name})
            made.person.append(number)
    return made


def volumes(count: int, shared: int, seed: int = 0) -> Made:
    """Return so many volumes of series in two lists, the shared ones in both, all others in one of them.

    A series has four volumes by one author, and some volumes have a name of their own that is near to another one. One
    list also gives a language, and the other one a publisher; half of its authors have initials.
    """
    random = np.random.default_rng(seed)
    made = Made([], [])

    def word(parts: int) -> str:
        pairs = (random.choice(list("bdfgklmnprstvz")) + random.choice(list("aeiou")) for _ in range(parts))
        return "".join(pairs).title()

    order = random.permutation(count)
    for number in range(count):
        if number % 4 == 0:
            series, first, last = f"{word(3)} {word(2)}", word(2), word(3)
        name = f"{series} {number % 4 + 1}"
        short = f"{first[0]}. {last}" if random.random() < 0.5 else f"{first} {last}"
        one = {"name": name, "author": f"{first} {last}", "language": str(random.choice(["eng", "ger", "fre"]))}
        other = {"name": name, "author": short, "publisher": _TRADES[int(random.integers(len(_TRADES)))]}
        place = order[number]
        for record in (one, other) if place < shared else (one,) if place % 2 else (other,):
            made.records.append({"id": str(len(made.records)), **record})
            made.person.append(number)
    return made


def twins(count: int, born_together: int, seed: int = 0) -> Made:
    """Return two records of each of so many persons, and the twins of some: other first names, all else the same."""
    random = np.random.default_rng(seed)
    made = Made([], [])
    for number in range(count):
        first, twin, last = (
            f"{_ROOTS[i]}{_ENDS[j]}" for i, j in random.integers((len(_ROOTS), len(_ENDS)), size=(3, 2)).tolist()
        )
        year, month, day = random.integers((1930, 1, 1), (2005, 13, 29)).tolist()
        truth = {
            "last": last,
            "born": f"{year}-{month:02}-{day:02}",
            "street": f"{random.integers(1, 999)} {twin} Road",
        }
        slip = int(random.integers(1, len(last)))
        made.records.extend({"first": first, **truth, "last": name} for name in (last, last[:slip] + last[slip + 1 :]))
        made.person.extend([2 * number] * 2)
        if number < born_together and twin != first:
            made.records.append({"first": twin, **truth})
            made.person.append(2 * number + 1)
    made.records[:] = [{"id": str(place), **record} for place, record in enumerate(made.records)]
    return made


def families(count: int, several: float, again: float, seed: int = 0) -> Made:
    """Return the persons of so many homes, who share name, street, town and phone.

    several: the share of homes with two to five persons. again: the share of persons who have a second record, with
    slips and gaps; one of seven has moved.
    """
    random = np.random.default_rng(seed)
    made, chance = Made([], []), random.random
    surnames = _common_first(random, [root + end for root in _ROOTS for end in _ENDS])

    def home() -> dict[str, str]:
        root, street, town = (int(random.integers(len(of))) for of in (_ROOTS, _ENDS, _ROOTS[:20]))
        return {"street": f"{random.integers(1, 300)} {_ROOTS[root]}{_ENDS[street]} Road", "town": f"{_ROOTS[town]}ton"}

    for _ in range(count):
        family = {"last": surnames(), **home(), "phone": f"0{random.integers(10**8, 10**9)}"}
        for _ in range(int(random.integers(2, 6)) if chance() < several else 1):
            year, month, day = random.integers((1930, 1, 1), (2005, 13, 29)).tolist()
            first = _FIRST[int(random.beta(0.7, 2.5) * len(_FIRST))]
            truth = {"first": first, **family, "born": f"{year}-{month:02}-{day:02}" if chance() < 0.7 else ""}
            number = made.person[-1] + 1 if made.person else 0
            second = {**truth, **(home() if chance() < 0.15 else {})}
            second |= {name: _slip(random, truth[name]) for name in ("first", "last") if chance() < 0.15}
            second |= {name: "" for name in ("born", "phone") if chance() < 0.2}
            for record in (truth, second)[: 1 + (chance() < again)]:
                made.records.append({"id": str(len(made.records)), **{k: v for k, v in record.items() if v}})
                made.person.append(number)
    return made


def forms(count: int, seed: int = 0) -> Made:
    """Return persons in three lists: a census, a register, and tax forms, of which many persons have several.

    Families share a name and a street. Each list has its own fields: one lacks the number, another one the birth, the
    third one the street.
    """
    random = np.random.default_rng(seed)
    made = Made([], [])
    last = at = ""
    for person in range(count):
        first, name, street, work = (
            f"{_ROOTS[i]}{_ENDS[j]}" for i, j in random.integers((len(_ROOTS), len(_ENDS)), size=(4, 2)).tolist()
        )
        if person % 3 == 0:  # a family
            last, at = name, f"{random.integers(1, 999)} {street} Road"
        year, month, day = random.integers((1970, 1, 1), (1985, 13, 29)).tolist()
        born, number = f"{year}-{month:02}-{day:02}", str(random.integers(10**8, 10**9))
        census = {"first": first, "last": last, "born": born, "street": at}
        register = {"first": first, "last": last, "born": born, "number": number}
        taxes = [
            {"first": first, "last": last, "street": at, "number": number, "employer": f"{work} Works"}
            for _ in range(int(random.choice(4, p=(0.35, 0.4, 0.2, 0.05))))
        ]
        for record in (census, register, *taxes):
            if random.random() < 0.1:
                name = ("first", "last")[int(random.integers(2))]
                record[name] = record[name][1:]
            made.records.append({"id": str(len(made.records)), **record})
            made.person.append(person)
    return made
