"""The benchmark command writes its figures and detects ratios that are worse.

The generators of short texts and of long documents give the same correctly labelled texts for the same files.
"""

import gzip
import json
import random
import sys
from copy import deepcopy
from html import unescape
from pathlib import Path

import pytest

from benchmarks import short_texts
from benchmarks.__main__ import PARTS, worse
from benchmarks.copies_and_forms import TWELVE_LANGUAGES
from benchmarks.document import BLOCKS, rewrite
from benchmarks.long_documents import by_paragraphs, collect, different
from benchmarks.page_check import PLAIN
from benchmarks.pictures import TYPICAL, duration
from benchmarks.study.collection import Collection, read_collection
from benchmarks.wrapped_search import TIMED

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "benchmarks" / "figures" / "performance.md"
ARTICLES = Path(__file__).parent / "data/udhr.jsonl.gz"
FOUND = {"kinds": {kind: {PLAIN: 100.0, "a peer": 400.0} for kind in ("distinct", "20 % duplicates")}}


def test_figures_stand_between_their_marks_and_nothing_else_changes() -> None:
    text = "before\n<!-- kinds -->\nold\n<!-- end -->\nafter <!-- sizes -->\n<!-- end -->\n"
    written = rewrite(text, FOUND)
    assert written.startswith("before\n<!-- kinds -->\n| ")
    assert "| a peer | 400 (4.0x) | 400 (4.0x) |" in written
    assert written.endswith("|\n<!-- end -->\nafter <!-- sizes -->\n<!-- end -->\n")
    assert "old" not in written
    assert rewrite(written, FOUND) == written


def test_figures_without_a_place_are_an_error() -> None:
    with pytest.raises(KeyError, match="no place for kinds"):
        rewrite("a page without marks", FOUND)


def test_the_documentation_has_a_place_for_every_part() -> None:
    text = PAGE.read_text()
    assert {*PARTS} <= {*BLOCKS}
    assert [name for name in BLOCKS if f"<!-- {name} -->\n" not in text] == []


def test_the_functions_whose_time_is_split_into_stages_exist() -> None:
    assert [name for _, owner, *names in TIMED for name in names if not hasattr(owner, name)] == []


def test_a_ratio_that_became_worse_is_named_and_a_slower_machine_is_not() -> None:
    slower_machine = deepcopy(FOUND)
    for times in slower_machine["kinds"].values():
        for name in times:
            times[name] *= 3
    assert worse(slower_machine, FOUND) == []
    slower_check = deepcopy(FOUND)
    slower_check["kinds"]["distinct"][PLAIN] = 200.0
    assert sorted(line.partition(":")[0] for line in worse(slower_check, FOUND)) == ["distinct", "distinct"]
    assert "distinct: a peer / numpy: 2.00, was 4.00" in worse(slower_check, FOUND)


def test_the_picture_of_the_methods_shows_the_figures_of_the_page() -> None:
    """Every measurement draws it."""
    figures = json.loads((PAGE.parent / "performance.json").read_text())["kinds"][TYPICAL]
    shown = unescape((PAGE.parent / "page_kinds.svg").read_text())
    assert [
        name for name, time in figures.items() if f"{name}</text>" not in shown or duration(time) not in shown
    ] == []


@pytest.mark.parametrize(
    "picture", [*PAGE.parent.glob("page_*.svg"), ROOT / "docs" / "decision.svg"], ids=lambda file: file.stem
)
def test_a_picture_has_colours_for_dark_pages(picture: Path) -> None:
    assert "@media (prefers-color-scheme: dark)" in picture.read_text()


@pytest.fixture
def bases(tmp_path: Path) -> list[Path]:
    """Two files of texts; the second has those of one language as those of another. First lines begin second ones."""
    paths = [tmp_path / "one.jsonl.gz", tmp_path / "two.jsonl.gz"]
    lines = gzip.decompress(ARTICLES.read_bytes()).splitlines()
    rows = {row["language"]: row["articles"] for row in map(json.loads, lines)}
    for path, languages in zip(paths, ({"en": "en", "ja": "ja"}, {"en-GB": "en"}), strict=True):
        with gzip.open(path, "wt", encoding="utf-8") as file:
            for language, source in languages.items():
                for text in rows[source]:
                    file.write(json.dumps({"lang": language, "text": f"{text[:40]}\n{text}"}) + "\n")
    return paths


def made_of(bases: list[Path], out: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> list[Collection]:
    monkeypatch.setattr(sys, "argv", ["short_texts", *map(str, bases), "--out", str(out), "--seed", str(seed)])
    short_texts.main()
    return [read_collection(out / name) for name in ("heads", "teasers")]


def test_short_texts_depend_on_the_seed_and_not_on_the_order_of_files(
    bases: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = made_of(bases, tmp_path / "a", 1, monkeypatch), made_of(bases[::-1], tmp_path / "b", 1, monkeypatch)
    assert [each.texts for each in one] == [each.texts for each in other]
    assert [_labelled(each) for each in one] == [_labelled(each) for each in other]
    assert one[0].texts != made_of(bases, tmp_path / "c", 2, monkeypatch)[0].texts


def test_short_texts_are_near_duplicates_of_their_own_copies_only(
    bases: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for collection in made_of(bases, tmp_path, 1, monkeypatch):
        labelled = _labelled(collection)
        assert {pair[2:] for pair in labelled} == {(1, "passed_on"), (0, "nearest_other")}
        family: dict[int, set[int]] = {place: {place} for place in range(len(collection.texts))}
        for a, b, label, _ in labelled:
            assert collection.languages[a] == collection.languages[b]
            for member in (a, b) if label else ():
                family[member] |= {a, b}
        assert all((family[a] == family[b]) == bool(label) for a, b, label, _ in labelled)


def _labelled(collection: Collection) -> list[tuple[int, int, int, str]]:
    pairs = collection.pairs
    assert pairs is not None
    columns = (pairs.first, pairs.second, pairs.label, pairs.kind)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def chapter(*numbers: int) -> str:
    """A chapter of paragraphs of 50 words, each paragraph made from a number."""
    return "\n\n".join(
        " ".join(f"w{random.Random(f'{number} {i}').randrange(10**6)}" for i in range(50)) for number in numbers
    )


def test_versions_of_a_chapter_are_different_if_each_has_a_page_and_a_fifth_of_its_own() -> None:
    old = chapter(*range(24))
    assert by_paragraphs(old, chapter(*range(24))) == (1, "revised")
    assert by_paragraphs(old, old.replace("w1", "w2")) == (1, "revised")
    assert by_paragraphs(old, chapter(*range(30))) == (1, "revised")
    assert by_paragraphs(old, chapter(*range(60))) == (-1, "extended")
    assert by_paragraphs(old, chapter(*range(20), *range(30, 34))) == (-1, "changed")
    assert by_paragraphs(old, chapter(*range(16), *range(30, 38))) == (0, "other_edition")


def test_copies_of_long_documents_are_near_duplicates_and_editions_are_not() -> None:
    works = [[chapter(*range(start, start + 12)) for start in (100 * work, 100 * work + 5)] for work in range(8)]
    made = collect(works, different, random.Random(1))
    kinds = {"framed", "scanned", "proofread", "cut", "reordered", "twice", "both_copied"}
    assert {kind for *_, label, kind in made.pairs if label == 1} <= kinds
    assert {kind for *_, label, kind in made.pairs if label == 0} == {"other_edition", "copies_of_editions"}
    again = collect(works, different, random.Random(1))
    assert (again.documents, again.pairs) == (made.documents, made.pairs)


def test_the_texts_of_twelve_languages_differ_and_belong_to_one_story_or_form_each() -> None:
    made = json.loads(gzip.decompress(TWELVE_LANGUAGES.read_bytes()))
    members = [one["copies"] for one in made["stories"]] + [one["fillings"] for one in made["forms"]]
    texts = [text for group in members for text in group]
    assert (len(made["stories"]), len(made["forms"]), len(texts), len(set(texts))) == (120, 101, 3606, 3606)
    assert len({one["language"] for one in made["stories"]}) == 12
