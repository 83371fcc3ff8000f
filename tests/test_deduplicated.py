"""A store that is asked whether it knows a text already, and what replaced it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import ndd_search as ndd
from ndd_search.embedded.deduplicated import Deduplicated
from ndd_search.errors import InvalidDocument

TEA = "The user prefers green tea in the morning, without sugar, and black tea after lunch."
TEA_AGAIN = "NOTE: The user prefers green tea in the morning, without sugar, and black tea after lunch!"
MERGED = "PR {} was merged today by the team into the main branch, after a review by two people."


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Deduplicated]:
    with ndd.Index.open(tmp_path / "memories.idx", text=["text"]) as index:
        yield Deduplicated(index, date="at")


def test_a_text_is_stored_once_and_the_newer_one_takes_the_place_and_id_of_the_older(store: Deduplicated) -> None:
    first = store.add({"text": TEA, "at": "2025-03-01", "by": "ann"})
    assert (first.status, first.replaced) == ("new", None)
    assert store.add({"text": TEA_AGAIN, "at": "2025-02-01"})[:2] == ("known", first.id)
    assert store.add({"text": TEA_AGAIN})[:2] == ("known", first.id)
    newer = store.add({"id": "mine", "text": TEA_AGAIN, "at": "2025-04-01"})
    assert newer[:2] == ("newer", first.id)
    assert newer.replaced == {"id": first.id, "text": TEA, "at": "2025-03-01", "by": "ann"}
    assert len(store.index) == 1
    assert store.known(TEA) == store.index.get(first.id) == {"id": first.id, "text": TEA_AGAIN, "at": "2025-04-01"}
    assert store.add({"id": first.id, "text": "Another text under the same id, of a later day.", "at": "2026"}).id


def test_texts_that_differ_in_a_number_alone_are_all_known(store: Deduplicated) -> None:
    added = [store.add(MERGED.format(number)) for number in (260, 480, 260, 481)]
    assert [one.status for one in added] == ["new", "new", "known", "new"]
    assert added[2].id == added[0].id
    assert store.known(MERGED.format(999)) is None
    assert len(store.index) == 3


def test_a_text_found_among_many_is_the_same_after_the_folder_is_opened_again(store: Deduplicated) -> None:
    texts = [f"The {a} of the {b} asked for {c} and got it." for a in "abc" for b in "defg" for c in ("tea", "time")]
    store.index.add([{"id": str(number), "text": text * 3} for number, text in enumerate(texts)])
    id = store.add(TEA).id
    again = Deduplicated(ndd.Index.open(store.index.path))
    assert again.add({"text": TEA_AGAIN, "at": "2025-04-01"})[:2] == ("known", id)
    assert again.known("Nothing like it was ever said here before.") is None


def test_what_has_no_text_is_refused(store: Deduplicated) -> None:
    with pytest.raises(InvalidDocument, match="no text in text"):
        store.add({"body": TEA})
    with pytest.raises(TypeError, match="unknown option"):
        Deduplicated(store.index, min_similarty=0.5)  # type: ignore[call-arg]
