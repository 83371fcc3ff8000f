"""The numbers of a text, and the guard that keeps two hits with other numbers apart."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.sketching import sketch_many
from ndd_search.core.sketching.stored_sketch import SketchField
from ndd_search.core.text import numbers
from ndd_search.core.text.numbers import differing_in_numbers, number_signature, numbers_of
from ndd_search.core.text.tokens import split
from ndd_search.indexing.backfill import Backfill
from ndd_search.indexing.with_sketches import sketch_fields
from ndd_search.search.rest.mapping import check_mapping, mapping_properties
from tests.engines.find import Engine

RECIPE = ndd.Recipe()
OFFER = (
    "Portable power bank with {} mAh and two outputs, charges a phone and a tablet at the same time, "
    "slim aluminium case, short cable included, delivered in a recycled paper box within the week"
)
OFFERS = [OFFER.format("10,000"), OFFER.format("20,000"), OFFER.format("10000") + " today"]
PRODUCTS = [{"id": str(number), "text": text} for number, text in enumerate(OFFERS)]
EXACT: dict[str, Any] = {"min_similarity": 0.6}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("no number at all, not even one hundred", set[str]()),
        ("X200 and 128GB, 128 GB", {"200", "128"}),
        ("1,299.00 or 1.299,00 or 1'299 or 1’299 or 1299", {"1299"}),
        ("2.5 or 2,5 litres, 0.125 and 0,125", {"2.5", "0.125"}),
        ("1,00,000 or 100000; 12,34,56,789.50", {"100000", "123456789.50"}),
        ("version 3.1 is not 3.10, nor 1.10.2", {"3.1", "3.10", "1.10.2"}),
        ("24.12.2025", {"24.12.2025"}),
        ("iPhone 12 128 GB", {"12", "128"}),
        ("007, 7 and 7.0", {"7"}),
        ("٣٫٥ and १२ and ３ and ១០ and 𝟵", {"3.5", "12", "3", "10", "9"}),
        ("١٬٢٩٩ and １，２９９．００", {"1299"}),
        ("20 m² or 20 m2", {"20", "2"}),
        ("-5 or −5, +5, ± 5, ≤5 or ≤ 5, x<5, 5+", {"-5", "+5", "±5", "≤5", "<5", "5+"}),
        ("3-5, 3 - 5, 2020–2024 and 0-3, C++17, COVID-19", {"3", "5", "2020", "2024", "0", "17", "19"}),
        ("€10 or 10 € or EUR 10 or 10 eur; $10, US$ 10, 10 USD; £10", {"€10", "$10", "£10"}),
        ("-$5, 5 $10 vouchers, a neuron 7", {"-$5", "5", "$10", "7"}),
        ("5%, 5 % and ５％; 20°C or 20 °C", {"5%", "20°"}),
        ("> 5 quoted lines", {"5"}),
    ],
)
def test_a_number_is_one_however_it_is_written(text: str, numbers: set[str]) -> None:
    assert numbers_of(text, RECIPE) == numbers


@given(st.lists(st.integers(0, 10**6).map(str), max_size=6), st.randoms())
def test_neither_order_nor_repeats_change_the_value_and_another_number_does(numbers: list[str], rng: Any) -> None:
    again = [*numbers, *numbers[:2]]
    rng.shuffle(again)
    value = number_signature(" kg ".join(numbers), RECIPE)
    assert value == number_signature("; ".join(again), RECIPE)
    assert 0 <= value < 2**31
    assert value != number_signature(" ".join([*numbers, "1000001"]), RECIPE)


def test_links_and_markup_count_as_little_as_for_the_sketch() -> None:
    page = '<p style="width: 640px">pack of 6, see https://shop.example/item/4711</p>'
    assert numbers_of(page, ndd.Recipe.words(markup="html", urls="drop")) == {"6"}


def test_the_stored_value_never_changes() -> None:
    assert [number_signature(text, RECIPE) for text in ("", "X200", "1.299,00 EUR, 2 pieces")] == [
        154724242,
        976688833,
        955774619,
    ]


def shown(page: Any) -> list[str]:
    return [hit["id"] for hit in page.hits]


def test_a_list_is_collapsed_only_where_the_numbers_agree() -> None:
    plain = ndd.collapse(PRODUCTS, text="text", **EXACT)
    guarded = ndd.collapse(PRODUCTS, text="text", guards=["numbers"], **EXACT)
    assert shown(plain) == ["0"]
    assert shown(guarded) == ["0", "1"]
    assert [copy.hit["id"] for copy in guarded.groups[0].duplicates] == ["2"]
    assert "numbers keeps them apart" in guarded.explain(1).rule


def test_where_the_numbers_are_unknown_hits_stand_alone() -> None:
    def text(hit: dict[str, str]) -> str | None:
        return None

    sketches = sketch_many(OFFERS)
    assert shown(ndd.collapse(PRODUCTS, sketches=sketches, text=text, **EXACT)) == ["0"]
    assert len(ndd.collapse(PRODUCTS, sketches=sketches, text=text, guards=["numbers"], **EXACT)) == 3


def test_an_index_in_a_folder_needs_nothing_stored_for_it(tmp_path: Path) -> None:
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    with ndd.Index.open(tmp_path / "shop", text=["text"]) as index:
        index.add(PRODUCTS)
        both = [index.search("power bank", guards=guards, **EXACT) for guards in ([], ["numbers"])]
    assert [[hit["_id"] for hit in one["hits"]["hits"]] for one in both] in ([["0"], ["0", "1"]], [["1"], ["1", "0"]])


def test_merged_responses_are_compared_by_what_is_stored_or_by_their_text() -> None:
    hits: list[dict[str, Any]] = []
    for number, document in enumerate(PRODUCTS):
        stored = sketch_fields(document, "text", numbers=number < 2)["ndd"]
        fields = {f"ndd.{name}": value if name == "sketch" else [value] for name, value in stored.items()}
        hits.append({"_index": "a", "_id": str(number), "_score": 1.0, "_source": document, "fields": fields})
    response = {"hits": {"total": {"value": 3, "relation": "eq"}, "hits": hits}}
    found = [ndd.merge([response], guards=["numbers"], text=text, **EXACT) for text in (None, "text")]
    assert [[hit["_id"] for hit in one["hits"]["hits"]] for one in found] == [["0", "1", "2"], ["0", "1"]]
    assert all("fields" not in hit for one in found for hit in one["hits"]["hits"])


def test_only_whoever_asks_stores_the_value() -> None:
    with_numbers = sketch_fields(PRODUCTS[0], "text", numbers=True)["ndd"]
    assert with_numbers.pop("numbers") == number_signature(OFFERS[0], RECIPE)
    assert with_numbers == sketch_fields(PRODUCTS[0], "text")["ndd"]
    partial = {"_op_type": "update", "_id": "1", "doc": {"text": OFFERS[1]}}
    (updated,) = ndd.with_sketches([partial], "text", numbers=True)
    assert updated["doc"]["ndd"]["numbers"] == number_signature(OFFERS[1], RECIPE)


@pytest.fixture
def shop(engine: Engine) -> Iterator[str]:
    """The products in an index that was made before there were numbers, and stored without them."""
    name = f"ndd-numbers-{uuid.uuid4().hex[:8]}"
    old = mapping_properties()
    del old["ndd"]["properties"]["numbers"]
    with engine.client() as client:
        client.indices.create(index=name, body={"mappings": {"properties": {"text": {"type": "text"}, **old}}})
        for document in PRODUCTS:
            client.index(index=name, id=document["id"], body=sketch_fields(document, "text"))
        # Written for the numbers, but into a mapping that did not take them.
        client.index(index=name, id="3", body=sketch_fields({"text": OFFERS[1]}, "text", numbers=True))
        client.indices.refresh(index=name)
        yield name
        client.indices.delete(index=name)


def test_an_index_is_searched_with_the_guard_once_a_backfill_has_stored_the_numbers(engine: Engine, shop: str) -> None:
    body = {"query": {"match": {"text": "power bank"}}, "sort": ["_doc"]}
    with engine.client() as client:
        wrapped = ndd.wrap(client, cache=False, guards=["numbers"], enabled=["unranked"], **EXACT)
        before = wrapped.search(index=shop, body=body)
        assert before["ndd"]["kept"] == 4
        assert "backfill --numbers" in before["ndd"]["degraded"]
        report = Backfill(index=shop, fields=["text"], numbers=True).run(client)
        assert (report.tally.written, report.remaining) == (4, 0)
        assert Backfill(index=shop, fields=["text"], numbers=True).run(client).tally.written == 0
        mapping = client.indices.get_mapping(index=shop)[shop]["mappings"]
        assert mapping["properties"]["ndd"]["properties"]["numbers"] == {"type": "integer", "index": False}
        assert list(check_mapping(mapping)) == []
        client.indices.refresh(index=shop)
        after = wrapped.search(index=shop, body=body)
        assert sorted(_group(hit) for hit in after["hits"]["hits"]) == [["0", "2"], ["1", "3"]]
        assert after["ndd"]["degraded"] is None
        assert all("fields" not in hit for hit in after["hits"]["hits"])
        asked = wrapped.search(index=shop, body={**body, "docvalue_fields": [SketchField().numbers]})
        assert {hit["fields"]["ndd.numbers"][0] for hit in asked["hits"]["hits"]} == {
            number_signature(text, RECIPE) for text in OFFERS
        }
        off = wrapped.search(index=shop, body={**body, "ndd": {"guards": []}})
        assert off["ndd"]["kept"] == 1


def _group(hit: dict[str, Any]) -> list[str]:
    return sorted([hit["_id"], *(copy["_id"] for copy in hit["inner_hits"]["near_duplicates"]["hits"]["hits"])])


def test_entries_of_one_form_are_read_once_not_once_for_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def noted(text: str, apart: bool) -> list[str]:
        read.append(text)
        return split(text, apart)

    monkeypatch.setattr("ndd_search.core.text.numbers.split", noted)
    form = " ".join(one + other for one in "abcdefgh" for other in "abcdefgh")
    entries = [f"{form} {place}" for place in range(40)]
    assert len(ndd.collapse(entries, size=40)) == 40
    assert len(read) == len(entries)


def test_numbers_of_a_mark_before_a_text_do_not_tell_entries_apart() -> None:
    """Updates of one report, on one page and on the next one; entries with numbers inside remain different."""
    report = "Ministers agreed on Friday to cut emissions from steel works by a third before 2040"
    hits = [f"UPDATE {one} - {report}" for one in range(4)] + [f"UPDATE 9 - {report}1"]
    assert ndd.collapse(hits).hits == [hits[0], hits[4]]
    made = ndd.stream(lambda start, count: hits[start : start + count], key="q")
    first = made.page(1, cursor=True)
    assert [first.hits, made.page(4, cursor=first.cursor).hits] == [hits[:1], hits[4:]]


def test_each_text_of_a_long_list_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each entry is compared with thousands: once more texts than were remembered, each was read for each of them."""
    texts = [f"Row {number} of the register" for number in range(3000)]
    counts, read = Counter[str](), numbers.words_and_numbers

    def counted(text: str, recipe: ndd.Recipe) -> tuple[list[str], list[str]]:
        counts[text] += 1
        return read(text, recipe)

    monkeypatch.setattr(numbers, "words_and_numbers", counted)
    differ = differing_in_numbers(ndd.Recipe())
    for one in texts[:2]:
        assert [differ(one, other) for other in texts].count(False) == 1
    assert counts == dict.fromkeys(texts, 1)
