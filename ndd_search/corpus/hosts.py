"""Mirrored hosts: pairs of hosts whose pages have near-duplicates on the other one, at the same or corresponding paths.

The measures are those of Bharat and Broder 1999, "Mirror, mirror on the Web: a study of host pairs with replicated
content": the share of the pages of each host that the other one has, too, and how their paths correspond.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from ndd_search.corpus.outputs import write
from ndd_search.matching.measures import similarities
from ndd_search.matching.rows import rows_of

if TYPE_CHECKING:
    from ndd_search.corpus.groups import Groups

MOST_HOSTS = 100  # of one group: a text on more hosts, such as an error page, says nothing about any two of them
_MOST_PAGES = 20  # of one host and group, of which the one with the most similar path is chosen
_CORRESPOND = 0.5  # share of pages at corresponding paths from which two hosts are mirrors


@dataclass(frozen=True, kw_only=True)
class HostPair:
    """Two hosts with the same pages.

    first, second: the hosts; the first has more pages.
    first_pages, second_pages: how many pages they have.
    first_share, second_share: the share of its pages that have a near-duplicate on the other host, 0..1.
    holds:         which host holds most of the other one: "first", "second" or "both".
    same_path:     the share of these pages that have the same path on both hosts, 0..1.
    first_folder, second_folder: where most of the others are: one host has a path in the first folder, the other one
                   the same path in the second folder; None where there are no two such pages.
    moved:         the share of these pages that these folders explain, 0..1.
    resemblance:   the median similarity of these pages, 0..1, by the measure of the recipe.
    first_example, second_example: the URLs of such a page.
    """

    first: str
    second: str
    first_pages: int
    second_pages: int
    first_share: float
    second_share: float
    holds: str
    same_path: float
    first_folder: str | None
    second_folder: str | None
    moved: float
    resemblance: float
    first_example: str
    second_example: str

    @property
    def is_mirror(self) -> bool:
        """Whether the paths of most of the shared pages correspond; else the hosts only hold the same texts."""
        return self.same_path + self.moved >= _CORRESPOND


@dataclass(frozen=True, eq=False)
class Hosts:
    """The pairs of hosts with the same pages, those with the largest share first.

    pairs:        see HostPair.
    without_host: documents that were left out because their URL names no host.
    ubiquitous:   groups that were left out because their texts are on more than MOST_HOSTS hosts.
    """

    pairs: Sequence[HostPair]
    without_host: int
    ubiquitous: int

    def __len__(self) -> int:
        return len(self.pairs)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each pair as a mapping: the fields of HostPair, and `mirror`."""
        for pair in self.pairs:
            yield {**vars(pair), "mirror": pair.is_mirror}

    def write(self, path: str | Path) -> int:
        """Write `rows` as .parquet, .jsonl or .csv. Returns how many."""
        return write(path, self.rows())


@dataclass
class _Shared:
    """What two hosts share. pages: of each the places with a near-duplicate on the other; matches: two places each."""

    pages: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))
    matches: list[tuple[int, int]] = field(default_factory=list)


def hosts_of(groups: Groups, urls: Sequence[Any], min_share: float) -> Hosts:
    """The pairs of hosts that share pages. See Corpus.hosts.

    urls: of each document of the groups.
    """
    split = [_split(url) for url in urls]
    pages = Counter(one[0] for one in split if one)
    shared: defaultdict[tuple[str, str], _Shared] = defaultdict(_Shared)
    ubiquitous = 0
    for members in _members(groups):
        by_host: defaultdict[str, list[int]] = defaultdict(list)
        for place in members:
            if (one := split[place]) is not None:
                by_host[one[0]].append(place)
        if len(by_host) > MOST_HOSTS:
            ubiquitous += 1
            continue
        for first, second in combinations(sorted(by_host, key=lambda host: (-pages[host], host)), 2):
            both = shared[first, second]
            both.pages[0].update(by_host[first])
            both.pages[1].update(by_host[second])
            both.matches += _matches(by_host[first], by_host[second], split)
    found = []
    for (first, second), both in shared.items():
        shares = len(both.pages[0]) / pages[first], len(both.pages[1]) / pages[second]
        if max(shares) >= min_share:
            found.append(_pair((first, second), (pages[first], pages[second]), shares, both, groups, urls, split))
    found.sort(
        key=lambda pair: (-max(pair.first_share, pair.second_share), -pair.second_pages, pair.first, pair.second)
    )
    return Hosts(found, sum(one is None for one in split), ubiquitous)


_Split = tuple[str, list[str]]  # a host, and the parts of a path


def _split(url: Any) -> _Split | None:
    """The host and the parts of the path of a URL, None without a host."""
    text = str(url or "")
    try:
        parts = urlsplit(text if "//" in text else f"//{text}")
        host = parts.hostname
    except ValueError:
        return None
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    return (host, path.lstrip("/").split("/")) if host and not any(map(str.isspace, host)) else None


def _members(groups: Groups) -> Iterator[list[int]]:
    """The documents of each group of two or more."""
    order = np.argsort(groups.leader, kind="stable")
    order = order[groups.sizes[order] > 1]
    starts = np.flatnonzero(np.diff(groups.leader[order], prepend=-1))
    for members in np.split(order, starts[1:]):
        if len(members):
            yield members.tolist()


def _common_end(first: Sequence[str], second: Sequence[str]) -> int:
    """How many of their last parts two paths share."""
    count = 0
    while count < min(len(first), len(second)) and first[-1 - count] == second[-1 - count]:
        count += 1
    return count


def _matches(first: Sequence[int], second: Sequence[int], split: Sequence[_Split | None]) -> Iterator[tuple[int, int]]:
    """For each page of one host in a group the page of the other host that has the most similar path."""
    for place in first[:_MOST_PAGES]:
        path = (split[place] or ("", []))[1]

        def alikeness(other: int, path: list[str] = path) -> tuple[bool, int, int]:
            others = (split[other] or ("", []))[1]
            return others == path, _common_end(path, others), -other

        yield place, max(second[:_MOST_PAGES], key=alikeness)


def _pair(
    names: tuple[str, str],
    pages: tuple[int, int],
    shares: tuple[float, float],
    both: _Shared,
    groups: Groups,
    urls: Sequence[Any],
    split: Sequence[_Split | None],
) -> HostPair:
    folders: Counter[tuple[str, str]] = Counter()
    same = 0
    example = both.matches[0]
    for match in both.matches:
        left, right = ((split[place] or ("", []))[1] for place in match)
        if left == right:
            same += 1
            example = match if same == 1 else example
        elif end := _common_end(left, right):
            folders["/".join(["", *left[:-end], ""]), "/".join(["", *right[:-end], ""])] += 1
    moved, count = folders.most_common(1)[0] if folders else ((None, None), 0)
    if count < 2:
        moved, count = (None, None), 0
    first, second = np.array(both.matches, np.int64).T
    recipe = groups.corpus.recipe
    places, at = np.unique(np.concatenate((first, second)), return_inverse=True)
    rows = rows_of([groups.corpus.sketches[place] for place in places.tolist()], recipe.k)
    alike = similarities(rows, at[: len(first)], at[len(first) :], recipe.measure)
    larger = "first" if shares[1] > shares[0] else "second"
    return HostPair(
        first=names[0],
        second=names[1],
        first_pages=pages[0],
        second_pages=pages[1],
        first_share=round(shares[0], 4),
        second_share=round(shares[1], 4),
        holds="both" if min(shares) >= 0.9 * max(shares) else larger,
        same_path=round(same / len(both.matches), 4),
        first_folder=moved[0],
        second_folder=moved[1],
        moved=round(count / len(both.matches), 4),
        resemblance=round(float(np.median(alike)), 4),
        first_example=str(urls[example[0]]),
        second_example=str(urls[example[1]]),
    )
