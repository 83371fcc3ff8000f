"""A schema of items: the fields of records, what was learnt about them, and which records are one thing.

places = Items(name=Name(), location=Place(source=("lat", "lon")))
places = Items.learn(records, places)
print(places.similarity(a, b).explain())
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from ndd_search.core.matching.similar_pairs import Pairs
from ndd_search.core.paging.collapse import collapse
from ndd_search.core.paging.page import Page
from ndd_search.core.presets import CollapseChanges
from ndd_search.errors import InvalidSettings
from ndd_search.items.candidate_pairs import Bounds, Candidates, every_pair, find_candidates
from ndd_search.items.doubts import NOT_LEARNT, agreement, basis, disagreement, doubts_of_fields
from ndd_search.items.fields import Field
from ndd_search.items.grades import MISSING, Comparison, Graded, pattern_of
from ndd_search.items.guess_kinds import guess_fields
from ndd_search.items.integer_lists import Floats, Places
from ndd_search.items.learn_odds import Sample, learn_odds
from ndd_search.items.lists_without_duplicates import (
    evidence_of,
    known_pairs,
    lists_by_fields,
)
from ndd_search.items.parse_values import quoted
from ndd_search.items.probability_model import (
    THIN,
    Learnt,
    Model,
    default_odds,
    expected_share,
    log_odds_of,
    probabilities,
    unsure,
)
from ndd_search.items.record_columns import Table, read_table
from ndd_search.items.record_groups import ItemGroups, Method, group_items, records_of
from ndd_search.items.record_similarity import Similarity, similarity_of
from ndd_search.items.schema import NEAR, Answer, Schema, parts_of
from ndd_search.search.settings_file import check_toml, read_toml, write_toml

SAMPLE = 200_000  # candidate pairs that are compared to learn
RANDOM = 200_000  # random pairs that are
_LEARNT = Bounds(holders=50, tokens=40, most=30)  # of the search for these candidates, which are a sample
_LARGE = 30_000  # records from which half as many tokens are looked up: F1 of 100,000 people is 0.958, with all 0.934
_MAYBE = -1.0  # assumed log odds from which records may be one thing
_EVERY_PAIR = 200_000  # pairs of a list up to which all are compared
_SEED = 1
_ASSUMED = "what is assumed about such fields"
_CLEAR = 2  # equal answers that change a bar: one may be a slip


@dataclass(frozen=True)
class Question:
    """Two records, of which a person is asked whether they are one thing.

    pairs:      how many candidate pairs have the same grades, and the same evidence that both are of one list.
    similarity: what the schema says about the two.
    """

    first: Any
    second: Any
    pairs: int
    similarity: Similarity


class Items(Schema):
    """The fields of records of one kind, and how they are compared. Immutable; `id` names its content.

    fields: each field by name, a Name, Text, Place, Number, Date, Category, Exact or Url. The name is also the field of
            the record that is read, unless the field has a `source`.
    needs:  combinations of fields, of which one at least has to meet; [("name", "summary"), ("name", "location")] says
            that a name alone is not enough. Fields meet where their similarity speaks for one thing (`Field.meets`).
    min_probability: from which two records count as one thing, above 0 and below 1.
    learnt: see `learn`; None for the assumptions that come with each kind of field.
    answers: see `answered`.
    In one field, closer agreement on equally common values never lowers a probability. How common values are is counted
    by `learn`; if nothing was learnt, by `groups` of 1,000 records or more. It never depends on the page of a search.
    Lists of more than 630 hits are compared by candidate pairs, as a collection is.
    """

    def _with(self, **changes: Any) -> Items:
        return _items(**{**self.__getstate__(), **changes})

    @classmethod
    def guess(cls, records: Any) -> Items:
        """Return a schema whose kinds of fields are guessed from the values of the first records: see `reasons`."""
        fields, reasons = guess_fields(records_of(records))
        schema = _items(fields)
        schema.__dict__["reasons"] = reasons
        return schema

    @classmethod
    def learn(cls, records: Any, schema: Items | None = None) -> Items:
        """Return a schema with evidence that fits a collection.

        records: of the collection, or a source of them, such as "people.csv"; a few thousand are better than a few
                 hundred.
        schema:  the fields; None to guess them.
        Raises InvalidDocument for records that cannot be read, or too few to guess their fields, TypeError for a schema
        that is none.
        """
        if not isinstance(schema, Items | None):
            raise TypeError(f"schema must be Items, got {quoted(schema)}")
        held = records_of(records)
        schema = cls.guess(held) if schema is None else schema
        reasons = schema.reasons
        table = read_table(schema.fields, held).in_order_of_values()
        common = table.rareness(schema.fields)
        comparison = Comparison(schema.fields, table, common)
        limits = _LEARNT if table.records < _LARGE else replace(_LEARNT, tokens=_LEARNT.tokens // 2)
        step = max(table.records * limits.most // (2 * SAMPLE), 1)
        # Pairs that meet across fields differ in both: they would teach that things have other names. Those that meet
        # by two common words teach worse, too; nearly equal numbers would teach that numbers are.
        found = find_candidates(comparison, limits, needs=schema.needs, step=step, across=False)
        random = np.random.default_rng(_SEED)
        chosen = np.sort(random.permutation(len(found))[:SAMPLE])
        lists = lists_by_fields(table, schema.fields)
        counted = schema._with(learnt=Learnt(default_odds(schema.kinds), common, 0, 0, lists=lists))
        pairs = found.first[chosen], found.second[chosen]
        graded = counted.graded(comparison, *pairs)
        drawn = random.integers(max(table.records, 1), size=(2, RANDOM), dtype=np.int64)
        low, high = np.sort(drawn[:, drawn[0] != drawn[1]], axis=0)
        by_chance = counted.graded(comparison, low, high)
        known = known_pairs(table, schema.fields, lists, *pairs, counted.log_odds(graded) > _MAYBE)
        of_all = max(table.records * (table.records - 1) / 2, 1)
        sample = Sample(graded, known, by_chance, of_all)
        best, *rest = learn_odds(schema.kinds, sample)
        model, assumed = Model(schema.kinds, best), default_odds(schema.kinds)
        # Candidates of one list have evidence of their own: those of two lists are one thing more often than all are.
        of_lists = evidence_of(lists, table, *pairs)
        share = 1.0 if best == assumed else float((of_lists == 0).sum() + 1) / (len(of_lists) + 1)
        all_odds = model.log_odds(graded.grades) + np.where(of_lists < 0, of_lists, -np.log(share))
        notes = doubts_of_fields(comparison, *pairs, graded, model)
        if best == assumed and len(graded):
            notes += (NOT_LEARNT,)
        others = {odds: Model(schema.kinds, odds) for odds in rest}
        ways = {other: _ASSUMED if odds == assumed else "another way of learning" for odds, other in others.items()}
        notes += disagreement(comparison, pairs, graded, model, ways, schema.bar)
        learnt = schema._with(
            learnt=Learnt(
                replace(best, prior=best.prior / (best.prior + (1 - best.prior) * share)),
                common,
                table.records,
                len(found),
                round(float(probabilities(all_odds).sum()) * len(found) / max(len(graded), 1)),
                unsure(all_odds - schema.bar),
                notes,
                {own: odds + float(np.log(share)) for own, odds in lists.items()},
                basis(comparison, graded, known.said, model, others.get(assumed)),
            )
        )
        learnt.__dict__["reasons"] = reasons
        return learnt

    def questions(self, records: Any, count: int = 10) -> list[Question]:
        """Return the pairs of a collection of which a person should say whether they are one thing.

        At most `count`, those of most consequence first: they stand for many uncertain pairs, or for pairs about which
        what was learnt and what is assumed differ, if that is a doubt. Give the answers to `answered`; its schema asks
        about other pairs.
        """
        held = records_of(records)
        comparison = self.comparison(read_table(self.fields, held))
        found = find_candidates(comparison, Bounds(), needs=self.needs)
        graded = self.graded(comparison, found.first, found.second)
        ends = np.stack((found.first, found.second), axis=1)
        of_lists = self.of_lists(comparison.table, found.first, found.second)
        probability = probabilities(self.log_odds(graded) + of_lists)
        matters = probability * (1 - probability)
        if self.learnt and self.learnt.notes:  # then also pairs that tell what was learnt from what is assumed
            assumed = Model(self.kinds, default_odds(self.kinds)).log_odds(graded.grades) + of_lists
            matters = np.maximum(matters, np.abs(probability - probabilities(assumed)) / 4)
        which = _patterns(graded, of_lists)
        answered = np.array([answer.pair for answer in self.answers], np.uint64)
        known = np.isin(comparison.table.pair_keys(found.first, found.second), answered)
        matters = np.where(known, 0.0, matters / (1 + np.bincount(which[known], minlength=len(which))[which]))
        chosen = _most_telling(which, matters, ends, count)
        pairs = [(held[ends[place, 0]], held[ends[place, 1]], alike) for place, alike in chosen]
        return [Question(a, b, alike, self.similarity(a, b)) for a, b, alike in pairs]

    def answered(self, answers: Iterable[tuple[Any, Any, bool]]) -> Items:
        """Return the schema with the min_probability that fits answers about pairs of records; True is one thing.

        A few answers to `questions` are enough. Earlier ones still count; of several about one pair, the last.
        """
        given = _checked(answers)
        table, first, graded = self._compared((a, b) for a, b, _ in given)
        odds = self.log_odds(graded) + self.of_lists(table, first, first + 1)
        same, keys = [bool(one[2]) for one in given], table.pair_keys(first, first + 1).tolist()
        told = map(Answer, keys, same, odds.tolist(), expected_share(self.odds, graded.grades).tolist())
        every = tuple({answer.pair: answer for answer in (*self.answers, *told)}.values())
        return self if every == self.answers else self._with(answers=every, min_probability=_fitted(self.bar, every))

    def _compared(self, pairs: Iterable[tuple[Any, Any]]) -> tuple[Table, Places, Graded]:
        """Return the records of pairs, two by two, the place of each pair's first one, and the pairs compared."""
        table = read_table(self.fields, (record for pair in pairs for record in pair))
        first = np.arange(0, table.records, 2)
        return table, first, self.graded(Comparison(self.fields, table, self.common), first, first + 1)

    def similarity(self, a: Any, b: Any) -> Similarity:
        """Compare two records: mappings, or objects with attributes."""
        return similarity_of(self, a, b)

    def probabilities(self, pairs: Iterable[tuple[Any, Any]]) -> Floats:
        """Return for many pairs of records the probability that they are one thing, 0..1."""
        return probabilities(self.log_odds(self._compared(pairs)[-1]))

    def candidates(self, records: Any, bounds: Bounds | None = None) -> Candidates:
        """Return the candidate pairs of a collection, by place."""
        comparison = self.comparison(read_table(self.fields, records_of(records)))
        return find_candidates(comparison, bounds or Bounds.of(comparison.table.records), needs=self.needs)

    def groups(
        self,
        *sources: Any,
        method: Method = "correlation",
        id: str | None = None,
        bounds: Bounds | None = None,
    ) -> ItemGroups:
        """Group the records of some lists that are one thing: see ndd_search.items.record_groups.

        sources: paths, tables or lists of records, as for Corpus.read; each is a list with ids of its own.
        id: the field with the id of a record.
        """
        return group_items(self, sources, method, id, bounds)

    def link(self, first: Any, second: Any, *, method: Method = "correlation", id: str | None = None) -> ItemGroups:
        """Group as `groups` does, but compare no two records of one list; see ItemGroups.links."""
        return group_items(self, (first, second), method, id, across=True)

    def same_pairs(self, records: Sequence[Any], old: int = 0, min_probability: float | None = None) -> Pairs:
        """Return the pairs of a page that are one thing: see paging.record_schema.RecordSchema."""
        bar = self.bar if min_probability is None else log_odds_of(min_probability)
        comparison = Comparison(self.fields, read_table(self.fields, records), self.common)
        count = len(records)
        if count * (count - 1) - old * (old - 1) <= 2 * _EVERY_PAIR:
            first, second = every_pair(count, old)
        else:
            found = find_candidates(comparison, Bounds(), needs=self.needs)
            later = found.second >= old
            first, second = found.first[later], found.second[later]
        first, second, graded = self.screened(comparison, first, second, bar)
        odds = self.log_odds(graded)
        same = (odds >= bar) & (graded.grades != MISSING).any(axis=1)  # no field in common is no reason to hide a hit
        return Pairs(first[same], second[same], probabilities(odds[same]))

    def collapse(
        self, hits: Iterable[Any], *, size: int = 10, from_: int = 0, **changes: Unpack[CollapseChanges]
    ) -> Page:
        """Show each thing once in a ranked list of records or hits: see ndd_search.collapse, with items=self."""
        return collapse(hits, size=size, from_=from_, items=self, **changes)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the schema to a .toml file. Raises ValueError for another name, OSError."""
        file = Path(path)
        check_toml(file)
        head = f"# A schema of items, {self.id}: ndd_search.items.Items.read({json.dumps(file.name)})\n"
        write_toml(file, self.as_dict(), head)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, learnt: bool = True) -> Items:
        """Read a schema that `write` wrote. Raises InvalidSettings naming the file and the problem, OSError.

        learnt: whether what was learnt is read, too. It does not fit fields whose kind was edited: learn again.
        """
        file = Path(path)
        content = read_toml(file)
        if not learnt:
            content = {name: value for name, value in content.items() if name not in ("learnt", "answers")}
        try:
            fields, settings = parts_of(content)
            return _items(fields, **settings)
        except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
            problem = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise InvalidSettings(file, problem, "correct it, or write it anew") from None


def _checked(answers: Iterable[tuple[Any, Any, bool]]) -> list[tuple[Any, Any, bool]]:
    """Return answers as a list. Raises TypeError for one that is not two records and whether they are one thing."""
    given = list(answers)
    for one in given:
        if len(one) != 3 or any(isinstance(record, str | int) for record in one[:2]) or one[2] not in (True, False):
            raise TypeError(f"an answer is two records and True or False, got {quoted(one)}")
    return given


def _items(fields: Mapping[str, Field], **settings: Any) -> Items:
    given: dict[str, Any] = {**settings, **fields}
    return Items(**given)


def _patterns(graded: Graded, of_lists: Floats) -> Places:
    """Return of each pair the number of its pattern: equal for pairs with the same grades and evidence of lists."""
    lists = np.unique(of_lists, return_inverse=True)[1]
    return pattern_of(np.column_stack((graded.grades, lists)).astype(np.int16))


def _most_telling(which: Places, matters: Floats, ends: npt.NDArray[np.int64], count: int) -> list[tuple[int, int]]:
    """Return the pairs to ask about, at most `count`, and how many pairs each speaks for. No record is in two of them.

    which: pattern of each candidate pair. matters: how much an answer about each does, 0..1. ends: the two records of
    each, shape (n, 2).
    """
    alike = np.bincount(which)
    matters = alike[which] * matters
    chosen: list[tuple[int, int]] = []
    patterns: set[int] = set()
    records: set[int] = set()
    order = np.random.default_rng(_SEED).permutation(len(which))  # the first records of a collection are no sample
    for place in order[np.argsort(-matters[order], kind="stable")].tolist():
        if len(chosen) == count or matters[place] <= 0:
            break
        pattern, both = int(which[place]), set(ends[place].tolist())
        if pattern not in patterns and not records & both:
            patterns.add(pattern)
            records |= both
            chosen.append((place, int(alike[pattern])))
    return chosen


def _fitted(bar: float, answers: Sequence[Answer]) -> float:
    """Return the min_probability that fits answers best. bar: of the schema, as log odds.

    It stays unless verdicts about the answers are clearly better by another one. Pairs that are asked about are hard,
    and do not stand for all others: so the bar moves past thin margins only, and not past answers that do not ask for
    it.
    """
    _, same, odds, expected = map(np.array, zip(*answers, strict=True))
    weights = np.sqrt(expected)  # which is a rough guess
    now = odds >= bar

    def gain(new: npt.NDArray[np.bool_]) -> float:
        """Return the weight of answers that new verdicts fit better, less that of others; 0 unless it is clear."""
        gains = np.where(new == same, weights, -weights)[new != now]
        clear = np.maximum(gains.sum(), 0) ** 2 >= _CLEAR * (gains**2).sum()
        return float(gains.sum()) if clear and agreement(new, same) >= agreement(now, same) else 0.0

    thin = np.unique(odds[np.abs(odds - bar) < THIN])
    tried = np.array([bar, *np.where(thin < bar, thin - NEAR, thin + NEAR)])
    tried = tried[np.argsort(np.abs(tried - bar), kind="stable")]
    best = tried[int(np.argmax([gain(odds >= one) for one in tried]))]
    return float(np.clip(probabilities(np.array([best]))[0], NEAR, 1 - NEAR))
