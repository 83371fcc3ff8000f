"""Records of several fields: quality without labels, and time from records to groups, beside other libraries.

    python -m benchmarks.items [--people 10000 50000] [--peers] [--collections FOLDER] [--overview FOLDER ...]

People are generated (tests/items/made.py): nicknames, gaps and errors. --collections names a folder with the labelled
collections airports and febrl; without them only people are measured. --peers adds splink and recordlinkage where they
are installed, each with the comparisons and blocking rules that its documentation recommends for such fields, trained
without labels, and grouped by connected components. Each runs in a process of its own, one after the other.

pairs F1: of pairs called one thing, against all true pairs. groups F1: of pairs in one group. labelled F1: over the
labelled pairs of a collection alone. compared: candidate pairs; of splink only those with a probability of 0.01 or
more. Seconds are processor seconds of this process from records to groups: other programs do not count, nor does what
reads pairs and members out of the result for the comparison.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ndd_search as ndd
from ndd_search.items import Category, Date, Exact, Name, Number, Place, Text
from ndd_search.items.record_groups import ItemGroups
from tests.items.made import PEOPLE, Made, households, people, sites

Pairs = set[tuple[str, str]]
Records = list[dict[str, Any]]
FIELDS = ("first_name", "surname", "born", "birth_place", "occupation", "postcode")
FEBRL = ("given_name", "surname", "street_number", "address_1", "suburb", "postcode", "state", "date_of_birth")
Result = tuple[Pairs, list[set[str]], int]  # pairs called one thing, groups, and how many pairs were compared
Method = Callable[[str, Records], Callable[[], Result]]  # groups records, and returns what reads the result


def ours(kind: str, records: Records) -> Callable[[], Result]:
    """Items with learnt evidence: of people with the fields named, of the collections with fields guessed."""
    groups = ndd.items.Items.learn(records, PEOPLE if kind == "people" else None).groups(records)

    def read() -> Result:
        members = [{groups.ids[i] for i in every} for every in groups.members.values()]
        return _every_pair(groups), members, len(groups.candidates)

    return read


def _every_pair(groups: ItemGroups) -> Pairs:
    """Return the pairs of a grouping, also those of copies: of records with equal values it names the first only."""
    codes = np.stack([column.codes for column in groups.table.columns.values()], axis=1)
    equal = np.unique(codes, axis=0, return_inverse=True)[1].reshape(len(codes)).tolist()
    holders: dict[int, list[str]] = {}
    for place, kind in enumerate(equal):
        holders.setdefault(kind, []).append(groups.ids[place])
    ends = zip(groups.pairs.first.tolist(), groups.pairs.second.tolist(), strict=True)
    kinds = {(equal[a], equal[b]) for a, b in ends}
    return {_pair(a, b) for one, other in kinds for a in holders[one] for b in holders[other] if a != b}


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def splink(kind: str, records: Records) -> Callable[[], Result]:
    """splink 5 on DuckDB, term frequencies on, by the recipe of its demonstration of historical persons."""
    import pandas as pd
    import splink.comparison_library as cl
    from splink import block_on

    def text(name: str) -> Any:
        return cl.JaroWinklerAtThresholds(name, [0.92, 0.85, 0.7]).configure(term_frequency_adjustments=True)

    frame = pd.DataFrame(records).rename(columns={"id": "unique_id"})
    frame = frame.astype(object).where(frame.notna() & (frame != ""), None)
    if kind == "people":
        first, last, born = "first_name", "surname", "born"
        comparisons = [
            cl.ForenameSurnameComparison(first, last),
            cl.DateOfBirthComparison(born, input_is_string=True),
            text("birth_place"),
            cl.ExactMatch("occupation").configure(term_frequency_adjustments=True),
            text("postcode"),
        ]
        frame["first_name_surname_concat"] = frame[first].fillna("") + " " + frame[last].fillna("")
        rules = [
            block_on("substr(first_name,1,3)", "substr(surname,1,4)"), block_on("surname", "born"),
            block_on("first_name", "born"), block_on("postcode", "first_name"), block_on("postcode", "surname"),
            block_on("born", "birth_place"), block_on("born", "occupation"), block_on("surname", "birth_place"),
            block_on("postcode", "born"), block_on("postcode", "birth_place"),
        ]  # fmt: skip
        train = [block_on("surname", "first_name"), block_on("born")]
        sure = [block_on("first_name", "surname", "born"), block_on("surname", "born", "postcode")]
    elif kind == "febrl":
        comparisons = [text(name) for name in FEBRL if name not in ("date_of_birth", "state")]
        comparisons += [cl.DamerauLevenshteinAtThresholds("date_of_birth", [1, 2]), cl.ExactMatch("state")]
        rules = [block_on("given_name", "surname"), block_on("date_of_birth"), block_on("postcode", "surname")]
        rules += [block_on("address_1"), block_on("suburb", "given_name"), block_on("street_number", "postcode")]
        train, sure = (
            [block_on("date_of_birth"), block_on("address_1")],
            [block_on("given_name", "surname", "date_of_birth")],
        )
    else:
        comparisons = [text(name) for name in ("name", "city", "region")]
        comparisons += [cl.ExactMatch("country").configure(term_frequency_adjustments=True)]
        comparisons += [cl.DistanceInKMAtThresholds("lat", "lon", [0.3, 1, 3, 10, 30])]
        frame[["lat", "lon"]] = frame[["lat", "lon"]].astype(float)
        frame["cell"] = frame["lat"].round(1).astype(str) + frame["lon"].round(1).astype(str)
        frame.loc[frame["lat"].isna(), "cell"] = None
        rules = [
            block_on("name"),
            block_on("city", "country"),
            block_on("cell"),
            block_on("substr(name,1,6)", "country"),
        ]
        train, sure = [block_on("city", "country"), block_on("name")], [block_on("name", "city", "country")]
    return _splinked(frame, comparisons, rules, train, sure)


def _splinked(
    frame: Any, comparisons: list[Any], rules: list[Any], train: list[Any], sure: list[Any]
) -> Callable[[], Result]:
    """Train splink without labels, and group by connected components."""
    from splink import Linker, SettingsCreator
    from splink.backends.duckdb import DuckDBAPI

    api = DuckDBAPI()
    settings = SettingsCreator("dedupe_only", comparisons=comparisons, blocking_rules_to_generate_predictions=rules)
    linker = Linker(api.register(frame), settings, log_level=50)
    linker.training.estimate_probability_two_random_records_match(sure, recall=0.6)
    linker.training.estimate_u_using_random_sampling(max_pairs=5e6, seed=1)
    for rule in train:
        linker.training.estimate_parameters_using_expectation_maximisation(rule)
    predicted = linker.inference.predict(threshold_match_probability=0.01)
    clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(predicted, 0.5).as_pandas_dataframe()

    def read() -> Result:
        frame = predicted.as_pandas_dataframe()
        yes = frame[frame["match_probability"] >= 0.5]
        pairs = {_pair(a, b) for a, b in zip(yes["unique_id_l"], yes["unique_id_r"], strict=True)}
        return pairs, [set(group) for _, group in clusters.groupby("cluster_id")["unique_id"]], len(frame)

    return read


def untuned(kind: str, records: Records) -> Callable[[], Result]:
    """splink without a recipe: of each guessed field the comparison that its documentation names for such values.

    Records meet where a field is equal, or two fields are, unless that makes more than 50 pairs of each record. The two
    rules that make most pairs train it; two of the four fields with most values make a pair sure.
    """
    import pandas as pd
    import splink.comparison_library as cl
    from splink import block_on

    frame = pd.DataFrame(records).rename(columns={"id": "unique_id"})
    frame = frame.astype(object).where(frame.notna() & (frame != ""), None)
    comparisons: list[Any] = []
    names = []
    for name, field in ndd.items.Items.guess(records).fields.items():
        paths = field.paths(name)
        if field.kind == "place" and len(paths) == 2:
            frame[list(paths)] = frame[list(paths)].astype(float)
            comparisons.append(cl.DistanceInKMAtThresholds(*paths, [1, 3, 10, 30]))
            continue
        frame[name] = [None if value is None else str(value) for value in frame[paths[0]]]
        names.append(name)
        if field.kind == "date":
            comparisons.append(cl.DamerauLevenshteinAtThresholds(name, [1, 2]))
        elif field.kind in ("name", "text", "url"):
            text = cl.JaroWinklerAtThresholds(name, [0.92, 0.85, 0.7])
            comparisons.append(text.configure(term_frequency_adjustments=field.kind == "name"))
        else:
            comparisons.append(cl.ExactMatch(name).configure(term_frequency_adjustments=True))

    def pairs(*by: str) -> float:
        sizes = frame.dropna(subset=list(by)).groupby(list(by)).size()
        return float((sizes * (sizes - 1) / 2).sum())

    telling = sorted(names, key=lambda name: -frame[name].nunique())
    blocks = [(name,) for name in telling if 0 < pairs(name) <= 50 * len(frame)]
    rest = [name for name in telling if (name,) not in blocks]
    both = [(one, other) for place, one in enumerate(rest) for other in rest[:place]]
    blocks += [two for two in both if 0 < pairs(*two) <= 50 * len(frame)]  # type: ignore[misc]
    rules = [block_on(*block) for block in blocks]
    train = [block_on(*block) for block in sorted(blocks, key=lambda block: -pairs(*block))[:2]]
    few = telling[:4]
    sure = [block_on(one, other) for place, one in enumerate(few) for other in few[:place]]
    return _splinked(frame, comparisons, rules, train, sure)


def recordlinkage(kind: str, records: Records) -> Callable[[], Result]:
    """recordlinkage 0.16: blocks on several fields, Jaro-Winkler, and the expectation maximisation classifier."""
    import networkx as nx
    import pandas as pd
    import recordlinkage as rl

    frame = pd.DataFrame(records).set_index("id")
    frame = frame.astype(object).where(frame.notna() & (frame != ""), None)
    names = {"people": FIELDS, "febrl": FEBRL, "airports": ("name", "city", "region", "country")}[kind]
    blocks = {
        "people": (["surname", "born"], ["first_name", "born"], ["postcode", "first_name"], ["surname", "birth_place"],
                   ["postcode", "surname"], ["born", "birth_place"]),
        "febrl": (["given_name", "surname"], ["date_of_birth"], ["address_1"], ["postcode", "surname"]),
        "airports": (["name"], ["city", "country"]),
    }[kind]  # fmt: skip
    indexer = rl.Index()
    for block in blocks:
        indexer.block(block)
    candidates = indexer.index(frame)
    compare = rl.Compare()
    for name in names:
        compare.string(name, name, method="jarowinkler", threshold=0.9, label=name)
    if kind == "airports":
        compare.geo("lat", "lon", "lat", "lon", method="step", offset=2.0, label="place")
    features = compare.compute(candidates, frame.astype({"lat": float, "lon": float}) if kind == "airports" else frame)
    links = rl.ECMClassifier(binarize=0.5).fit_predict(features)
    graph = nx.Graph()
    graph.add_nodes_from(frame.index)
    graph.add_edges_from(links)
    groups = [set(group) for group in nx.connected_components(graph)]
    return lambda: ({_pair(a, b) for a, b in links}, groups, len(candidates))


METHODS: dict[str, Method] = {"ndd_search": ours, "splink": splink, "recordlinkage": recordlinkage}
UNTUNED: dict[str, Method] = {"ndd_search": ours, "splink": untuned}


def f1(found: Pairs, true: Pairs) -> float:
    """Return F1, 0..1."""
    return 2 * len(found & true) / max(len(found) + len(true), 1)


def pairs_of(groups: Iterable[Iterable[str]]) -> Pairs:
    """Return all pairs inside groups."""
    found: Pairs = set()
    for group in groups:
        members = sorted(group)
        found |= {(a, b) for place, a in enumerate(members) for b in members[place + 1 :]}
    return found


def _measured(method: Method, kind: str, records: Records, queue: Any) -> None:
    began, wall = time.process_time(), time.perf_counter()
    try:
        read = method(kind, records)
    except ImportError as error:
        queue.put(f"{method.__name__} was skipped: {error}")
        return
    except Exception as error:  # of another library
        queue.put(f"{method.__name__} failed: {type(error).__name__}")
        return
    processor, elapsed = time.process_time() - began, time.perf_counter() - wall
    status = Path("/proc/self/status").read_text(encoding="ascii")  # ru_maxrss counts the process that started this one
    memory = int(status.split("VmHWM:")[1].split()[0]) / 1024
    queue.put((*read(), processor, elapsed, memory))


def _apart(method: Method, kind: str, records: Records) -> Any:
    """Return the result of a method, its processor seconds, seconds and memory, or why there are none.

    It runs in a process of its own.
    """
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_measured, args=(method, kind, records, queue))
    process.start()
    result = queue.get()
    process.join()
    return result


def measure(
    label: str, kind: str, records: Records, true: Pairs, labels: dict[tuple[str, str], bool], names: list[str]
) -> None:
    """Print a line for each method."""
    for name in names:
        result = _apart(METHODS[name], kind, records)
        if isinstance(result, str):
            print(result)
            continue
        pairs, groups, compared, seconds, wall, memory = result
        line = f"{label:18} {name:14} pairs F1 {f1(pairs, true):.4f}  groups F1 {f1(pairs_of(groups), true):.4f}"
        if labels:
            line += f"  labelled F1 {f1(pairs & labels.keys(), {pair for pair, same in labels.items() if same}):.4f}"
        print(
            f"{line}  {compared:>9,} compared  {seconds:6.1f} s processor  {wall:6.1f} s  {memory:6.0f} MB", flush=True
        )


def _lines(path: Path) -> Records:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def collection(folder: Path) -> tuple[Records, Pairs, dict[tuple[str, str], bool]]:
    """Return the records, true pairs and labelled pairs of a collection."""
    records = [{"id": one["id"], **one["fields"]} for one in _lines(folder / "documents.jsonl.gz")]
    true = pairs_of(cluster["members"] for cluster in _lines(folder / "clusters.jsonl.gz"))
    labelled = {
        _pair(pair["a"], pair["b"]): pair["label"] == 1
        for pair in _lines(folder / "pairs.jsonl.gz")
        if pair["label"] >= 0
    }
    return records, true, labelled


def _labelled_f1(schema: ndd.items.Items, records: Records, labelled: dict[tuple[str, str], bool]) -> tuple[float, int]:
    """Return F1 of the labelled pairs of some records, and how many there are."""
    by_id = {record["id"]: record for record in records}
    known = [(pair, same) for pair, same in labelled.items() if pair[0] in by_id and pair[1] in by_id]
    probability = schema.probabilities((by_id[a], by_id[b]) for (a, b), _ in known)
    found = {pair for (pair, _), p in zip(known, probability.tolist(), strict=True) if p >= schema.min_probability}
    return f1(found, {pair for pair, same in known if same}), len(known)


def _parts(kind: str, records: Records, labelled: dict[tuple[str, str], bool]) -> dict[str, str]:
    """Return of each record what keeps it together with others: its country, or the first record of its thing."""
    key = "country" if kind == "airports" else "id"
    part = {record["id"]: str(record.get(key)) for record in records}
    for a, b in (pair for pair, same in labelled.items() if same):
        part[b] = part[a] if key == "id" else part[b]
    return part


def unseen(folder: Path) -> None:
    """Print the quality of a schema on the half of a collection that it was not learnt from."""
    records, _, labelled = collection(folder)
    part = _parts(folder.name, records, labelled)
    halves: tuple[Records, Records] = ([], [])
    for record in records:
        halves[sum(part[record["id"]].encode()) % 2].append(record)
    for seen, other in (halves, halves[::-1]):
        quality, count = _labelled_f1(ndd.items.Items.learn(seen), other, labelled)
        print(f"{folder.name}: learnt from {len(seen):,} records, F1 {quality:.4f} of "
              f"{count:,} labelled pairs of {len(other):,} others")  # fmt: skip


def overview(name: str, records: Records, thing: list[str], schema: ndd.items.Items | None, peers: bool) -> None:
    """Print rows of tables about one set: F1 of groups beside other ways, and how far expected errors fit."""
    whole = ndd.items.Items.learn(records, schema)
    groups = whole.groups(records)
    plain = ndd.items.Items(**{**whole.fields}).groups(records)  # type: ignore[arg-type]
    rules = {
        field: _grouped_f1(np.where(column.codes < 0, -1 - np.arange(len(records)), column.codes), thing)
        for field, column in groups.table.columns.items()
    }
    best = max(rules, key=rules.__getitem__)
    of: dict[str, list[str]] = {}
    for record, one in zip(records, thing, strict=True):
        of.setdefault(one, []).append(record["id"])
    true = pairs_of(of.values())
    costs = []
    for method in UNTUNED if peers else ("ndd_search",):
        result = _apart(UNTUNED[method], "people" if schema else name, records)
        if isinstance(result, str):
            costs.append(result)
            continue
        _, found, _, seconds, _, memory = result
        costs.append(f"{method} {f1(pairs_of(found), true):.3f} {seconds:.1f} s {memory:.0f} MB")
    doubts = whole.learnt.doubts if whole.learnt else ()
    print(
        f"| {name}, {len(records):,} | {' | '.join(costs)} | {_grouped_f1(plain.leader, thing):.3f} "
        f"| {best} {rules[best]:.3f} | {len(doubts)} |"
    )
    number = np.unique(thing, return_inverse=True)[1]
    met = whole.candidates(records)
    sizes = np.bincount(number)
    recall = (number[met.first] == number[met.second]).sum() / max((sizes * (sizes - 1) // 2).sum(), 1)
    print(f"    candidates {recall:.3f}, {len(met) / len(records):.0f} a record")
    for doubt in doubts:
        print(f"    doubt: {doubt}", flush=True)


def halves(name: str, records: Records, thing: list[str], schema: ndd.items.Items | None) -> None:
    """Print the F1 of groups in five random halves of the things: by what each teaches, and by what all records do."""
    whole = ndd.items.Items.learn(records, schema)
    things, own, other = sorted(set(thing)), [], []
    for seed in range(5):
        chosen = set(np.random.default_rng(seed).permutation(things)[: len(things) // 2].tolist())
        places = [place for place, one in enumerate(thing) if one in chosen]
        some, kept = [records[place] for place in places], [thing[place] for place in places]
        own.append(_grouped_f1(ndd.items.Items.learn(some, schema).groups(some).leader, kept))
        other.append(_grouped_f1(whole.groups(some).leader, kept))
    line = "; by what all records teach ".join(" ".join(f"{half:.3f}" for half in each) for each in (own, other))
    print(f"{name}: halves {line}", flush=True)


def calibration(name: str, records: Records, thing: list[str], schema: ndd.items.Items | None) -> None:
    """Print a row of a table: wrong verdicts that were expected about candidates, and those there were.

    The last cell says whether the expected ones are known: no doubt says that two ways of learning disagree.
    """
    learnt = ndd.items.Items.learn(records, schema)
    number = np.unique(thing, return_inverse=True)[1]
    known = not any("is not known" in doubt for doubt in (learnt.learnt.doubts if learnt.learnt else ()))
    expected, were = _calibrated(learnt, records, number)
    cells = [f"{share:.3f}" for share in (expected[0], were[0], expected[1], were[1])]
    print("|", " | ".join([name, *cells, "yes" if known else "no"]), "|", flush=True)


def _calibrated(
    schema: ndd.items.Items, records: Records, number: Any
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the wrong verdicts that were expected about candidates, and those there were, as shares of the pairs.

    Of each, the pairs wrongly called one thing, and those wrongly called different.
    """
    groups = schema.groups(records)
    met = groups.candidates
    graded = schema.comparison(groups.table).graded(met.first, met.second)
    probability = 1 / (1 + np.exp(-schema.log_odds(graded)))
    yes, one = probability >= schema.min_probability, number[met.first] == number[met.second]
    count = max(int(yes.sum()), 1)
    expected = float((1 - probability[yes]).sum() / count), float(probability[~yes].sum() / count)
    return expected, (float((yes & ~one).sum() / count), float((~yes & one).sum() / count))


def _grouped_f1(group: Any, thing: list[str]) -> float:
    """Return F1 of the pairs in one group. group, thing: of each record."""

    def pairs(keys: Any) -> int:
        sizes = np.unique(keys, return_counts=True, axis=0)[1]
        return int((sizes * (sizes - 1) // 2).sum())

    number = np.unique(thing, return_inverse=True)[1]
    return 2 * pairs(np.stack([group, number], axis=1)) / max(pairs(group) + pairs(number), 1)


def overviews(folders: Iterable[Path], show: Callable[..., None], sets: list[str] | None = None) -> None:
    """Show every set in some folders that has things of records, and generated records. sets: names of these only."""
    made: dict[str, Made] = {"sites": sites(1_000, 0.2, 3), "households": households(1_000), "people": people(5_000)}
    for name, one in ((name, one) for name, one in made.items() if not sets or name in sets):
        show(name, one.records, list(map(str, one.person)), PEOPLE if name == "people" else None)
    for path in sorted(path for folder in folders for path in folder.glob("*/clusters.jsonl.gz")):
        if sets and path.parent.name not in sets:
            continue
        if any("fields" in one for one in _lines(path.with_name("documents.jsonl.gz"))[:1]):
            show(path.parent.name, *labelled_records(path.parent), None)


_READERS = {  # kinds that readers of docs/items.md may choose for the same fields
    "early_childhood": [
        {"name": Name(), "address": Name(), "phone": Exact(), "programme": Category(), "zip": Exact()},
        {"name": Name(synonyms="english-abbreviations"), "address": Name(), "phone": Exact()},
        {"name": Text(), "address": Name(), "phone": Exact(), "zip": Category()},
        {"name": Name(), "address": Name(), "phone": Name(), "zip": Number()},
        {"name": Name(), "address": Text(), "phone": Exact(veto=True), "programme": Name()},
    ],
    "febrl": [
        {**dict.fromkeys(FEBRL, Name()), "postcode": Exact(), "date_of_birth": Exact(), "state": Category()},
        {**dict.fromkeys(FEBRL[:2], Name()), "suburb": Name(), "date_of_birth": Date()},
        {**dict.fromkeys(FEBRL, Text()), "postcode": Exact(), "date_of_birth": Date()},
        {**dict.fromkeys(FEBRL, Name()), "postcode": Number(), "date_of_birth": Number()},
        {**dict.fromkeys(FEBRL, Exact()), "date_of_birth": Date()},
    ],
    "patstat": [
        {"name": Name(), "location": Place(), "coauthors": Category(separator=";"), "classes": Category(separator=";")},
        {"name": Name(synonyms="english-abbreviations"), "classes": Category(separator=";"), "location": Place()},
        {"name": Name(), "location": Place(within_km=10), "coauthors": Text(), "classes": Text()},
        {"name": Text(), "coauthors": Text(), "classes": Exact()},
        {"name": Exact(), "location": Place(), "coauthors": Category(separator=";"), "classes": Category()},
    ],
    "countries": [
        {"name": Name(), "capital": Name(), "area": Number(), "currency": Exact(), "region": Category()},
        {"name": Name(), "capital": Exact(), "region": Category(), "languages": Category(separator=";")},
        {"name": Text(), "native": Text(), "capital": Name(), "location": Place(within_km=50), "population": Number()},
        {"name": Name(), "area": Exact(), "population": Exact(), "calling_code": Exact()},
        {"name": Exact(), "capital": Name(), "currency": Category(), "calling_code": Number(), "location": Place()},
    ],
}  # fmt: skip


def readers(folder: Path) -> None:
    """Print the F1 of groups with schemas as five readers may write them, and the doubts about each."""
    for name, schemas in _READERS.items():
        records, thing = labelled_records(folder / name)
        for number, fields in enumerate([None, *schemas]):
            schema = ndd.items.Items(**fields) if fields else None  # type: ignore[arg-type]
            learnt = ndd.items.Items.learn(records, schema)
            quality = _grouped_f1(learnt.groups(records).leader, thing)
            print(f"{name}, {f'reader {number}' if number else 'guessed'}: F1 {quality:.3f}", flush=True)
            for doubt in learnt.learnt.doubts if learnt.learnt else ():
                print(f"    doubt: {doubt}")


def labelled_records(folder: Path) -> tuple[Records, list[str]]:
    """Return the records of a set, and of each the thing that it is."""
    records = [{"id": one["id"], **one["fields"]} for one in _lines(folder / "documents.jsonl.gz")]
    clusters = enumerate(_lines(folder / "clusters.jsonl.gz"))
    of = {id: str(number) for number, cluster in clusters for id in cluster["members"]}
    return records, [of.get(record["id"], record["id"]) for record in records]


_OTHER_NAMES = {
    "name": "title", "city": "town", "region": "state", "country": "nation", "lat": "latitude", "lon": "longitude",
    "elevation_ft": "height", "given_name": "first", "surname": "family", "street_number": "number",
    "address_1": "street", "address_2": "house", "suburb": "district", "postcode": "zip", "date_of_birth": "born",
}  # fmt: skip


def robustness(folder: Path) -> None:
    """Print the quality of schemas that were learnt from other parts of a collection, and from records changed in form.

    Random splits keep a country of the airports, or a thing of febrl, in one part; the other part is judged.
    """
    records, true, labelled = collection(folder)
    part = _parts(folder.name, records, labelled)
    keys = sorted(set(part.values()))
    for share in (2, 5):
        for seed in range(5):
            chosen = set(np.random.default_rng(seed).permutation(keys)[: len(keys) // share].tolist())
            seen = [record for record in records if part[record["id"]] in chosen]
            other = [record for record in records if part[record["id"]] not in chosen]
            schema = ndd.items.Items.learn(seen)
            (quality, _), (own, _) = (_labelled_f1(schema, of, labelled) for of in (other, seen))
            print(
                f"{folder.name}: 1/{share} at random, {len(seen):,} records: "
                f"F1 {quality:.4f} of others, {own:.4f} of its own"
            )
    random = np.random.default_rng(0)
    names = list(dict.fromkeys(name for record in records for name in record if name != "id"))
    forms = {
        f"fields in order {seed}": {str(name): str(name) for name in random.permutation(names)} for seed in range(5)
    }
    forms["fields with other names"] = {name: _OTHER_NAMES.get(name, name) for name in names}
    for label, form in forms.items():
        changed = [{"id": record["id"], **{to: record.get(name) for name, to in form.items()}} for record in records]
        print(f"{folder.name}: {label}: F1 {_labelled_f1(ndd.items.Items.learn(changed), changed, labelled)[0]:.4f}")
    order = [records[place] for place in random.permutation(len(records)).tolist()]
    for count in (300, 600, 1_000, 2_000, len(order)):
        schema = ndd.items.Items.learn(order[:count])
        asked = schema.questions(order[:count])
        told = schema.answered(
            [(one.first, one.second, _pair(one.first["id"], one.second["id"]) in true) for one in asked]
        )
        found = (every.groups(records) for every in (schema, told))
        before, after = (
            f1(pairs_of([[groups.ids[i] for i in every] for every in groups.members.values()]), true)
            for groups in found
        )
        print(f"{folder.name}: {count:,} of the records: F1 {before:.4f} of all groups, {after:.4f} after ten answers "
              f"{schema.learnt.doubts if schema.learnt else ()}")  # fmt: skip
    again = _labelled_f1(ndd.items.Items.learn(order), order, labelled)[0]
    print(f"{folder.name}: records in another order: F1 {again:.4f}")


def page_check() -> None:
    """Print the time of a page of 100 records."""
    made = people(60, seed=5)
    schema = ndd.items.Items.learn(people(500, seed=6).records, PEOPLE)
    schema.collapse(made.records[:100])
    times = []
    for _ in range(100):
        schema.parsed.clear()
        schema.parsed.update({name: {} for name in schema.fields})  # values that no page before has read
        began = time.process_time()
        schema.collapse(made.records[:100])
        times.append(time.process_time() - began)
    print(f"a page of 100 records: {1000 * float(np.median(times)):.1f} ms, {1000 * min(times):.1f} ms at best")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, nargs="*", default=[10_000], help="records of generated people (10,000)")
    parser.add_argument("--peers", action="store_true", help="splink and recordlinkage, too")
    parser.add_argument("--methods", nargs="*", choices=METHODS, help="these only")
    parser.add_argument("--collections", type=Path, help="the folder of the labelled collections")
    parser.add_argument("--robustness", action="store_true", help="only learn from other parts of the collections")
    parser.add_argument("--readers", action="store_true", help="only schemas that readers of the documentation write")
    parser.add_argument(
        "--overview", type=Path, nargs="+", help="only the sets in these folders, with --peers beside splink"
    )
    parser.add_argument("--halves", action="store_true", help="with --overview: five random halves of each set")
    parser.add_argument("--calibration", action="store_true", help="with --overview: expected errors beside true ones")
    parser.add_argument("--sets", nargs="*", help="with --overview: these only")
    arguments = parser.parse_args()
    if arguments.readers:
        readers(arguments.collections)
        return
    if arguments.overview:
        show = calibration if arguments.calibration else halves if arguments.halves else None
        overviews(arguments.overview, show or partial(overview, peers=arguments.peers), arguments.sets)
        return
    if arguments.robustness:
        for kind in ("airports", "febrl"):
            robustness(arguments.collections / kind)
        return
    names = arguments.methods or (list(METHODS) if arguments.peers else ["ndd_search"])
    if arguments.collections:
        for kind in ("airports", "febrl"):
            unseen(arguments.collections / kind)
            records, true, labelled = collection(arguments.collections / kind)
            measure(kind, kind, records, true, labelled, names)
    page_check()
    for size in arguments.people:
        made = people(size // 2)
        records = made.records[:size]
        of: dict[int, list[str]] = {}
        for record, person in zip(records, made.person, strict=False):
            of.setdefault(person, []).append(record["id"])
        measure(f"people {len(records):,}", "people", records, pairs_of(of.values()), {}, names)


if __name__ == "__main__":
    main()
