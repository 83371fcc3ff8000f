"""Places on the globe: reading them, how far they are apart, and tokens that near places share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ndd_search.items.parse_values import quoted

Floats = npt.NDArray[np.float64]
Place = tuple[float, float]

_RADIUS = 6371.0088  # km, the mean radius of the earth (IUGG)
_KM_A_DEGREE = _RADIUS * np.pi / 180
_BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"
_GEOHASH = re.compile(f"[{_BASE32}]{{1,12}}")
_PAIR = re.compile(r"\s*([-+]?[\d.]+(?:e[-+]?\d+)?)\s*[,;\s]\s*([-+]?[\d.]+(?:e[-+]?\d+)?)\s*", re.IGNORECASE)
_POINT = re.compile(r"\s*POINT\s*\(\s*([-+.\de]+)\s+([-+.\de]+)\s*\)\s*", re.IGNORECASE)


def place_of(value: Any) -> Place:
    """Return (latitude, longitude) in degrees of a `geo_point` in any form that the engines accept.

    value: {"lat": 52.5, "lon": 13.4}, "52.5,13.4", [13.4, 52.5], {"type": "Point", "coordinates": [13.4, 52.5]},
           "POINT (13.4 52.5)", or a geohash, whose centre is returned. A longitude is returned in -180..180.
    Raises ValueError for anything else, and for a latitude outside -90..90 or a longitude outside -360..360.
    """
    if isinstance(value, Mapping):
        if value.get("type") in ("Point", "point"):
            return place_of(value.get("coordinates"))
        longitude = next((value[name] for name in ("lon", "lng", "long", "longitude") if name in value), None)
        return checked(value.get("lat", value.get("latitude")), longitude)
    if isinstance(value, str):
        if found := _POINT.fullmatch(value):
            return checked(found[2], found[1])
        if found := _PAIR.fullmatch(value):
            return checked(found[1], found[2])
        if _GEOHASH.fullmatch(value.lower()):
            return _centre(value.lower())
    elif isinstance(value, Sequence) and len(value) in (2, 3):
        return checked(value[1], value[0])
    raise ValueError(f"{quoted(value)} is not a place")


def checked(latitude: Any, longitude: Any) -> Place:
    """Return both as numbers in range. Raises ValueError."""
    try:
        degrees = float(latitude), float(longitude)
    except TypeError:
        raise ValueError(f"{quoted(latitude)}, {quoted(longitude)} is not a place") from None
    if not (abs(degrees[0]) <= 90 and abs(degrees[1]) <= 360):
        raise ValueError(f"latitude {degrees[0]:g} and longitude {degrees[1]:g} are not on the globe")
    return degrees[0], (degrees[1] + 180) % 360 - 180


def _centre(geohash: str) -> Place:
    low, high = [-90.0, -180.0], [90.0, 180.0]
    axis = 1
    for character in geohash:
        number = _BASE32.index(character)
        for bit in (16, 8, 4, 2, 1):
            (low if number & bit else high)[axis] = (low[axis] + high[axis]) / 2
            axis = 1 - axis
    return (low[0] + high[0]) / 2, (low[1] + high[1]) / 2


def kilometres(first: Floats, second: Floats) -> Floats:
    """Return great-circle distances of places, each (latitude, longitude) in degrees, shape (n, 2) -> (n,)."""
    one, two = np.radians(first), np.radians(second)
    half = (two - one) / 2
    chord = np.sin(half[:, 0]) ** 2 + np.cos(one[:, 0]) * np.cos(two[:, 0]) * np.sin(half[:, 1]) ** 2
    distance: Floats = 2 * _RADIUS * np.arcsin(np.sqrt(np.clip(chord, 0, 1)))
    return distance


def corner_tokens(places: Floats, km: float) -> npt.NDArray[np.int64]:
    """Return four tokens of each place, shape (n, 4). Places at most `km` apart share at least one.

    The globe is divided into cells whose sides are at least `km` long, as geohash does. A token is a corner of a cell:
    cells that are equal or neighbours have a corner in common, so four corners replace the cell and its eight
    neighbours. Columns are wider in rows near the poles, and the first column follows the last one at +-180 degrees.
    All corners at a pole are one token.
    """
    rows = max(int(180 * _KM_A_DEGREE / km), 1)
    row = np.minimum(((places[:, 0] + 90) / 180 * rows).astype(np.int64), rows - 1)
    tokens = []
    for line in (row, row + 1):
        # Places that share this line are at most one row nearer to a pole than it. There, `km` spans this many degrees.
        nearest_pole = np.radians(np.minimum(np.abs(line / rows * 180 - 90) + 180 / rows, 90))
        span = 2 * np.arcsin(np.minimum(np.sin(km / 2 / _RADIUS) / np.maximum(np.cos(nearest_pole), 1e-12), 1))
        columns = np.maximum((2 * np.pi / span).astype(np.int64), 1)
        column = np.minimum(((places[:, 1] + 180) / 360 * columns).astype(np.int64), columns - 1)
        for side in (0, 1):
            tokens.append(line << 32 | (column + side) % columns)
    return np.stack(tokens, axis=1)
