"""Two cathedrals of one name, and one under two names."""

from __future__ import annotations

import ndd_search as ndd

CORK = {
    "name": "Saint Fin Barre’s Cathedral",
    "summary": "Begun in 1863, the cathedral was the first major work of the Victorian architect William Burges",
    "location": "51.8944, -8.48064",
}

FINBARR = {
    "name": "St. Finbarr’s Cathedral Cork",
    "summary": "Designed by William Burges and consecrated in 1870",
    "location": {"lat": 51.894401550293, "lon": -8.48064041137695},
}

DUBLIN = {"name": "St. Patrick's Cathedral", "summary": "Founded in 1191 in Dublin", "location": [-6.2715, 53.3395]}

ARMAGH = {"name": "St. Patrick's Cathedral", "summary": "Seat of an archbishop", "location": "POINT (-6.6563 54.3478)"}

PLACES = ndd.items.Items(
    name=ndd.items.Name(synonyms="english-abbreviations"),
    summary=ndd.items.Text(),
    location=ndd.items.Place(within_km=1.0),
    needs=[("name", "summary"), ("name", "location")],
)
