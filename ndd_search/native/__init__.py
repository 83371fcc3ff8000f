"""The native core (its C sources are in this folder), if this installation was built with a C compiler.

`sketching.sketches`, `matching.sketch_rows`, `matching.similar_pairs` and `matching.choose_leaders` compute the same
with numpy, bit for bit. They read `core` at each call, so setting it to None switches to numpy.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol, cast

VERSION = 39  # of the functions below, as in module.c: a checkout may hold a core built from older sources
_CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
THREADS = min(_CPUS, 64)  # that the core starts
Plan = tuple[
    bool, int, int | bytes, int
]  # whether shingles are words (else characters), size, seed or secret.HashNumbers as uint64, k


class Rule(NamedTuple):
    """The numbers a pair is decided by; the core reads them in this order. With j, s, d, m as in `decision`:

        j * min(1, s / d) ** (power * m * min(1, 1 - j + margin / n))  >=  bar
        j  >=  bar + max(0, 1 - least - bar) * x / (1 + x)
        bar = least + asked * min(1, 1/2 + (1 - s) / common) / n
        x = (own / content) ** 6, 0 if content is 0
        at most `adds` of the idf sum of either lacks in the other

    or if 1 - j <= differ * min(n, 80), or if the two differ at their edges.
    n is the number of shingles of the shorter document, own the smaller idf sum of the shingles that only one holds.
    """

    least: float  # the bar of the longest texts, 0..1
    asked: float = 0.0  # at least 0: shingles that a short text shares beyond that
    common: float = 1.0  # twice the 1 - s, above 0, from which a text is asked for all of these
    power: float = 0.0  # at least 0; 0 leaves the resemblance as it is
    margin: float = 0.0  # shingles, at least 0
    adds: float = 1.0  # above 0, at most 1: share of the idf of either text that the other may lack
    content: float = 0.0  # shingles, at least 0; 0 makes the second bar the first one
    differ: float = 0.0  # share that may differ whatever the idf, for each of 80 shingles of the shorter document
    edges: float = 0.0  # 1: odd values touch an edge of their text, and texts that differ there count
    twice: float = 0.0  # how much more a value weighs that twice as many documents hold; a handful weighs 0, so this is
    # also the weight of a value that twice a handful hold
    min_shingles: int = 0  # a document with fewer values is a near-duplicate only of one with the same values
    measure: int = 0  # that `least` is a bar on: kmv, broder, overlap or shorter; only collections take others than kmv


# Values of sketches (int32), counts and offsets (int64). If all hits have values, counts are None, and hit i has
# values[offsets[i]:offsets[i + 1]]; otherwise offsets are None. A count is the number of values of a hit, 0 for an
# empty sketch, -1 for a malformed one, -2 for one of another recipe, -3 for none with values. The last number says how
# many cuts were found again so far.
StoredValues = tuple[bytes, bytes | None, bytes | None, int]


class Core(Protocol):
    """The functions of the core. They return None for irregular input, for which the numpy code then raises the error.

    They also return None if they get no memory; the numpy code then does their work.

    sketches: int32 rows with offsets None, or one int32 array with int64 offsets. Arrays are returned as bytes.
    """

    def rows(self, sketches: object, offsets: object, k: int, /) -> tuple[bytes, bytes] | None:
        """Check sketches. Returns their values (int32), at most k of each, and offsets (int64)."""

    def leaders(
        self, sketches: object, offsets: object, k: int, rule: Rule, frequency_table: bytes | None, old: int, /
    ) -> tuple[bytes, bytes] | None:
        """Return the leader of each hit (int64) and the similarity to it (float64). The first `old` hits are leaders.

        frequency_table: from common_table. Returns None also if a pair is too close to its bar to decide.
        """

    def pairs(
        self, sketches: object, offsets: object, k: int, rule: Rule, frequency_table: bytes | None, /
    ) -> tuple[bytes, bytes, bytes] | None:
        """Return the near-duplicate pairs: the fields of Pairs. None as in leaders."""

    def corpus_pairs(
        self,
        values: object,
        offsets: object,
        k: int,
        rule: Rule,
        frequency_table: bytes | None,
        guards: tuple[object, object, float],
        progress: object,
        limits: tuple[int, int, int, int],
        /,
    ) -> tuple[bytes, bytes, bytes, bytes, tuple[int, int, int, int]] | None:
        """Return first and second of each pair (int64), similarity (float64), the first of each document's equals.

        Also returns the effort (corpus.collection_pairs.Effort).
        A pair whose similarity is too close to its bar to tell counts as a pair of near-duplicates.
        limits: budget; the most pairs of one document with earlier ones, 0 for that with its leader; old (the first
        `old` documents are leaders); and threads, 1..64.
        guards: codes (int64) or None, times (float64 as int64) or None, and how far times may be apart.
        progress: called with the number of documents done, or None.
        """

    def meetings(
        self, token: object, record: object, information: object, limits: tuple[int, int, int, int], /
    ) -> bytes | None:
        """Return pairs of records that share tokens, as lower * records + higher (int64), some of them twice.

        token, record: of each entry. information: of each token, 0..2**31-2; all int64.
        limits: how many records there are; pairs of a record that are kept, those that share most information, then
        those with the lower record; the best pairs are looked for of each so-many-th record only; threads, 1..64.
        """

    def super_tokens(
        self, token: object, record: object, field: object, allowed: object, limits: tuple[int, int, int, int], /
    ) -> tuple[bytes, bytes] | None:
        """Return the joined tokens (int64), and the record (int64) of each.

        token, record, field: of each entry, by record. allowed: fields * fields, 1 if their tokens are joined; int64.
        limits: how many tokens and fields there are; joined tokens of a record that are kept, those that fewest records
        hold; and the most records that may hold one.
        """

    def screened(
        self,
        first: object,
        second: object,
        shares: object,
        stages: tuple[tuple[object, ...], ...],
        most: float,
        threads: int,
        /,
    ) -> tuple[bytes, bytes, bytes] | None:
        """Compare pairs of records by some fields in turn, until one rules the pair out.

        first, second: records of each pair. shares: of each kind of other pairs, a logarithm (float).
        stages: of each field the kind and the rows of its values; the value of each record, -1 if it has none; edges
        and common shares that divide similarities into grades (floats); a row of `kinds` for each grade, the last one
        for a missing value, which are added up (floats); and of each kind a bound of what later fields add (float). A
        pair is left if no sum and its bound is above `most`.
        Kinds of values and their rows, int64 unless noted, floats are float64 given as int64:
        0, names: of words the letters (code points, int32), their ends, kinds (1 a number, 2 has synonyms), weights and
        shares (floats); of names their words and ends, letters written as one word (int32) and their ends, and the
        number of their digits; pairs of synonyms, ascending, as low * words + high.
        1, dates: year of each, and its digits, of 4 bits. 2, sets: members and ends of each, ascending, the shares of
        members (floats), and of codes the letters (int32) and ends. 3, numbers: all, then tolerance and within
        (floats). 4, places: latitude and longitude in radians and the cosine of the latitude of each, then `km`
        (floats).
        Returns of each stage and pair a similarity (float32) and a grade (int16), NaN and -1 where a value is missing,
        and of each pair whether it is left (bool). Later stages of a pair that is not left are undefined.
        """

    def corpus_check(
        self,
        values: object,
        offsets: object,
        k: int,
        rule: Rule,
        frequency_table: bytes | None,
        guards: tuple[object, object, float],
        pairs: object,
        /,
    ) -> bytes | None:
        """Return the similarity of each of some pairs (float64), -1 where the two are no near-duplicates.

        pairs: int64, the first document of each pair, then the second document of each.
        """

    def counted(
        self, values: object, offsets: object, k: int, rule: Rule, handful: float, unseen: float, /
    ) -> tuple[float, bytes, bytes] | None:
        """Return the frequency table of a list: the number of documents, values (int32) and their counts (float64).

        rule: without a table. handful: as in FrequencyTable. unseen: documents without any of the values, counted with
        the list if it has more than `handful`.
        None also for more than 500 sketches, for short texts, and if only numpy can decide.
        """

    def common_table(self, values: object, weights: object, /) -> bytes | None:
        """Return a hash table from values (int32) to weights (int64, 0..2**20)."""

    def sketch_text(self, text: str, plan: Plan, table: bytes | None, /) -> bytes | None:
        """Return the values (int32) of a sketch; None also for a text whose marks only the numpy code can order.

        table: None for a text that is all ASCII, else unicode_tables.native_table.
        """

    def sketch_texts(
        self, texts: Sequence[str], is_ascii: bytes, plan: Plan, table: bytes | None, /
    ) -> tuple[bytes, bytes, bytes] | None:
        """Return values (int32) and offsets (int64) of the sketches, and the indexes (int64) of texts left to numpy.

        is_ascii: a byte for each text, 1 if it is all ASCII. Texts left to numpy have no values.
        """

    def words_of(
        self, texts: Sequence[str], is_ascii: bytes, plan: Plan, table: bytes | None, stems: object, /
    ) -> bytes | None:
        """Return for each text a line of its words, with one space between them (UTF-8, also of lone surrogates).

        stems: from a word of four letters or more to its stem, which is written instead; shorter words are left out.
        None also if the numpy code must order marks of one of the texts.
        """

    def stored_sketches(
        self, hits: list[Mapping[str, object]], names: tuple[str, str, str], k: int, cuts: tuple[bytes, bytes, int], /
    ) -> StoredValues | None:
        """Return the values of stored sketches.

        hits: with doc values under "fields". names: paths of values and recipe, and its id. cuts: values and offsets
        from cut_sketches, in whose place hits have numbers, and how many of them were found again. If there are any,
        what is read is also taken out of the hits.
        """

    def is_plain(self, value: object, /) -> bool:
        """Return whether JSON restores a value exactly (see `paging.cache_entries`).

        False also for a value of more than 100 levels, which the Python code examines.
        """

    def cut_sketches(self, text: str | bytes, name: str, k: int, /) -> tuple[str | bytes, bytes, bytes] | None:
        """Return JSON with numbers in place of stored sketches, -1 for the first, and their values and offsets.

        name: of the members that hold sketches, wherever they stand. None if there are none of some length, or one is
        no list of 1 to k integers in 0..2**31-1.
        """


def _load() -> tuple[Core | None, str]:
    """Return the core, or None and the reason."""
    try:
        module = import_module("ndd_search._native")
    except ModuleNotFoundError:  # a core that exists but fails to load raises its own error
        return None, "the native core was not built: there was no C compiler"
    if (version := getattr(module, "version", 1)) == VERSION:
        return cast(Core, module), ""
    reason = f"the native core has version {version}, not {VERSION}"
    warnings.warn(
        f"{reason}, so numpy is used: reinstall ndd_search, in a checkout with `python -m pip install --editable .`",
        RuntimeWarning,
        stacklevel=2,
    )
    return None, reason


core, _reason = _load()


def in_use() -> str:
    """Describe what computes sketches and pages in this process, for reports."""
    return "the native core" if core else f"numpy ({_reason or 'the native core was switched off'})"
