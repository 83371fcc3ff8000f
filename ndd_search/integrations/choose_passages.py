"""Passages without near-duplicates out of any ranked list: what a retriever found, or what a reranker gave back.

    found = passages(reranked, size=10, max_tokens=4000, text="text", id="chunk_id", source="url")
    prompt = "\n\n".join(found.texts)
    found[0].provenance     # what the first passage stands for: ids, sources, similarity

Two passages are near-duplicates as they are for `ndd_search.collapse`, unless each says something that the other does
not. With `contained`, a passage that a longer one holds is shown as a part of that one, at the better of both places.
With `merge`, overlapping passages of one document become one. Every passage that is not shown is listed under the one
that stands for it, or in `left_out`, or comes after the last place that was asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ndd_search.core.matching.contained_texts import Extract, joined
from ndd_search.core.matching.group_by_keys import passed_over
from ndd_search.core.paging.copies_or_entries import kept_apart
from ndd_search.core.paging.origins import origins_of
from ndd_search.core.setting_values import hits_in
from ndd_search.errors import InvalidDocument
from ndd_search.integrations.group_passages import (
    Containment,
    Given,
    Groups,
    Texts,
    groups_of,
    others,
    without_additions,
)
from ndd_search.integrations.passage_options import (
    TEXT_FIELDS,
    Fields,
    PassageOptions,
    Where,
    count_words,
    passage_options,
)
from ndd_search.integrations.passages_and_copies import Copy, Passage, Passages, Relation

__all__ = ["Copy", "Fields", "Passage", "PassageOptions", "Passages", "count_words", "passage_options", "passages"]

_REPEATED = 0.5  # of the pairs of neighbouring words of a passage that may be shown already when its turn comes

_USUAL = Fields()

log = logging.getLogger("ndd_search")


def passages(
    ranked: Iterable[Any],
    *,
    text: Where | None = None,
    id: Where = "id",
    source: Where = "source",
    document: Where = "document",
    start: Where = "start",
    stored: Where = "ndd",
    options: PassageOptions | None = None,
    **changes: Any,
) -> Passages:
    """Choose different passages out of a ranked list, and say what each of them stands for.

    ranked:  best first: texts, mappings, objects, or pairs (any of these, score) as rerankers give them.
    text, id, source, document, start, stored: where these are in a passage: a field, or a callable(passage). `document`
             names the document that the passage was cut from, `start` the position there, `stored` a stored sketch.
             text=None looks for text, content and page_content.
    options, changes: PassageOptions, and single options of it or of CollapseOptions by name (size=5, max_tokens=2000,
             min_similarity=0.8, keep=["newest:date"], merge=True).
    The passages given are not changed. A passage without text is shown on its own.
    Raises InvalidDocument when no passage at all has a text, ValueError or TypeError for a setting that cannot be.
    """
    ranked = hits_in("ranked", ranked)
    found = Fields(text=text, id=id, source=source, document=document, start=start, stored=stored)
    return select(ranked, found, passage_options(options, **changes))


def select(ranked: Sequence[Any], where: Fields, options: PassageOptions) -> Passages:
    """As `passages`, with the fields and options at hand."""
    pairs = [_with_score(one) for one in ranked]
    given = Given([hit for hit, _ in pairs], [score for _, score in pairs], where, options.recipe)
    if given.hits and all(text is None for text in given.texts):
        looked = " or ".join(TEXT_FIELDS) if where.text is None else repr(where.text)
        raise InvalidDocument(
            f"none of {len(given.hits)} passages",
            f"no text under {looked}",
            "say where it is: text='FIELD' or a callable",
        )
    groups, texts = groups_of(given, options), Texts(given, options.collapse)
    if options.reads_texts:
        groups = without_additions(groups, texts)
    found = _Selection(given, groups, Containment(texts, groups, options), options).run()
    doubts = tuple(_doubts(given, found, options))
    for doubt in doubts:
        log.warning(doubt)
    return replace(found, warnings=(*found.warnings, *doubts)) if doubts else found


def _doubts(given: Given, found: Passages, options: PassageOptions) -> Iterator[str]:
    """Yield a sentence for each setting that does not do what it is there for."""
    ranks, where = range(len(given.hits)), given.where
    if options.merge and len(ranks) > 1 and all(given.document(rank) is None for rank in ranks):
        yield (
            f"merge=True joins nothing: none of {len(ranks)} passages has anything under {where.document!r} that says "
            "which document it was cut from; name that field: document='FIELD' or a callable"
        )
    absent = {
        name: getattr(where, name)
        for name, of in (("id", given.id), ("source", given.source))
        if given.hits and all(of(rank) is None for rank in ranks)
    }
    cites_nothing = len(absent) == 2 and any(one.copies for one in found) and not isinstance(given.hits[0], str)
    for name, path in absent.items():
        if isinstance(path, str) and (cites_nothing or path != getattr(_USUAL, name)):
            yield (
                f"none of {len(ranks)} passages has anything under {path!r}, so none can be cited by it: name the "
                f"field, {name}='FIELD' or a callable"
            )
    if found.left_out and not found.shown:
        most = options.max_tokens
        yield f"max_tokens={most} has room for none of {len(ranks)} passages: raise it, or cut shorter passages"


def _with_score(one: Any) -> tuple[Any, Any]:
    """A passage and its score, None where it comes without."""
    if type(one) in (tuple, list) and len(one) == 2 and (one[1] is None or hasattr(one[1], "__float__")):
        return one[0], one[1]
    return one, None


@dataclass(eq=False, slots=True)
class _Slot:
    """A passage that is being put together. copies: rank -> how it is related, and its similarity."""

    rank: int
    extract: Extract
    document: Any
    copies: dict[int, tuple[Relation, float]]
    tokens: int = 0


def _best_rank(slot: _Slot) -> int:
    return min([slot.rank, *slot.copies])


class _Selection:
    """The walk, in the order of the best rank of each group."""

    def __init__(self, given: Given, groups: Groups, containment: Containment, options: PassageOptions) -> None:
        self.given, self.containment, self.options = given, containment, options
        self.waiting = dict(groups.members)  # by the passage to show
        self.shares = groups.shares
        self.slots: dict[int, _Slot] = {}  # by rank, in the order of their places
        self.of_document: dict[Any, list[_Slot]] = {}
        self.told: set[tuple[str, str]] = set()  # neighbouring words of shown passages, where tokens are scarce
        self.spent = 0
        self.counted: dict[int, int] = {}

    def run(self) -> Passages:
        left_out: list[int] = []
        for shown in self._order():
            if shown in self.waiting and not self._show(shown):
                if len(self.slots) >= self.options.most:
                    break
                left_out += self.waiting.pop(shown)
        passages = tuple(map(self._passage, sorted(self.slots.values(), key=_best_rank)))
        left = tuple(self.given.hits[rank] for rank in sorted(left_out))
        warnings, options = [], self.options.collapse
        if self.options.frequency_table is not False:
            sketches = {rank: self.given.sketches[rank] for rank in self.slots}
            warnings = kept_apart(self.given.hits, sketches, len(sketches), self.given, self.given.recipe, options)
        return Passages(passages, left, len(self.given.hits), options.min_similarity, tuple(warnings))

    def _order(self) -> Iterator[int]:
        """Yield the groups by rank; where tokens are scarce, those last of which much is shown by then."""
        repeating = []
        for shown in list(self.waiting):
            if shown in self.waiting and self._repeats(shown):
                repeating.append(shown)
            else:
                yield shown
        yield from repeating

    def _repeats(self, rank: int) -> bool:
        """Return whether much of a passage stands in shown ones, and it would not be merged with one of them."""
        if self.options.max_tokens is None or not self.slots:
            return False
        pairs = self.containment.texts.words(rank)[1].keys()
        if len(pairs & self.told) <= _REPEATED * len(pairs):
            return False
        of_document = self.of_document.get(self.given.document(rank), ()) if self.options.merge else ()
        return not any(joined(self.given.extract(rank), slot.extract) for slot in of_document)

    def _show(self, shown: int) -> bool:
        """Show the most wanted passage of a group, or another where tokens are scarce. Returns whether one has room."""
        members, containers = self.waiting[shown], self.containment.containers(shown)
        longer = [one for one in containers if one in self.waiting or one in members]
        others = [] if self.options.limits else members
        return any(self._place(rank, shown, containers) for rank in dict.fromkeys([*longer, shown, *others]))

    def _place(self, rank: int, shown: int, containers: list[int]) -> bool:
        """Show a passage for a group, on its own or merged with what it overlaps. Returns whether there was room.

        containers: the longer passages that the shown one stands in.
        """
        slot = _Slot(rank, self.given.extract(rank), None, {})
        if self.options.merge:
            slot.document = self.given.document(rank)
        target = self._merged(slot) or self._added(slot)
        if target is None:
            return False
        if self.options.max_tokens is not None:
            self.told |= self.containment.texts.words(rank)[1].keys()
        self._list_copies(slot, shown, containers)
        if target is not slot:
            target.copies |= {**slot.copies, rank: ("merged", 1.0)}
        return True

    def _added(self, slot: _Slot) -> _Slot | None:
        """The passage at a place of its own, None where there is none or the tokens do not suffice."""
        if len(self.slots) >= self.options.most:
            return None
        if self.options.max_tokens is not None:
            if slot.rank not in self.counted:
                self.counted[slot.rank] = self._count(slot.extract.text)
            if not self._spend(slot, self.counted[slot.rank]):
                return None
        self.slots[slot.rank] = slot
        if slot.document is not None:
            self.of_document.setdefault(slot.document, []).append(slot)
        return slot

    def _merged(self, slot: _Slot) -> _Slot | None:
        """The first of the shown passages of the same document that a passage overlaps, merged with it and the others.

        None where it overlaps none, or the tokens do not suffice.
        """
        if slot.document not in self.of_document:
            return None
        extract, met, rest = slot.extract, [], list(self.of_document[slot.document])
        while found := next(((one, both) for one in rest if (both := joined(extract, one.extract))), None):
            met.append(found[0])
            rest.remove(found[0])
            extract = found[1]
        if not met:
            return None
        ranks = list(self.slots)
        first, *others = sorted(met, key=lambda one: ranks.index(one.rank))
        if not self._spend(first, self._count(extract.text), freed=sum(one.tokens for one in others)):
            return None
        first.extract = extract
        for one in others:
            first.copies |= {**one.copies, one.rank: ("merged", 1.0)}
            del self.slots[one.rank]
            self.of_document[slot.document].remove(one)
        return first

    def _list_copies(self, slot: _Slot, shown: int, containers: list[int]) -> None:
        """List all that a passage stands for when it is shown for a group: those groups wait no longer."""
        rank, holds = slot.rank, self.containment.texts.holds
        within = [shown] if rank in containers else []
        for holder in [rank, *within]:
            within += [one for one in self.containment.contents(holder) if one in self.waiting]
        for group in dict.fromkeys([shown, rank, *within]):
            members = self.waiting.pop(group, None)
            if members is not None and (group != rank or len(members) > 1):
                alike = others(members, rank) if rank in members else members
                for one, similarity in alike.items():
                    slot.copies[one] = "shares" if one in self.shares else "similar", similarity
        for one, (relation, _) in slot.copies.items():
            if relation == "similar" and self.options.contained and holds(rank, one):
                slot.copies[one] = "contained", 1.0

    def _spend(self, slot: _Slot, tokens: int, freed: int = 0) -> bool:
        """Let a slot have so many tokens instead of those that it has, if there are as many."""
        spent = self.spent + tokens - slot.tokens - freed
        if self.options.max_tokens is not None and spent > self.options.max_tokens:
            return False
        self.spent, slot.tokens = spent, tokens
        return True

    def _count(self, text: str) -> int:
        return 0 if self.options.max_tokens is None else self.options.count_tokens(text)

    def _passage(self, slot: _Slot) -> Passage:
        given, rank, span = self.given, slot.rank, slot.extract
        like = [rank, *(one for one, (relation, _) in slot.copies.items() if relation != "shares")]
        scores = [score for one in like if (score := given.scores[one]) is not None]
        copies = [
            Copy(given.hits[one], one, given.id(one), given.source(one), *slot.copies[one])
            for one in sorted(slot.copies)
        ]
        tokens = None if self.options.max_tokens is None else slot.tokens
        origins, fields = None, self.options.collapse.origins
        if fields:
            ranks = sorted({rank, *slot.copies} - passed_over(self.shares.items(), self.options.collapse))
            hits, sketches = ([values[one] for one in ranks] for values in (given.hits, given.sketches))
            origins = origins_of(hits, sketches, fields, given.value, given.recipe)
        return Passage(
            given.hits[rank],
            rank,
            span.text,
            given.id(rank),
            given.source(rank),
            max(scores, default=None),
            tuple(copies),
            span.start,
            span.end,
            tokens,
            origins,
        )
