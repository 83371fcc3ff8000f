"""Records of several fields: quality without labels, and time and memory from records to groups, beside splink.

    python -m benchmarks.items FOLDER ... [--sets NAME ...] [--splink]
    python -m benchmarks.items FOLDER ... --halves | --orders | --again | --calibration | --answers | --parts
    python -m benchmarks.items FOLDER ... --readers
    python -m benchmarks.items --people 10000 100000

FOLDER holds labelled sets of records, each a folder with documents.jsonl.gz and clusters.jsonl.gz; benchmarks.item_sets
writes some. Households, families, people and sites are generated (tests/items/made.py). Kinds of fields are guessed,
but for those of people. --splink measures splink, too, where it is installed.

F1 is that of the pairs in one group. Seconds are processor seconds from records to groups, in a process of its own:
other programs do not count. Memory is the most that this process has held, libraries included.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.items import Category, Date, Exact, Items, Name, Number, Place, Text
from ndd_search.items.grades import Graded
from ndd_search.items.probability_model import THIN
from tests.items.made import PEOPLE, families, households, people, sites

Records = list[dict[str, Any]]
Groups = npt.NDArray[np.int64]  # of each record the number of its group, or of its thing
_THRESHOLDS = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)  # probabilities of splink


def ours(records: Records, schema: Items | None) -> Iterator[list[Any]]:
    """Yield the groups of records, with evidence that was learnt from them."""
    yield Items.learn(records, schema).groups(records).leader.tolist()


def splink(records: Records, schema: Items | None) -> Iterator[list[Any]]:
    """Yield the groups of splink on DuckDB for each threshold.

    Each field is compared as its documentation names for such values. Records meet where a field is equal, or two
    fields are, unless that makes more than 50 pairs of each record. The two rules of the fields with most values train
    it; two of the four fields with most values make a pair sure. Groups are connected components.
    """
    import pandas as pd
    import splink.comparison_library as cl
    from splink import Linker, SettingsCreator, block_on
    from splink.backends.duckdb import DuckDBAPI

    def column(name: str) -> str:  # never a word of SQL, such as "group"
        return "unique_id" if name == "id" else f"its_{name}"

    frame = pd.DataFrame(records).rename(columns=column)
    frame = frame.astype(object).where(frame.notna() & (frame != ""), None)
    comparisons: list[Any] = []
    names = []
    for given, field in (schema or Items.guess(records)).fields.items():
        name, paths = column(given), [column(path) for path in field.paths(given)]
        if field.kind == "place" and len(paths) == 2:
            frame[list(paths)] = frame[list(paths)].apply(pd.to_numeric, errors="coerce")
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
    blocks: list[tuple[str, ...]] = [(name,) for name in telling if 0 < pairs(name) <= 50 * len(frame)]
    rest = [name for name in telling if (name,) not in blocks]
    both = [(one, other) for place, one in enumerate(rest) for other in rest[:place]]
    blocks += [two for two in both if 0 < pairs(*two) <= 50 * len(frame)]
    few = telling[:4]
    settings = SettingsCreator(
        "dedupe_only",
        comparisons=comparisons,
        blocking_rules_to_generate_predictions=[block_on(*block) for block in blocks],
    )
    linker = Linker(DuckDBAPI().register(frame), settings, log_level=50)
    sure: list[Any] = [
        block_on(one, other) for place, one in enumerate(few) for other in few[:place] if pairs(one, other)
    ]
    if sure:  # else it divides by zero
        linker.training.estimate_probability_two_random_records_match(sure, recall=0.6)
    linker.training.estimate_u_using_random_sampling(max_pairs=5e6, seed=1)
    for block in blocks[:2]:
        linker.training.estimate_parameters_using_expectation_maximisation(block_on(*block))
    predicted = linker.inference.predict(threshold_match_probability=0.01)
    for threshold in _THRESHOLDS:
        clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(predicted, threshold)
        rows = clusters.as_pandas_dataframe()
        group = dict(zip(rows["unique_id"], rows["cluster_id"], strict=True))
        yield [group[record["id"]] for record in records]


def _measured(group: Callable[..., Iterator[list[Any]]], *arguments: Any) -> tuple[list[list[Any]], float, float]:
    """Return what a way to group records finds, and the time and memory up to the first of its groupings."""
    began = time.process_time()
    every = group(*arguments)
    first = next(every)
    seconds = time.process_time() - began
    status = Path("/proc/self/status").read_text(encoding="ascii")  # ru_maxrss counts the process that started this one
    return [first, *every], seconds, int(status.split("VmHWM:")[1].split()[0]) / 1024


def cost(group: Callable[..., Iterator[list[Any]]], records: Records, schema: Items | None, thing: Groups) -> str:
    """Return F1, processor seconds and memory of a way to group records, or why there are none.

    Of several thresholds the one with the best F1 is taken, as if somebody had answers to choose it.
    """
    try:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found, seconds, memory = pool.apply(_measured, (group, records, schema))
    except Exception as error:  # of another library
        return f"{group.__name__} failed: {type(error).__name__} |"
    return f"{max(f1(numbered(groups), thing) for groups in found):.3f} | {seconds:.1f} s, {memory:.0f} MB"


def numbered(keys: list[Any]) -> Groups:
    """Return a number of each key, equal for equal keys."""
    found: Groups = np.unique(np.array(keys, dtype=str), return_inverse=True)[1].reshape(-1)
    return found


def pairs_in(groups: Any) -> int:
    """Return how many pairs of records have equal rows."""
    sizes = np.unique(groups, return_counts=True, axis=0)[1]
    return int((sizes * (sizes - 1) // 2).sum())


def f1(groups: Groups, thing: Groups) -> float:
    """Return F1 of the pairs in one group, 0..1."""
    return 2 * pairs_in(np.stack([groups, thing], axis=1)) / max(pairs_in(groups) + pairs_in(thing), 1)


def overview(name: str, records: Records, thing: Groups, schema: Items | None, *, beside: bool) -> None:
    """Print a row of a table about one set, then the doubts.

    F1, seconds and memory; the same of splink; F1 of fixed evidence and of the best single field; how many doubts; the
    share of the true pairs that are candidates.
    """
    learnt = Items.learn(records, schema)
    fixed = Items(**{**learnt.fields}).groups(records)  # type: ignore[arg-type]
    rules = {
        field: f1(np.where(column.codes < 0, -1 - np.arange(len(records)), column.codes), thing)
        for field, column in fixed.table.columns.items()
    }
    best = max(rules, key=rules.__getitem__)
    doubts = learnt.learnt.doubts if learnt.learnt else ()
    costs = [cost(group, records, schema, thing) for group in ([ours, splink] if beside else [ours])]
    met = learnt.candidates(records)
    recall = (thing[met.first] == thing[met.second]).sum() / max(pairs_in(thing), 1)
    cells = [f"{name}, {len(records):,}", *costs, f"{f1(fixed.leader, thing):.3f}", f"{best} {rules[best]:.3f}"]
    print("|", " | ".join([*cells, str(len(doubts)), f"{recall:.3f}"]), "|")
    for doubt in doubts:
        print(f"    doubt: {doubt}", flush=True)


def halves(name: str, records: Records, thing: Groups, schema: Items | None) -> None:
    """Print the F1 of groups in five random halves of the things: by what each teaches, and by what all records do."""
    whole, own, other = Items.learn(records, schema), [], []
    for seed in range(5):
        chosen = np.random.default_rng(seed).permutation(thing.max() + 1)[: (thing.max() + 1) // 2]
        places = np.flatnonzero(np.isin(thing, chosen))
        some = [records[place] for place in places.tolist()]
        own.append(f1(Items.learn(some, schema).groups(some).leader, thing[places]))
        other.append(f1(whole.groups(some).leader, thing[places]))
    line = "; by what all records teach ".join(" ".join(f"{half:.3f}" for half in each) for each in (own, other))
    print(f"{name}: halves {line}", flush=True)


def orders(name: str, records: Records, thing: Groups, schema: Items | None) -> None:
    """Print the F1 of groups if the records come in five orders: the samples of pairs that teach differ."""
    found = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(records))
        some = [records[place] for place in order.tolist()]
        found.append(f1(Items.learn(some, schema).groups(some).leader, thing[order]))
    print(f"{name}: orders {' '.join(f'{each:.3f}' for each in found)}", flush=True)


def again(name: str, records: Records, thing: Groups, schema: Items | None) -> None:
    """Print how many of 1,500 records are found that come again with a letter missing in one field.

    By the evidence of lists with fields of their own; without it; and if records of one list were never one thing.
    """
    learnt, rng, some, changed = Items.learn(records, schema), random.Random(1), records[:1500], list[Any]()
    for number, record in enumerate(some):
        copy = {**record, "id": f"again {number}"}
        if texts := [name for name, value in record.items() if name != "id" and len(str(value)) > 5]:
            field = rng.choice(texts)
            text = str(record[field])
            at = rng.randrange(len(text))
            copy[field] = text[:at] + text[at + 1 :]
        changed.append(copy)
    assert learnt.learnt is not None
    found = []
    for lists in (learnt.learnt.lists, {}, dict.fromkeys(learnt.learnt.lists, -1e9)):
        fields: Any = dict(learnt.fields)
        leader = Items(**fields, learnt=replace(learnt.learnt, lists=lists)).groups([*some, *changed]).leader
        found.append((leader[: len(some)] == leader[len(some) :]).mean())
    print(f"{name}: found again {' '.join(f'{share:.3f}' for share in found)}", flush=True)


def calibration(name: str, records: Records, thing: Groups, schema: Items | None) -> None:
    """Print a row of a table: verdicts about candidates that have a thin margin, then those that are wrong.

    Each for a pair that counts as one thing. Wrong are pairs called one thing, and pairs called different. The last
    cell says whether a doubt tells that two ways of learning disagree.
    """
    learnt = Items.learn(records, schema)
    groups = learnt.groups(records)
    met = groups.candidates
    graded: Graded = learnt.graded(learnt.comparison(groups.table), met.first, met.second)
    odds, one = learnt.log_odds(graded) - learnt.bar, thing[met.first] == thing[met.second]
    wrong = (odds >= 0) & ~one, (odds < 0) & one
    cells = [f"{each.sum() / max(int((odds >= 0).sum()), 1):.3f}" for each in (np.abs(odds) < THIN, *wrong)]
    disagree = any("is not known" in doubt for doubt in (learnt.learnt.doubts if learnt.learnt else ()))
    print("|", " | ".join([name, *cells, "yes" if disagree else "no"]), "|", flush=True)


def answers(name: str, records: Records, thing: Groups, schema: Items | None) -> None:
    """Print the F1 of groups before and after true answers to 10, 20, 50 and 200 questions."""
    learnt, places = Items.learn(records, schema), {id(record): place for place, record in enumerate(records)}
    asked = [(one.first, one.second) for one in learnt.questions(records, 200)]
    told = [(a, b, bool(thing[places[id(a)]] == thing[places[id(b)]])) for a, b in asked]
    cells = [f"{f1(learnt.groups(records).leader, thing):.3f}"]
    for count in (10, 20, 50, 200):
        cells.append(f"{f1(learnt.answered(told[:count]).groups(records).leader, thing):.3f}")
    print("|", " | ".join([name, *cells]), "|", flush=True)


def parts(name: str, records: Records, thing: Groups, schema: Items | None) -> None:
    """Print the F1 of all groups by what a part of the records teaches, and after ten answers about that part."""
    order = np.random.default_rng(0).permutation(len(records)).tolist()
    of = {records[place]["id"]: int(thing[place]) for place in order}
    for count in (300, 600, 1_000, 2_000, len(order)):
        some = [records[place] for place in order[:count]]
        learnt = Items.learn(some, schema)
        asked = [(one.first, one.second) for one in learnt.questions(some)]
        told = learnt.answered([(a, b, of[a["id"]] == of[b["id"]]) for a, b in asked])
        before, after = (f1(each.groups(records).leader, thing) for each in (learnt, told))
        doubts = learnt.learnt.doubts if learnt.learnt else ()
        print(f"{name}: by {len(some):,} records {before:.3f}, after ten answers {after:.3f} {doubts}", flush=True)


_FEBRL = ("given_name", "surname", "street_number", "address_1", "suburb", "postcode", "state", "date_of_birth")
_READERS: dict[str, list[dict[str, Any]]] = {  # kinds that readers of docs/items.md may choose for the same fields
    "early_childhood": [
        {"name": Name(), "address": Name(), "phone": Exact(), "programme": Category(), "zip": Exact()},
        {"name": Name(synonyms="english-abbreviations"), "address": Name(), "phone": Exact()},
        {"name": Text(), "address": Name(), "phone": Exact(), "zip": Category()},
        {"name": Name(), "address": Name(), "phone": Name(), "zip": Number()},
        {"name": Name(), "address": Text(), "phone": Exact(veto=True), "programme": Name()},
    ],
    "febrl": [
        {**dict.fromkeys(_FEBRL, Name()), "postcode": Exact(), "date_of_birth": Exact(), "state": Category()},
        {**dict.fromkeys(_FEBRL[:2], Name()), "suburb": Name(), "date_of_birth": Date()},
        {**dict.fromkeys(_FEBRL, Text()), "postcode": Exact(), "date_of_birth": Date()},
        {**dict.fromkeys(_FEBRL, Name()), "postcode": Number(), "date_of_birth": Number()},
        {**dict.fromkeys(_FEBRL, Exact()), "date_of_birth": Date()},
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


def readers(name: str, records: Records, thing: Groups, _: Items | None) -> None:
    """Print the F1 of groups with schemas as five readers may write them, and the doubts about each."""
    for number, fields in enumerate([None, *_READERS[name]] if name in _READERS else ()):
        learnt = Items.learn(records, Items(**fields) if fields else None)
        quality = f1(learnt.groups(records).leader, thing)
        print(f"{name}, {f'reader {number}' if number else 'guessed'}: F1 {quality:.3f}", flush=True)
        for doubt in learnt.learnt.doubts if learnt.learnt else ():
            print(f"    doubt: {doubt}")


def _lines(path: Path) -> list[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def labelled_sets(folders: list[Path], names: list[str] | None) -> Iterator[tuple[str, Records, Groups, Items | None]]:
    """Yield the name, records, thing of each record, and schema of generated sets, and of those in some folders."""
    generated = {"sites": partial(sites, 1_000, 0.2, 3), "households": partial(households, 1_000)}
    generated["families"] = partial(families, 700, 0.3, 0.3)
    for name, make in {**generated, "people": partial(people, 5_000)}.items():
        if not names or name in names:
            made = make()
            yield name, made.records, numbered(made.person), PEOPLE if name == "people" else None
    for path in sorted(path for folder in folders for path in folder.glob("*/clusters.jsonl.gz")):
        documents = _lines(path.with_name("documents.jsonl.gz"))
        if "fields" in documents[0] and (not names or path.parent.name in names):
            records = [{"id": one["id"], **one["fields"]} for one in documents]
            of = {id: place for place, cluster in enumerate(_lines(path)) for id in cluster["members"]}
            thing = numbered([of.get(record["id"], f"alone {record['id']}") for record in records])
            yield path.parent.name, records, thing, None


def page_check() -> None:
    """Print the time of a page of 100 records."""
    made = people(60, seed=5)
    schema = Items.learn(people(500, seed=6).records, PEOPLE)
    times = []
    for _ in range(100):
        began = time.process_time()
        schema.collapse(made.records[:100])
        times.append(time.process_time() - began)
    print(f"a page of 100 records: {1000 * float(np.median(times)):.1f} ms, {1000 * min(times):.1f} ms at best")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help="of labelled sets")
    parser.add_argument("--sets", nargs="*", help="these only")
    parser.add_argument("--splink", action="store_true", help="beside splink")
    shown = parser.add_mutually_exclusive_group()
    for show in (halves, orders, again, calibration, answers, parts, readers):
        about = (show.__doc__ or "").split(".")[0].removeprefix("Print ")
        shown.add_argument(f"--{show.__name__}", dest="show", action="store_const", const=show, help=about)
    parser.add_argument("--people", type=int, nargs="*", help="only so many generated people, and a page of records")
    arguments = parser.parse_args()
    for size in arguments.people or ():
        made = people(size // 2)
        print(f"people {size:,}: {cost(ours, made.records[:size], PEOPLE, numbered(made.person[:size]))}", flush=True)
    if arguments.people is not None:
        page_check()
        return
    for one in labelled_sets(arguments.folders, arguments.sets):
        (arguments.show or partial(overview, beside=arguments.splink))(*one)


if __name__ == "__main__":
    main()
