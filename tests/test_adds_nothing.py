"""What is hidden adds nothing: texts that share much with another one and say something else are shown."""

from __future__ import annotations

import random

import numpy as np
import pytest

import ndd_search as ndd

EMPLOYER = (
    "Harbour Soft is an equal opportunity employer. We welcome applications from all people whatever their age, "
    "origin, faith, or way of life. We offer thirty days of leave, a bicycle, a canteen with fresh food, flexible "
    "hours, and two days a week at home. Our offices lie in the old harbour, five minutes from the station. Please "
    "send your letter and certificates by mail to the address below, and tell us when you could begin and what you "
    "would like to earn."
)
PARTS = ["ba", "be", "di", "do", "ku", "la", "lo", "ma", "mi", "no", "nu", "ra", "ro", "sa", "se", "ti", "to", "tu"]


def prose(draw: random.Random, words: int) -> str:
    """Words of one to three syllables, so that texts share some."""
    return " ".join("".join(draw.choices(PARTS, k=draw.choice((2, 2, 3)))) for _ in range(words)).capitalize() + "."


def hidden(texts: list[str], watched: int) -> int:
    """Return how many of the first `watched` texts of a collection are hidden under another one of these."""
    groups = ndd.Corpus.read([{"id": str(at), "text": text} for at, text in enumerate(texts)], text="text").groups()
    return watched - len(np.unique(groups.leader[:watched]))


@pytest.mark.parametrize(("documents", "adverts"), [(100, 6), (300, 12), (2000, 20)])
@pytest.mark.parametrize("own", [25, 40])
def test_adverts_of_one_employer_are_shown(documents: int, adverts: int, own: int) -> None:
    draw = random.Random(5)
    texts = [f"{prose(draw, own)} {EMPLOYER}" for _ in range(adverts)]
    texts += [prose(draw, own + 80) for _ in range(documents - adverts)]
    assert hidden(texts, adverts) == 0


def test_an_update_that_is_more_than_twice_as_long_is_shown_wherever_it_ranks() -> None:
    draw = random.Random(1)
    lost = 0
    for _ in range(20):
        words = prose(draw, 40).split()
        update = " ".join([*words[:20], "changed", *words[21:]]) + " " + prose(draw, 60)
        others = [prose(draw, 40) for _ in range(60)]
        lost += update not in ndd.collapse([" ".join(words), *others, update], size=70).hits
    assert lost == 0  # 20 before more than half of a text counted as another one


def test_short_operations_that_differ_in_what_is_done_are_shown() -> None:
    named = "account alias", "support case", "table version", "budget notification", "hosted zone", "route table"
    operations = [
        f"{done} the {what} of your organization" for what in named for done in ("Creates", "Deletes", "Lists")
    ]
    assert ndd.collapse(operations, size=50).hits == operations


def test_an_explanation_says_how_much_a_hit_adds() -> None:
    first, more, little = (prose(random.Random(seed), words) for seed, words in ((2, 40), (3, 60), (4, 6)))
    page = ndd.collapse([first, f"{first} {more}", f"{first} {little}"], size=9)
    assert "% of its text, standard error 0.06), but more than half of one is not in the other" in str(page.explain(1))
    assert page.explain(1).adds == pytest.approx(60 / 98, abs=0.1)
    assert page.explain(2).leader == 0
    assert page.explain(2).adds == pytest.approx(6 / 44, abs=0.01)


BRIEF = "ministers agreed on Monday to a plan that nobody in the towns along the river had read before the vote"
STEP = "To print the {} of the office, open the menu of the machine, choose the line of that name, and wait. " * 4
THAI = "รัฐมนตรีเห็นชอบแผนการสร้างสะพานใหม่ข้ามแม่น้ำเมื่อวันจันทร์ หลังจากประชาชนรอคอยมานานหลายปี"
JAPANESE = "政府は月曜日、川に新しい橋を架ける計画を承認した。住民は長年この橋を待ち望んでいた。"
BRIDGE = "Bakanlar pazartesi günü nehir üzerine yeni bir köprü yapılması planını onayladı. İnşaat seneye başlayacak."
BUDGET = "Belediye meclisi cuma günü gelecek yılın bütçesini oy birliğiyle kabul etti. Okullar için para artırıldı."
NAMES = [f"{first} {last}" for first in ("Anna", "Ben", "Carl") for last in ("Smith", "Jones", "Green", "Stone")]
MOVED = ["New bridge opened by mayor on Friday", "On Friday mayor opened new bridge"]


@pytest.mark.parametrize(
    ("texts", "number"),
    [
        ([f"(LEAD) {BRIEF}\n(LEAD) {BRIEF}", f"(2nd LD) {BRIEF}\n(2nd LD) {BRIEF}"], 1),
        ([f"7 hours ago {BRIEF}", f"{BRIEF} | City Post"], 1),  # no known edge, but nothing that fills a slot
        (  # the name of an event
            [
                "@a: 90 dead in Brazil nightclub fire https://a.example/1",
                "Three held over deadly Brazil nightclub fire @b",
            ],
            2,
        ),
        (MOVED, 2),
        (["\n".join(NAMES), "\n".join(NAMES[::-1])], 2),
        ([JAPANESE, JAPANESE.replace("月", "火")], 1),
        ([f"{BRIDGE}\n{THAI}", f"{BUDGET}\n{THAI}"], 1),  # each character of Thai counts as a word
    ],
)
def test_so_many_of_some_short_texts_are_shown(texts: list[str], number: int) -> None:
    assert len(ndd.collapse(texts, size=50)) == number


def test_versions_of_a_templated_page_are_copies_and_other_pages_of_the_template_are_not() -> None:
    pages = [STEP.format(*4 * [noun]) for noun in ("letters", "tables", "notes", "pictures", "lists", "drafts")]
    assert len(ndd.collapse([*pages, *(page.replace("menu", "list", 1) for page in pages)], size=50)) == 6


def test_another_recipe_joins_what_stands_in_another_order() -> None:
    assert len(ndd.collapse(MOVED, preset="messages")) == 1
    assert len(ndd.collapse(["\n".join(NAMES), "\n".join(NAMES[::-1])], recipe=ndd.Recipe.lines())) == 1
