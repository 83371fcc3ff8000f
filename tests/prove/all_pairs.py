"""A table in which each value of each factor meets each value of each other factor in some row."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

Factors = Mapping[str, Sequence[str]]  # of each factor its values by name; the first can be combined with all others
Row = dict[str, str]
Refused = Sequence[Mapping[str, Sequence[str]]]  # of each entry, values that do not go together


def all_pairs(factors: Factors, refused: Refused, seed: str) -> list[Row]:
    """Return rows that hold every pair of values which `refused` allows, and nothing that it refuses.

    Greedy: a row begins with a pair that no row has yet, and takes for each further factor the value that makes the
    most new pairs with those it has.
    """
    draw, rows = random.Random(seed), list[Row]()
    left = {both for both in pairs_of(factors) if is_allowed(dict(both), refused)}
    while left:
        row: Row = dict(draw.choice(sorted(left)))
        for name in draw.sample([name for name in factors if name not in row], len(factors) - 2):
            allowed = [value for value in factors[name] if is_allowed({**row, name: value}, refused)]
            draw.shuffle(allowed)
            row[name] = max(allowed, key=lambda value: len(left & {pair(one, (name, value)) for one in row.items()}))
        left -= {pair(one, other) for one, other in combinations(row.items(), 2)}
        rows.append({name: row[name] for name in factors})
    return rows


def is_allowed(row: Mapping[str, str], refused: Refused) -> bool:
    """Return whether no entry of `refused` is in a row, which need not be complete."""
    return not any(all(row.get(name) in values for name, values in one.items()) for one in refused)


def each_of(refused: Refused) -> Iterator[Row]:
    """Yield each combination of values that entries of `refused` stand for."""
    for one in refused:
        for values in product(*one.values()):
            yield dict(zip(one, values, strict=True))


def pairs_of(factors: Factors) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield each pair of values of two factors, each with its factor."""
    for one, other in combinations(factors, 2):
        for both in product(factors[one], factors[other]):
            yield pair((one, both[0]), (other, both[1]))


def pair(one: tuple[str, str], other: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Return two values with their factors in the order that `pairs_of` gives them."""
    return (one, other) if one < other else (other, one)
