"""A collection: how it is read, and what is found in it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np

from ndd_search.core.matching.contained_texts import normalised, place_of, possible_containers
from ndd_search.core.matching.decision import Decision, Setting
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.similar_pairs import overlaps
from ndd_search.core.matching.sketch_rows import Ranks, rows_of
from ndd_search.core.options import CollapseOptions, Keep
from ndd_search.core.paging.choose_copy import order_of_preference
from ndd_search.core.paging.copies_or_entries import few_words
from ndd_search.core.presets import Preset, chosen, preset_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import YesNo, check_known, fields_in
from ndd_search.core.sketching.sketches import Sketches
from ndd_search.corpus import sketch_store
from ndd_search.corpus.collection_groups import Groups, Newcomers
from ndd_search.corpus.collection_pairs import BUDGET, Effort, Found, Led, Progress, Search
from ndd_search.corpus.communities import EACH, communities, connected
from ndd_search.corpus.document_batches import Pieces, Report
from ndd_search.corpus.guard_columns import Guards, apart_of, check_kept, shingles_of
from ndd_search.corpus.mirrored_hosts import Hosts, check_hosts, hosts_of
from ndd_search.corpus.read_collection import Documents, Fields, read_rows
from ndd_search.corpus.sketch_store import Rows
from ndd_search.errors import RecipeMismatch

log = logging.getLogger("ndd_search")

_QUOTED = re.compile(r"^(?:[ \t]{0,4}[>＞] ?)+", re.MULTILINE)
_BETWEEN_PARAGRAPHS = re.compile(r"\n\s*\n")

Method = Literal["leaders", "connected", "communities", "inclusive"]


class Settings(TypedDict, total=False):
    """Which pairs of a collection count, beside min_similarity, and what the search may cost.

    guards: as in a search (CollapseOptions), of within and length one. The fields must have been kept by
    `Corpus.read(fields=...)`, the numbers by `Corpus.read(numbers=True)`.
    preset: its min_similarity, guards, `keep` and `origins`, unless they are given.
    budget, progress: see corpus.collection_pairs.Search.
    """

    guards: Sequence[str]
    preset: str | Preset
    budget: int
    progress: Progress | None


class Corpus(Documents):
    """A collection that can be searched for near-duplicates; make one with `read` or `load`."""

    @classmethod
    def read(
        cls,
        *sources: object,
        text: str | Sequence[str],
        id: str | None = None,
        recipe: Recipe | str | None = None,
        fields: Sequence[str] = (),
        numbers: bool = False,
        preset: str | Preset | None = None,
        report: Report | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Corpus:
        """Read a collection and sketch its documents, a batch at a time; texts are not held in memory.

        sources:  paths or patterns of paths (.parquet, .jsonl, .csv and the like, also with .gz, or a folder of texts),
                  tables of pyarrow, polars, pandas or DuckDB, an IndexSource, or iterables of mappings.
        text:     the field with a document's text, or several. A document without text gets an empty sketch, which is
                  nobody's duplicate.
        id:       the field with a document's id; by default "_id" or "id". Of a source whose first 4,096 documents have
                  neither field, every one has its place there as id, after the number of the source if there are
                  several: "0", or "2:0". Any other document without an id, or with the id of an earlier one, is
                  reported and left out.
        recipe:   or its id.
        fields:   fields whose values are held in memory, for `keep`, guards and reports.
        numbers:  whether the numbers of each text are held, too, for the guard numbers.
        preset:   its recipe, unless one is given; numbers are held if it has the guard.
        report:   told a sentence for every line, document or file that is left out; by default a warning is logged.
        progress: called with a number of documents more.
        Raises InvalidDocument when no document has text or an id.
        """
        YesNo().check("numbers", numbers)
        recipe, numbers = read_by(preset, recipe, numbers)
        pieces = Pieces.of(sources)
        kept = Fields(fields_in("text", text), recipe, fields_in("fields", fields), numbers)
        rows = read_rows(pieces, kept, id, report or log.warning, progress or (lambda count: None))
        for name in kept.fields:
            if rows.ids and all(value is None for value in rows.columns[name]):
                log.warning("no document has a value in the field %r: check its name", name)
        if told := few_words(np.diff(rows.sketches.offsets), recipe):
            log.warning("%s", told)
        return cls(rows.ids, rows.sketches, recipe, rows.columns, pieces, kept.text, id)

    @classmethod
    def load(cls, path: str | Path) -> Corpus:
        """A collection that `save` has written. Raises InvalidDocument for another file."""
        rows, recipe = sketch_store.read_rows(Path(path))
        return cls(rows.ids, rows.sketches, recipe, rows.columns)

    def groups(
        self,
        min_similarity: Setting | None = None,
        method: Method = "leaders",
        *,
        keep: Sequence[Keep] | None = None,
        origins: str | Sequence[str] | None = None,
        **settings: Unpack[Settings],
    ) -> Groups:
        """The groups of near-duplicates.

        min_similarity: as in a search, None for "auto"; "auto" counts common values in the collection itself.
        method: "leaders": each document is a near-duplicate of the one that leads its group, as on a page.
                "connected": two documents are in one group when a chain of near-duplicates joins them.
                "communities": chains, but parts of a chain that only a few pairs join stay apart; needs networkx.
                "inclusive": each document stands word for word in the one that leads its group, the longest such one,
                as a mail does in a reply that quotes it. It takes no min_similarity and no keep, and
                holds all texts in memory.
        keep:   which document of a group leads it, as in a search; "score" is the order of reading. The fields that it
                names must have been kept by `read(fields=...)`.
        origins: as in a search; each row of the groups then tells the origins of its group. Kept fields, too.
        settings: see Settings.
        """
        check_method(method)
        search, options = self._search(min_similarity, settings, keep=keep, origins=origins)
        order = self._order(options)
        sketches = self.sketches
        if order is not None:
            sketches, search = sketches.taken(order), replace(search, guards=search.guards.taken(order))
        if method in ("leaders", "inclusive"):
            if method == "leaders":
                led = search.leaders(sketches)
            elif options.min_similarity == "auto" and order is None:
                led = most_inclusive(sketches, self.texts(range(len(self))), search.guards, self.recipe)
            else:
                raise ValueError('method "inclusive" shows the longest text: leave out min_similarity and keep')
            leader, similarity, effort = led.leader, led.similarity, led.effort
        else:
            found = search.pairs(sketches, EACH)
            joined = connected if method == "connected" else communities
            leader, similarity, effort = joined(len(self), found.pairs, found.same), None, found.effort
        if order is not None:
            back = np.empty(len(self), np.int64)
            back[order] = np.arange(len(self))
            leader, similarity = order[leader[back]], None if similarity is None else similarity[back]
        return Groups(self, leader, similarity, effort, search.decision, method, options.origins)

    def pairs(self, min_similarity: Setting | None = None, **settings: Unpack[Settings]) -> Found:
        """All pairs of near-duplicates, by place; documents with equal sketches are told apart from them, in `same`.

        min_similarity, settings: as for `groups`.
        """
        return replace(self._search(min_similarity, settings)[0].pairs(self.sketches), ids=self.ids)

    def new(
        self, against: Corpus | None, min_similarity: Setting | None = None, **settings: Unpack[Settings]
    ) -> Newcomers:
        """Which documents are near-duplicates neither of one in an earlier collection nor of an earlier one here.

        against: the earlier collection, None if there is none yet.
        A document without text is new unless the earlier collection has one without text and with the same id.
        Raises RecipeMismatch when the earlier collection has sketches of another recipe.
        """
        if against is None:
            none = {name: list[Any]() for name in self.columns}
            against = Corpus([], self.sketches.taken(np.empty(0, np.int64)), self.recipe, none)
        if against.recipe != self.recipe:
            raise RecipeMismatch("the earlier collection", against.recipe.id, self.recipe.id)
        names = [name for name in self.columns if name in against.columns]
        both = Rows.joined([Rows(one.ids, one.sketches, one.columns) for one in (against, self)], names)
        read = self.pieces, self.text, self.id_field
        whole, earlier = Corpus(both.ids, both.sketches, self.recipe, both.columns, *read), len(against)
        search, _ = whole._search(min_similarity, settings)
        led = search.leaders(whole.sketches, earlier)
        known = {against.ids[place]: place for place in against.textless}
        for place in self.textless:
            led.leader[earlier + place] = known.get(self.ids[place], earlier + place)
        groups = Groups(whole, led.leader, led.similarity, led.effort, search.decision, "leaders")
        return Newcomers(groups, earlier)

    def hosts(
        self,
        url: str = "url",
        min_similarity: Setting | None = None,
        *,
        min_share: float = 0.5,
        **settings: Unpack[Settings],
    ) -> Hosts:
        """The pairs of hosts that have the same pages, such as mirrors.

        url:       the field with the URL of each document; kept by `read(fields=[url])`, or the field of the ids.
        min_share: the share of the pages of one of the two hosts that have a near-duplicate on the other one, 0..1.
        min_similarity, settings: as for `groups`.
        Raises ValueError for a field that was not kept.
        """
        check_hosts(url, (*self.columns, self.id_field), min_share)
        urls = self.columns.get(url, self.ids)
        return hosts_of(self.groups(min_similarity, **settings), urls, min_share)

    def _search(
        self, min_similarity: Setting | None, settings: Settings, **others: Any
    ) -> tuple[Search, CollapseOptions]:
        search, options = search_of(self.recipe, min_similarity, settings, lambda: self.frequency_table, **others)
        check_kept(options, self.columns)
        return replace(search, guards=Guards.of(options, self.columns, self.sketches, self.recipe.k)), options

    def _order(self, options: CollapseOptions) -> Ranks | None:
        """The places of all documents, the one to lead a group first; None for the order of reading."""
        if options.keep == ("score",):
            return None
        if any(callable(wish) for wish in options.keep):
            raise ValueError("keep of a collection names wishes such as newest:FIELD; callables are for searches")
        shingles = shingles_of(self.sketches, self.recipe.k)
        order = order_of_preference(
            range(len(self)), range(len(self)), lambda at: float(shingles[at]), lambda at, name: self.columns[name][at],
            options.preferences,
        )  # fmt: skip
        return np.array(order, np.int64)


def read_by(preset: str | Preset | None, recipe: Recipe | str | None, numbers: bool) -> tuple[Recipe, bool]:
    """Return how a collection is sketched: the recipe, and whether with numbers, as given or as a preset has it."""
    kind = Preset() if preset is None else preset_of(preset)
    return Recipe.of(kind.recipe if recipe is None else recipe), numbers or kind.numbers


def search_of(
    recipe: Recipe,
    min_similarity: Setting | None,
    settings: Settings,
    table: Callable[[], FrequencyTable],
    **others: Any,
) -> tuple[Search, CollapseOptions]:
    """How a collection is searched, without the codes and times of guards, and the options that name its fields.

    table: returns the frequency table of the collection, which "auto" needs. others: more options; None for no change.
    """
    check_known(settings, Settings.__annotations__)
    given = {**settings, **others, "min_similarity": min_similarity}
    changes = {name: value for name, value in given.items() if value is not None and name not in ("budget", "progress")}
    options, _ = chosen(None, recipe, changes)
    if len(options.seconds_apart) + (options.length_ratio > 0) > 1:
        raise ValueError(f"guards of a collection take one of within and length, got {', '.join(options.guards)}")
    if options.reads_keys:
        raise ValueError("group_by and max_per of a preset are for pages, not for collections: leave them out")
    weighs = options.min_similarity == "auto" and recipe.measure == "kmv"
    search = Search(
        recipe=recipe,
        decision=Decision.of(options.min_similarity, recipe, table() if weighs else None),
        min_shingles=recipe.min_shingles,
        guards=Guards(apart=apart_of(options)),
        budget=settings.get("budget", BUDGET),
        progress=settings.get("progress"),
    )
    return search, options


def check_method(method: str) -> None:
    """Raise ValueError for a method that `groups` does not have."""
    if method not in get_args(Method):
        raise ValueError(f"method is one of {', '.join(get_args(Method))}, got {method!r}")


def most_inclusive(sketches: Sketches, texts: Mapping[int, str], guards: Guards, recipe: Recipe) -> Led:
    """Let each document join the longest one in which its paragraphs stand word for word, in their order.

    Marks of quotes (">"), case, white space and what stands between the paragraphs do not matter. Of equal texts the
    first one leads. Pairs are found by the sketches and verified in the texts: a text that holds few values of a sketch
    of a much longer one may be missed, and stands alone.
    texts: by place; a document without one stands alone.
    """
    split = {place: _paragraphs(text) for place, text in texts.items()}
    wholes = [" ".join(split.get(place, ())) for place in range(len(sketches))]
    first: dict[object, int] = {}
    leader = [
        first.setdefault((whole, key), place) if whole and (key := guards.key(place)) is not None else place
        for place, whole in enumerate(wholes)
    ]
    lengths = [len(whole) for whole in wholes]
    possible = possible_containers(list(sketches), lengths, recipe)
    compared = 0
    for place in sorted(possible, key=lambda place: -lengths[place]):  # a longer one has its leader by then
        longer = {leader[one] for one in possible[place]} if leader[place] == place else ()
        for one in sorted(longer, key=lambda one: (-lengths[one], one)):
            compared += 1
            if guards.allow(np.array([place]), np.array([one])).all() and _holds(wholes[one], split[place]):
                leader[place] = one
                break
    leaders = np.array(leader, np.int64)
    leaders = leaders[leaders]  # of equal texts the first one may have joined another
    alike = overlaps(rows_of(sketches, recipe.k), np.arange(len(leaders)), leaders, None).resemblance
    return Led(leaders, alike, Effort(len(wholes), compared, compared, 0))


def _paragraphs(text: str) -> list[str]:
    pieces = _BETWEEN_PARAGRAPHS.split(_QUOTED.sub("", text))
    return [whole for piece in pieces if (whole := normalised(piece))]


def _holds(long: str, paragraphs: list[str]) -> bool:
    end = 0
    for one in paragraphs:
        if (at := place_of(one, long, end)) < 0:
            return False
        end = at + len(one)
    return True
