"""Parses the text of a search box: words, beginnings of words, phrases, required and excluded words, fields, ranges.

The syntax is that of tantivy's parser. A text that it rejects is searched as plain words, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice, pairwise
from math import inf, nextafter
from typing import Any

from ndd_search.core.setting_values import nearest
from ndd_search.embedded.stored_document import searchable
from ndd_search.embedded.tantivy_files import SINGLES, analyzer_of
from ndd_search.errors import importing

with importing("tantivy", "the embedded index", "tantivy", "embedded"):
    import tantivy

MOST_WORDS = 1024  # different words of a query that are searched, as in Lucene
_LONGEST, _DEEPEST = 2000, 50  # characters and parentheses of a parsed query: the parser recurses
_OPERATOR = re.compile(r"""["'+\-(){}\[\]:^~*/\\<>]|\b(?:AND|OR|NOT|IN|TO)\b""")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?")
_YEARS = 1680, 2260  # tantivy counts nanoseconds in 64 bits: other dates are only texts
_LONGEST_VALUE = 1000  # characters of a field value that can be searched
_DEEPEST_FIELD = 20  # levels of nested objects
_ORDERED = 100  # characters of a value by which documents are sorted
_SINGLES = re.compile(f"([{SINGLES}]+)")
_SHOULD, _MUST, _MUST_NOT = tantivy.Occur.Should, tantivy.Occur.Must, tantivy.Occur.MustNot


class _Unreadable(Exception):
    """The query cannot be parsed. args: (reason,)."""


@dataclass
class QueryReader:
    """Converts the texts that users type to queries.

    text:  the text fields, which are fields text0, text1, ... of the schema; all others are in its JSON field `fields`.
    notes: receives a sentence for each part that may not be read as it was meant.
    """

    schema: tantivy.Schema
    index: tantivy.Index
    searcher: tantivy.Searcher
    analyzer: tantivy.TextAnalyzer
    text: Sequence[str]
    notes: list[str] = field(default_factory=list)

    def read(self, typed: str) -> tantivy.Query:
        """Convert a text to a query. Every text gives a query."""
        if not _OPERATOR.search(typed):
            return self.words(typed)
        try:
            if _is_too_long(typed):
                raise _Unreadable("it is too long for operators")
            tree, errors = tantivy.parse_query_lenient(searchable(typed))
            if errors:
                raise _Unreadable(str(errors[0]["message"]))
            if tree["type"] == "all":
                return tantivy.Query.all_query()
            return self._node(tree, strict=False) or tantivy.Query.empty_query()
        except _Unreadable as error:
            right = _right_form(typed)
            reason = f"it is not complete, write {right}" if right else error.args[0]
            self.notes.append(f"the query was read as plain words: {reason}")
            return self.words(typed)

    def words(self, typed: str) -> tantivy.Query:
        """Match any of the words; each scores by its best field.

        A run of characters whose words are not separated, as in Chinese, or have particles at their ends, as in Korean,
        matches by any two neighbours.
        """
        words: dict[tuple[str, ...], None] = {}
        for place, part in enumerate(_SINGLES.split(searchable(typed))):
            tokens = self._tokens(part)
            is_run = place % 2 and len(tokens) > 1
            words.update(dict.fromkeys(pairwise(tokens) if is_run else zip(tokens)))
        found = (self._in_row(word, self._everywhere()) for word in islice(words, MOST_WORDS))
        return tantivy.Query.boolean_query([(_SHOULD, query) for query in found])

    def _node(self, node: Mapping[str, Any], strict: bool) -> tantivy.Query | None:
        """Convert a node of the syntax tree; None if it has no words. strict: the node is required or excluded."""
        made: tantivy.Query | None
        match node["type"]:
            case "bool":
                made = self._clauses(node["clauses"])
            case "literal":
                made = self._literal(node, strict)
            case "range":
                made = self._range(node)
            case "set":
                made = self._any(self._in_field(node["field"], one, 0, False) for one in node["elements"])
            case "exists":
                made = self._exists(node["field"])
            case "boost":
                made = self._node(node["underlying"], strict)
                made = made and tantivy.Query.boost_query(made, float(node["boost"]))
            case "all":
                made = tantivy.Query.all_query() if strict else None
            case _:
                raise _Unreadable(f"there is no {node['type']} search")
        return made

    def _clauses(self, clauses: Iterable[tuple[str | None, Mapping[str, Any]]]) -> tantivy.Query | None:
        occurs = {None: _SHOULD, "should": _SHOULD, "must": _MUST, "must_not": _MUST_NOT}
        made = []
        for occur, node in clauses:
            if (query := self._node(node, strict=occurs[occur] != _SHOULD)) is not None:
                made.append((occurs[occur], query))
        if made and all(occur == _MUST_NOT for occur, _ in made):
            made.append((_MUST, tantivy.Query.all_query()))
        return tantivy.Query.boolean_query(made) if made else None

    def _literal(self, node: Mapping[str, Any], strict: bool) -> tantivy.Query | None:
        name, typed = node["field_name"], node["phrase"]
        quoted = node["delimiter"] != "none"
        prefix = node["prefix"] or (not quoted and typed.endswith("*"))
        if not quoted and "*" in typed[:-1]:
            self.notes.append(f"* stands for the end of a word alone: {typed!r} was read without the others")
        if name is not None:
            return self._in_field(name, typed, node["slop"], prefix)
        if quoted or strict or prefix:
            return self._phrase(typed, self._everywhere(), node["slop"], prefix)
        return self.words(typed) if self._tokens(typed) else None

    def _in_field(self, name: str, typed: str, slop: int, prefix: bool) -> tantivy.Query | None:
        if name in self.text:
            return self._phrase(typed, [f"text{self.text.index(name)}"], slop, prefix)
        if name in ("id", "_id"):
            return tantivy.Query.term_query(self.schema, "id", typed)
        if not self._is_field(name):
            self.notes.append(
                f"no document has a field {name!r}{nearest(name, self.text)}: the name was read as a word"
            )
            return self.words(f"{name} {typed}")
        found = [self._phrase(typed, [_path(name)], slop, prefix)]
        if (number := number_of(typed)) is not None:
            found.append(tantivy.Query.term_query(self.schema, _path(name), number))
        return self._any(found)

    def _phrase(self, typed: str, fields: Sequence[str], slop: int = 0, prefix: bool = False) -> tantivy.Query | None:
        """Match all words, one after the other. None without words. prefix: the last one is the beginning of a word."""
        if not (words := self._tokens(typed)):
            return None
        if prefix and len(words) == 1:
            return self._beginning(analyzer_of("none").analyze(typed)[0], words[0], fields)
        return self._in_row(words, fields, slop, prefix)

    def _in_row(
        self, words: Sequence[str], fields: Sequence[str], slop: int = 0, prefix: bool = False
    ) -> tantivy.Query:
        """Match words as they are indexed, as a phrase; it scores by its best field."""
        if len(words) == 1:
            made = [tantivy.Query.term_query(self.schema, one, words[0], "freq") for one in fields]
        elif prefix:
            made = [tantivy.Query.phrase_prefix_query(self.schema, one, list(words)) for one in fields]
        else:
            made = [tantivy.Query.phrase_query(self.schema, one, list(words), slop) for one in fields]
        return tantivy.Query.disjunction_max_query(made) if len(made) > 1 or fields == self._everywhere() else made[0]

    def _beginning(self, begun: str, stem: str, fields: Sequence[str]) -> tantivy.Query:
        """Match the words that begin so, and the typed one itself: its ending is not indexed."""
        words, made = {stem}, []
        for one in fields:
            if one.startswith("fields."):  # whose words tantivy does not list
                made.append(tantivy.Query.fuzzy_term_query(self.schema, one, begun, 0, prefix=True))
            else:
                listed = self.searcher.terms_with_prefix(one, begun, limit=MOST_WORDS)
                words.update(word for word, _ in listed)
                if len(listed) == MOST_WORDS:
                    self.notes.append(
                        f"{begun}* begins {MOST_WORDS:,} words or more: the most frequent ones are searched"
                    )
        made += [self._in_row([word], fields) for word in sorted(words)]
        found = tantivy.Query.boolean_query([(_SHOULD, query) for query in made])
        if not self.searcher.search(found, 1).hits:
            self.notes.append(f"no word begins with {begun}: endings such as -ing are not indexed, write fewer letters")
        return found

    def _range(self, node: Mapping[str, Any]) -> tantivy.Query:
        name = node["field"]
        if name is None or name in self.text or not self._is_field(name):
            raise _Unreadable(f"there is no field {name!r} with numbers or dates" if name else "a range needs a field")
        lower, upper = _bound(node["lower"], upper=False), _bound(node["upper"], upper=True)
        escaped = re.sub(r"([^\w.])", r"\\\1", name)
        try:
            return self.index.parse_query(f"fields.{escaped}:[{lower} TO {upper}]", ["text0"])
        except ValueError as error:
            raise _Unreadable(str(error)) from None

    def _exists(self, name: str) -> tantivy.Query:
        if not self._is_field(name):
            raise _Unreadable(f"there is no field {name!r}")
        return tantivy.Query.const_score_query(tantivy.Query.exists_query(_path(name), True), 1.0)

    def _is_field(self, name: str) -> bool:
        """Whether a name is that of a searchable field, other than a text field, of some document."""
        if not name or name in self.text:
            return False
        try:
            return bool(self.searcher.search(tantivy.Query.exists_query(_path(name), True), 1).hits)
        except ValueError:
            return False

    def _any(self, queries: Iterable[tantivy.Query | None]) -> tantivy.Query | None:
        made = [(_SHOULD, query) for query in queries if query is not None]
        return made[0][1] if len(made) == 1 else tantivy.Query.boolean_query(made) if made else None

    def _tokens(self, typed: str) -> list[str]:
        return list(self.analyzer.analyze(typed))

    def _everywhere(self) -> list[str]:
        return [f"text{number}" for number in range(len(self.text))]


def filterable(document: Mapping[str, Any], text: Sequence[str]) -> dict[str, Any]:
    """Return the searchable values of a document's fields, except the text fields.

    Every value is searchable as a string of up to 1,000 characters. A string that holds a number or a date is
    searchable as that, too.
    """
    return {
        key: values
        for name, value in document.items()
        if name not in text and (key := _key(name)) and (values := _values(value, _DEEPEST_FIELD)) not in (None, [], {})
    }


def ordered(values: Any) -> Any:
    """Return what documents are sorted by: the first value of each field, as a number, or a text without case.

    values: as `filterable` returns them.
    """
    if isinstance(values, Mapping):
        return {name: ordered(value) for name, value in values.items()}
    if isinstance(first := values[0], Mapping):
        return ordered(first)
    number = number_of(first)
    return first[:_ORDERED].casefold() or None if number is None else number


def number_of(value: Any) -> float | None:
    """Convert a number, or a string that holds one, to float; None for anything else, or if it does not fit."""
    if isinstance(value, bool) or not (isinstance(value, int | float) or _reads_as(_NUMBER, value)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) < float("inf") else None


def _values(value: Any, levels: int) -> Any:
    if isinstance(value, Mapping):
        inner = {key: _values(one, levels - 1) for name, one in value.items() if (key := _key(name))} if levels else {}
        return {key: one for key, one in inner.items() if one not in (None, [], {})}
    if isinstance(value, list | tuple):
        found: list[Any] = []
        for one in value if levels else ():
            made = _values(one, levels - 1)
            found += made if isinstance(made, list) else [] if made is None else [made]
        return found
    if value is None:
        return None
    if isinstance(value, bool):
        return ["true" if value else "false"]
    number = number_of(value)
    written = str(value) if number is not None or isinstance(value, str) else ""
    made = [searchable(written[:_LONGEST_VALUE])]
    if number is not None:
        made.append(number)
    elif (moment := _moment(value)) is not None:
        made.append(_written(moment))
    return made


def _key(name: str) -> str:
    """Normalise a field name for tantivy; "" for one that it does not accept."""
    return searchable(name) if name.isprintable() else ""


def _reads_as(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and len(value) < 40 and pattern.fullmatch(value.strip()) is not None


def _moment(value: Any) -> datetime | None:
    if not _reads_as(_DATE, value):
        return None
    try:
        found = datetime.fromisoformat(value.strip())
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if _YEARS[0] <= found.year <= _YEARS[1] else None


def with_dates(found: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return aggregations whose date histograms have a date in each bucket. wanted: their kinds, by name.

    If some segment of the index has no dates in the field, tantivy gives keys in nanoseconds instead, without dates.
    """
    dated = dict(found)
    for name in found.keys() & {name for name, kinds in wanted.items() if "date_histogram" in kinds}:
        dated[name] = {**found[name], "buckets": [_dated(bucket) for bucket in found[name]["buckets"]]}
    return dated


def _dated(bucket: Mapping[str, Any]) -> Mapping[str, Any]:
    if "key_as_string" in bucket:
        return bucket
    moment = datetime(1970, 1, 1) + timedelta(microseconds=bucket["key"] / 1000)
    return {**bucket, "key": bucket["key"] / 1e6, "key_as_string": _written(moment)}


def _written(moment: datetime) -> str:
    """Format a date and time for tantivy, to the second."""
    return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def _bound(bound: Mapping[str, Any], upper: bool) -> str:
    """Format an end of a range for tantivy, as an inclusive bound: tantivy fails on some ranges with exclusive ones.

    Dates are rounded to the second.
    """
    if bound["type"] == "unbounded":
        return "*"
    value, inclusive = str(bound["value"]), bound["type"] == "inclusive"
    if (number := number_of(value)) is not None:
        number = number if inclusive else nextafter(number, -inf if upper else inf)
        return format(Decimal(repr(number)), "f")
    moment = _moment(value)
    if moment is None:
        raise _Unreadable(
            f"a range needs numbers, or dates such as 2024-01-31 of the years 1680 to 2260, got {value!r}"
        )
    try:
        if len(value.strip()) == len("2024-01-31") and upper == inclusive:  # an upper bound includes the whole day
            moment, inclusive = moment + timedelta(days=1), not inclusive
        if not inclusive:
            moment += timedelta(seconds=-1 if upper else 1)
    except OverflowError:
        raise _Unreadable(f"there is no date beyond {value}") from None
    return _written(moment)


def _is_too_long(typed: str) -> bool:
    return len(typed) > _LONGEST or typed.count("(") > _DEEPEST


def _right_form(typed: str) -> str:
    """Return a query with what it probably lacks, or without what is too much; "" if that is no query either."""
    if _is_too_long(typed):
        return ""
    right = re.sub(r"\b(AND|OR|NOT)\s*$|^\s*(AND|OR)\b|[\^:+\-]\s*$|[<>]=?\s*$", "", typed).strip()
    right = re.sub(r"([\[{])\s*(\S+)\s+TO\s*$", r"\1\2 TO *]", right)
    right += '"' * (right.count('"') % 2) + ")" * (right.count("(") - right.count(")"))
    is_one = right not in ("", typed) and not tantivy.parse_query_lenient(searchable(right))[1]
    return right if is_one else ""


def _path(name: str) -> str:
    return f"fields.{name}"
