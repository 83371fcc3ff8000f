"""Mirrored hosts: pairs of hosts whose pages have near-duplicates on the other one, at the same or corresponding paths.

The measures are those of Bharat and Broder 1999, "Mirror, mirror on the Web: a study of host pairs with replicated
content": the share of the pages of each host that the other one has, too, and how their paths correspond.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from ndd_search.core.matching.frequency_table import Shares
from ndd_search.core.matching.similarity_measures import similarities
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import check_share
from ndd_search.core.sketching.sketches import Sketch
from ndd_search.corpus.collection_groups import Groups
from ndd_search.corpus.collection_pairs import Effort
from ndd_search.corpus.write_files import write

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
    effort:       what the search for near-duplicates cost.
    """

    pairs: Sequence[HostPair]
    without_host: int
    ubiquitous: int
    effort: Effort

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def mirrors(self) -> int:
        """How many pairs are mirrors."""
        return sum(pair.is_mirror for pair in self.pairs)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each pair as a mapping: the fields of HostPair, and `mirror`."""
        for pair in self.pairs:
            yield {**vars(pair), "mirror": pair.is_mirror}

    def write(self, path: str | Path) -> int:
        """Write `rows` as .parquet, .jsonl or .csv. Returns how many."""
        return write(path, self.rows())


class Page(NamedTuple):
    """A page of a host. place: in the collection. path: its parts."""

    place: int
    host: str
    path: list[str]
    url: str


Match = tuple[Page, Page]


@dataclass(frozen=True)
class Shared:
    """What two hosts share. counts: pages of each with a near-duplicate on the other. matches: a page of each."""

    counts: tuple[int, int]
    matches: list[Match]


def check_hosts(url: str, kept: Container[str | None], min_share: float) -> None:
    """Raise ValueError for a field that was not kept, or a share that is none."""
    if url not in kept:
        raise ValueError(f"hosts needs {url!r}, which was not kept: read the collection with fields=[{url!r}]")
    check_share("min_share", min_share)


def hosts_of(groups: Groups, urls: Sequence[Any], min_share: float) -> Hosts:
    """The pairs of hosts that share pages. See Corpus.hosts.

    urls: of each document of the groups.
    """
    pages = [page_of(place, url) for place, url in enumerate(urls)]
    totals = Counter(page.host for page in pages if page)
    shared: defaultdict[tuple[str, str], list[Shared]] = defaultdict(list)
    ubiquitous = 0
    for members in _members(groups):
        found = shared_pages([page for place in members if (page := pages[place])], totals)
        ubiquitous += found is None
        for hosts, one in (found or {}).items():
            shared[hosts].append(one)
    pairs = []
    for hosts, parts in shared.items():
        both = joined(parts)
        if is_shared((totals[hosts[0]], totals[hosts[1]]), both, min_share):
            alike = similarities_of(both.matches, groups.corpus.sketches, groups.corpus.recipe)
            pairs.append(host_pair(hosts, (totals[hosts[0]], totals[hosts[1]]), both, alike))
    pairs.sort(
        key=lambda pair: (-max(pair.first_share, pair.second_share), -pair.second_pages, pair.first, pair.second)
    )
    return Hosts(pairs, sum(page is None for page in pages), ubiquitous, groups.effort)


def page_of(place: int, url: Any) -> Page | None:
    """The page of a URL, None without a host; a word without a dot is none."""
    text = str(url or "")
    try:
        parts = urlsplit(text if "//" in text else f"//{text}")
        host = parts.hostname
    except ValueError:
        return None
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    is_word = "//" not in text and "." not in (host or "")
    if not host or is_word or any(map(str.isspace, host)):
        return None
    return Page(place, host, path.lstrip("/").split("/"), str(url))


def shared_pages(members: Sequence[Page], totals: Mapping[str, int]) -> dict[tuple[str, str], Shared] | None:
    """What any two hosts share of one group. Returns None for a group on more than MOST_HOSTS hosts.

    members: pages of the group, by place.
    totals:  the number of pages of each host; the host with more pages is the first of a pair.
    """
    by_host: defaultdict[str, list[Page]] = defaultdict(list)
    for page in members:
        by_host[page.host].append(page)
    if len(by_host) > MOST_HOSTS:
        return None
    ordered = sorted(by_host, key=lambda host: (-totals[host], host))
    return {
        (first, second): Shared(
            (len(by_host[first]), len(by_host[second])), list(_matches(by_host[first], by_host[second]))
        )
        for first, second in combinations(ordered, 2)
    }


def joined(parts: Sequence[Shared]) -> Shared:
    """What two hosts share in several groups."""
    counts = sum(part.counts[0] for part in parts), sum(part.counts[1] for part in parts)
    return Shared(counts, [match for part in parts for match in part.matches])


def is_shared(totals: tuple[int, int], shared: Shared, min_share: float) -> bool:
    """Whether two hosts share enough of the pages of one of them. totals: pages of each."""
    return max(count / total for count, total in zip(shared.counts, totals, strict=True)) >= min_share


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


def _matches(first: Sequence[Page], second: Sequence[Page]) -> Iterator[Match]:
    """For each page of one host in a group the page of the other host that has the most similar path."""
    for page in first[:_MOST_PAGES]:

        def alikeness(other: Page, path: list[str] = page.path) -> tuple[bool, int, int]:
            return other.path == path, _common_end(path, other.path), -other.place

        yield page, max(second[:_MOST_PAGES], key=alikeness)


def similarities_of(
    matches: Sequence[Match], sketches: Sequence[Sketch] | Mapping[int, Sketch], recipe: Recipe
) -> Shares:
    """The similarity of the pages of each match. sketches: by place."""
    first, second = np.array([(one.place, other.place) for one, other in matches], np.int64).T
    places, at = np.unique(np.concatenate((first, second)), return_inverse=True)
    rows = rows_of([sketches[place] for place in places.tolist()], recipe.k)
    return similarities(rows, at[: len(first)], at[len(first) :], recipe.measure)


def host_pair(hosts: tuple[str, str], totals: tuple[int, int], shared: Shared, alike: Shares) -> HostPair:
    """What is said of two hosts. totals: pages of each. alike: the similarity of the pages of each match."""
    folders: Counter[tuple[str, str]] = Counter()
    same = 0
    example = shared.matches[0]
    for match in shared.matches:
        left, right = match[0].path, match[1].path
        if left == right:
            same += 1
            example = match if same == 1 else example
        elif end := _common_end(left, right):
            folders["/".join(["", *left[:-end], ""]), "/".join(["", *right[:-end], ""])] += 1
    moved, count = folders.most_common(1)[0] if folders else ((None, None), 0)
    if count < 2:
        moved, count = (None, None), 0
    shares = shared.counts[0] / totals[0], shared.counts[1] / totals[1]
    larger = "first" if shares[1] > shares[0] else "second"
    return HostPair(
        first=hosts[0],
        second=hosts[1],
        first_pages=totals[0],
        second_pages=totals[1],
        first_share=round(shares[0], 4),
        second_share=round(shares[1], 4),
        holds="both" if min(shares) >= 0.9 * max(shares) else larger,
        same_path=round(same / len(shared.matches), 4),
        first_folder=moved[0],
        second_folder=moved[1],
        moved=round(count / len(shared.matches), 4),
        resemblance=round(float(np.median(alike)), 4),
        first_example=example[0].url,
        second_example=example[1].url,
    )
