"""The tuner without I/O: effects of settings, questions, and what is recommended after answers."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.cli.tune import effects, facts, settings_of, verdict
from ndd_search.cli.tuning.compare_settings import (
    SETTINGS,
    FoundHit,
    Pages,
    Pair,
    ResultPage,
    Tuning,
    look_at,
    samples,
)
from ndd_search.cli.tuning.page_sources import FolderSource, read_queries
from ndd_search.core.matching.decision import PLAIN
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.text.printable import safe
from ndd_search.reports.side_by_side import side_by_side
from tests.collections import read
from tests.examples import ROOT

QUERIES = ["coral reefs and overfishing", "languages spoken by minorities", "earthquakes and volcanoes", "volcano"]
NOBODY = FoundHit("nobody", np.empty(0, np.int32), "", {})
NAMED = {"auto": 0, **{name: SETTINGS.index(bar) for name, bar in PLAIN.items()}}
Reader = Callable[[Pair], float]


def simulated(seed: int, count: int = 400) -> Pages:
    """Pages of pairs of any similarity, of which "auto" joins the more the more alike they are."""
    rng = np.random.default_rng(seed)
    similarity = rng.uniform(0.2, 1, count)
    joined = rng.random(count) < np.clip(1.5 * (similarity - 0.2), 0, 1)
    pairs = (
        Pair("q", NOBODY, NOBODY, alike, join, 1, f"{seed}-{place}".encode())
        for place, (alike, join) in enumerate(zip(similarity.tolist(), joined.tolist(), strict=True))
    )
    return Pages([], ndd.Recipe(), ndd.CollapseOptions(), tuple(pairs), [])


def joins(setting: float | str, pair: Pair) -> bool:
    return pair.joined if setting == "auto" else pair.similarity >= float(setting)


def means(setting: float | str, width: float = 0.03, slip: float = 0.05) -> Reader:
    """Return the probability of "yes" of a reader with a setting, uncertainty around its bar, and wrong answers."""

    def yes(pair: Pair) -> float:
        ahead = (1.0 if pair.joined else -1.0) if setting == "auto" else pair.similarity - float(setting)
        return slip + (1 - 2 * slip) / (1 + np.exp(-np.clip(ahead / width, -50, 50)))  # type: ignore[no-any-return]

    return yes


def interviewed(pages: Pages, reader: Reader, seed: int, most: int = 20) -> Tuning:
    rng, tuning = np.random.default_rng(seed), Tuning(pages)
    for _ in range(most):
        if (pair := tuning.question()) is None:
            break
        assert pair.key not in tuning.answers
        tuning = tuning.answered(pair.key, bool(rng.random() < reader(pair)))
    return tuning


def test_a_reader_who_is_of_one_mind_with_the_default_keeps_it_also_with_some_wrong_answers() -> None:
    found = [SETTINGS[interviewed(simulated(seed), means("auto"), seed).place] for seed in range(20)]
    assert found == ["auto"] * 20


@pytest.mark.parametrize("bar", [0.35, 0.6, 0.85])
def test_a_reader_who_means_a_bar_gets_one_near_it(bar: float) -> None:
    found = [SETTINGS[interviewed(simulated(seed), means(bar, 0.01, 0.0), seed).place] for seed in range(20)]
    assert found == pytest.approx([bar] * 20, abs=0.101)


def test_without_answers_the_default_is_recommended() -> None:
    assert Tuning(simulated(0)).place == 0
    assert "no pair has an answer yet" in verdict(Tuning(simulated(0)))[0]


def test_the_guide_shows_the_sentences_of_a_verdict() -> None:
    """With other numbers: the indented lines below "At the end it recommends a setting"."""
    page = (ROOT / "docs" / "tuning.md").read_text().partition("At the end it recommends")[2]
    sample = re.findall(r"^    (.+)$", page, re.MULTILINE)
    given = verdict(interviewed(simulated(1), means(0.6, 0.01, 0.0), 1))
    plain = [[re.sub(r"[\d.]+(?=\D)", "#", line) for line in lines] for lines in (sample[: len(given)], given)]
    assert plain[0] == plain[1]


def test_questions_are_about_pairs_that_settings_decide_differently_and_don_t_know_leads_to_another() -> None:
    tuning, asked = Tuning(simulated(3)), []
    for _ in range(10):
        pair = tuning.question()
        assert pair is not None
        assert pair.similarity < 1 or not pair.joined
        tuning = tuning.answered(pair.key, None)
        asked.append(pair)
    assert len({pair.key for pair in asked}) == 10
    assert max(pair.similarity for pair in asked) - min(pair.similarity for pair in asked) > 0.6
    assert ([tuning.count(answer) for answer in (True, False, None)], tuning.place) == ([0, 0, 10], 0)


def test_every_pair_is_asked_about_once_and_answers_to_other_pages_count_for_nothing() -> None:
    tuning = interviewed(simulated(4, count=30), means(0.6), 4, most=100)
    assert (len(tuning.answers), tuning.question()) == (30, None)
    other = Tuning(tuning.pages, {**tuning.answers, b"somewhere else": False})
    assert facts(other) == facts(tuning)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> ndd.Index:
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    packed = (ROOT / "examples" / "factbook" / "factbook.jsonl.gz").read_bytes()
    index = ndd.Index.open(tmp_path_factory.mktemp("tuning") / "demo", text=["title", "text"])
    index.add(json.loads(line) for line in gzip.decompress(packed).splitlines())
    return index


def test_each_setting_hides_what_a_search_with_it_hides(demo: ndd.Index) -> None:
    source = FolderSource(demo)
    pages = look_at(
        [source.search(query, 100) for query in QUERIES], demo.recipe, demo.frequency_table, ndd.CollapseOptions()
    )
    assert pages.hits > 300
    for place in (0, 1, 5, *NAMED.values()):
        hides = [
            demo.search(query, size=100, window=100, max_window=100, min_similarity=SETTINGS[place])["ndd"]["hidden"]
            for query in QUERIES
        ]
        assert pages.hides[place] == sum(hides)
        assert pages.touches[place] == sum(hidden > 0 for hidden in hides)
    assert 0 < pages.hides[NAMED["high"]] < pages.hides[NAMED["moderate"]]
    similar = sum(pair.count for pair in pages.pairs)
    assert similar >= pages.hides[1]  # more, where the hit above is hidden itself


@pytest.mark.parametrize(("name", "least"), [("xquad_pages", 0.97), ("advisories", 0.98)])
def test_with_the_labels_of_a_collection_as_answers_what_is_recommended_is_right(
    tmp_path: Path, name: str, least: float
) -> None:
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    clusters = {id: one["cluster"] for one in read(name, "clusters") for id in one["members"]}
    labels = {frozenset((one["a"], one["b"])): one["label"] for one in read(name, "pairs")}

    def yes(pair: Pair) -> float | None:
        ids = pair.first.id, pair.second.id
        label = labels.get(frozenset(ids), int(clusters.get(ids[0], ids[0]) == clusters.get(ids[1], ids[1])))
        return None if label < 0 else float(label)

    with ndd.Index.open(tmp_path / "index", text=["title", "text"]) as index:
        index.add(read(name))
        queries = read(name, "queries")[1::7]
        source = FolderSource(index)
        found = [source.search(one["query"], 50) for one in queries]
        pages = look_at(found, index.recipe, index.frequency_table, ndd.CollapseOptions())
    tuning = Tuning(pages)
    for _ in range(20):
        pair = tuning.question()
        assert pair is not None
        tuning = tuning.answered(pair.key, None if yes(pair) is None else bool(yes(pair)))
    scored = [pair for pair in pages.pairs if yes(pair) is not None]
    weights = [pair.count for pair in scored]
    truly = [
        np.average([joins(setting, pair) == yes(pair) for pair in scored], weights=weights)
        for setting in ("auto", SETTINGS[tuning.place])
    ]
    assert truly[1] >= max(least, truly[0] - 0.01)


def test_the_guards_of_the_options_hold_for_every_setting() -> None:
    texts = ["one steel works of the north closes for good after a hundred and ten years"] * 2
    hits = [FoundHit(str(i), ndd.sketch(text), text, {"price": i}, lambda i=i: i) for i, text in enumerate(texts)]  # type: ignore[misc]
    short = [FoundHit(word, ndd.sketch(f"red {word} shoes"), word, {}) for word in ("new", "old")]
    pages = [ResultPage("steel", hits), ResultPage("shoes", short), ResultPage("nothing", [])]
    free = look_at(pages, ndd.Recipe(), None, ndd.CollapseOptions())
    assert free.hides == [1] * len(SETTINGS)
    assert free.touches == [1] * len(SETTINGS)
    for guards in ({"guards": ("same:price",)}, {"guards": ["numbers"]}):
        bound = look_at(pages, ndd.Recipe(), None, ndd.CollapseOptions(**guards))
        assert (bound.hides, bound.pairs) == ([0] * len(SETTINGS), ())
    assert "every setting gives the same pages" in verdict(Tuning(bound))[0]
    assert Tuning(bound).question() is None


def test_a_hit_counts_once_however_many_it_resembles_and_a_pair_of_sketches_once_on_all_pages() -> None:
    story = " ".join(f"word{i}" for i in range(60))
    hits = [FoundHit(str(i), ndd.sketch(f"{story} end {i}"), "", {}) for i in range(5)]
    frequency_table = count_document_frequency([hit.sketch for hit in hits], ndd.Recipe())
    for count in (1, 3):
        found = look_at([ResultPage("q", hits)] * count, ndd.Recipe(), frequency_table, ndd.CollapseOptions())
        assert len(found.pairs) == 4
        assert sum(pair.count for pair in found.pairs) == 4 * count


def test_the_summary_shows_the_names_the_default_and_what_is_recommended() -> None:
    tuning = interviewed(simulated(1), means(0.35, 0.01, 0.0), 1)
    lines = effects(tuning)
    assert [line["setting"] for line in lines if line["recommended"]] == [SETTINGS[tuning.place]]
    assert {line["name"] for line in lines} == {"", "identical", "high", "moderate"}
    assert lines[0]["setting"] == "auto"
    stored = settings_of(tuning, {"on": "somewhere"})
    assert stored.options.min_similarity == SETTINGS[tuning.place]
    assert stored.tuned["on"] == "somewhere"
    json.dumps(facts(tuning))


def test_samples_are_spread_and_each_is_shown_once() -> None:
    chosen = samples(simulated(2), 6)
    alike = [pair.similarity for pair in chosen]
    assert alike == sorted(alike, reverse=True)
    assert len({pair.key for pair in chosen}) == 6
    assert (alike[0], alike[-1]) == (pytest.approx(0.95, abs=0.02), pytest.approx(0.3, abs=0.02))  # type: ignore[comparison-overlap]


def test_queries_are_words_or_search_bodies_each_once_and_broken_ones_are_told() -> None:
    lines = ["steel works", "", '{"query": "in words"}', '{"query": {"match_all": {}}}', "{broken", " steel works\n"]
    told: list[str] = []
    assert read_queries(lines, told.append) == ["steel works", "in words", {"query": {"match_all": {}}}]
    assert len(told) == 1
    assert told[0].startswith("line 5 is left out, it is not valid JSON")


def marked(first: str, second: str) -> tuple[list[str], list[str]]:
    return tuple([piece.text.strip() for piece in side if piece.marked] for side in side_by_side(first, second))  # type: ignore[return-value]


def test_what_only_one_text_has_is_marked_and_punctuation_and_case_are_not() -> None:
    assert marked("Steel: works close.", "STEEL works open!") == (["close"], ["open"])
    assert marked("the same words", "The same, words") == ([], [])
    assert marked("北京的天气很好", "北京天气不好") == (["的", "很"], ["不"])


def test_long_texts_are_shortened_where_they_are_alike_and_what_differs_is_still_there() -> None:
    story = [f"word{i}" for i in range(400)]
    first, second = side_by_side(" ".join(story), " ".join([*story[:200], "another", *story[200:]]))
    assert [piece.text for piece in second if piece.marked] == ["another"]
    assert sum(len(piece.text) for piece in first) < 600


@given(st.text(), st.text())
def test_any_two_texts_are_shown_without_anything_that_acts_on_a_terminal(first: str, second: str) -> None:
    for side in side_by_side(first, second):
        shown = "".join(piece.text for piece in side)
        assert all(one.isprintable() or one in "\u200c\u200d" for one in shown)
    assert "\x1b" not in safe(first)
