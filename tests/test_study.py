"""The study of methods: its figures against slow reference definitions, its methods against their documentation."""

import gzip
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.study.__main__ import main
from benchmarks.study.collection import read_collection
from benchmarks.study.measures import best_common_bar, curve, quality
from benchmarks.study.methods import Method, rows_of_sets, shared_sums
from benchmarks.study.pages import harms
from benchmarks.study.report import page
from benchmarks.study.study import all_methods, halved_and_doubled, study
from benchmarks.study.tables import tables
from ndd_search.core.matching.decision import Decision
from ndd_search.core.matching.frequency_table import FrequencyTable
from ndd_search.core.matching.similar_pairs import overlapping_pairs, overlaps
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.recipe import Recipe
from ndd_search.errors import InvalidDocument

WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "r", "ta", "lo", "mi")]
FRAME = "home news world politics business opinion sport culture science weather video photos local jobs archive"


def text(seed: int, words: int = 120) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty texts in one frame, each with a copy that has another end, three queries and a text by itself."""
    made = tmp_path_factory.mktemp("labelled") / "news"
    texts = {f"t{i}": f"{FRAME} {text(i)}" for i in range(40)}
    texts |= {f"c{i}": f"{text(i)} {text(100 + i, 20)}" for i in range(40)}
    texts["alone"] = text(99)
    documents = [{"id": name, "text": one, "lang": "en" if name[0] == "t" else "xx"} for name, one in texts.items()]
    pairs = [{"a": f"t{i}", "b": f"c{i}", "label": 1, "kind": "copy"} for i in range(40)]
    pairs += [{"a": f"t{i}", "b": f"t{i + 1}", "label": 0, "kind": "frame"} for i in range(39)]
    pairs += [{"a": "alone", "b": "c1", "label": -1, "kind": "doubtful"}]
    results = [[f"t{i}", f"c{i}", f"t{i + 1}", "alone"] for i in (0, 5, 9)]
    write(made / "documents.jsonl.gz", documents)
    write(made / "pairs.jsonl", pairs)
    write(made / "clusters.jsonl.gz", [{"cluster": i, "members": [f"t{i}", f"c{i}"]} for i in range(40)])
    write(made / "results.jsonl", [{"qid": i, "results": [{"id": n} for n in row]} for i, row in enumerate(results)])
    return made


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)


scored = st.lists(
    st.tuples(st.sampled_from([0, 0.1, 0.25, 0.5, 0.5, 0.75, 1]), st.sampled_from([-1, 0, 1])), max_size=25
)


@given(scored)
def test_the_curve_gives_at_every_bar_what_counting_gives(rows: list[tuple[float, int]]) -> None:
    scores, labels = np.array([row[0] for row in rows], float), np.array([row[1] for row in rows], np.int64)
    made = curve(scores, labels)
    for bar in (0.0, 0.1, 0.3, 0.5, 0.9, 1.0):
        found = sum(score >= bar and label == 1 for score, label in rows)
        called = sum(score >= bar and label >= 0 for score, label in rows)
        there = sum(label == 1 for _, label in rows)
        if there:
            assert made.f1_at(np.array([bar]))[0] == pytest.approx(2 * found / (called + there))
            assert quality(scores >= bar, labels).recall == found / there
            assert quality(scores >= bar, labels).precision == (found / called if called else 1)
            assert made.best[0] >= made.f1_at(np.array([bar]))[0] - 1e-9


def test_average_precision_is_one_when_all_duplicates_stand_first() -> None:
    assert curve(np.array([0.9, 0.8, 0.2]), np.array([1, 1, 0])).average_precision == 1
    assert curve(np.array([0.9, 0.8, 0.2]), np.array([0, 1, 1])).average_precision == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_the_common_bar_is_the_best_on_average() -> None:
    low = curve(np.array([0.3, 0.2]), np.array([1, 0]))
    high = curve(np.array([0.9, 0.25]), np.array([1, 0]))
    assert 0.25 < best_common_bar([low, high]) <= 0.3


values = st.lists(st.sets(st.integers(0, 60), max_size=20), min_size=2, max_size=8)


@given(values, st.integers(1, 12))
def test_given_pairs_share_what_the_page_check_finds(sets: list[set[int]], k: int) -> None:
    rows = rows_of([sorted(one)[:k] for one in sets], k)
    table = FrequencyTable(30, np.arange(0, 60, 3, dtype=np.int32), np.arange(5.0, 25), Recipe().id)
    for frequency_table in (None, table):
        pairs, expected = overlapping_pairs(rows, Decision(None, 3, frequency_table), 0.01)
        found = overlaps(rows, pairs.first, pairs.second, frequency_table)
        for name in vars(expected):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-4), name


def test_shared_sums_counts_and_weighs_what_sets_share() -> None:
    rows = rows_of_sets([{1, 5, 9}, {5, 9, 12}, set()])
    first, second = np.array([0, 1, 0]), np.array([1, 0, 2])
    assert shared_sums(rows, first, second).tolist() == [2, 2, 0]
    assert shared_sums(rows, first, second, rows.values.astype(float)).tolist() == [14, 14, 0]


@pytest.mark.parametrize("name", list(all_methods()))
def test_every_method_holds_a_text_for_its_own_copy_and_a_strange_one_for_different(name: str) -> None:
    method = all_methods()[name]
    texts = [f"{text(i)}. {text(50 + i)}." for i in range(12)]
    prepared = method.prepare([*texts, texts[0]])
    scores = prepared.scores(np.array([0, 0]), np.array([12, 5]))
    assert 0 <= scores[1] < method.bar <= scores[0] <= 1
    assert prepared.bytes > 0


@pytest.mark.parametrize("name", ["exact", "min-k", "broder", "min-hash"])
def test_the_estimates_of_resemblance_are_near_the_resemblance(name: str) -> None:
    base = text(1, 400)
    texts = [base, base[: len(base) // 2] + text(2, 200), base + text(3, 100)]
    sets = [set(zip(words, words[1:], words[2:], strict=False)) for words in (one.split() for one in texts)]
    truth = [len(sets[i] & sets[j]) / len(sets[i] | sets[j]) for i, j in pairwise((0, 1, 2))]
    scores = all_methods()[name].prepare(texts).scores(np.array([0, 1]), np.array([1, 2]))
    assert scores == pytest.approx(truth, abs=1e-9 if name == "exact" else 0.2)


def test_a_folder_is_read_with_its_labels_clusters_and_pages(folder: Path) -> None:
    collection = read_collection(folder)
    assert (collection.name, len(collection.texts), len(collection.pages)) == ("news", 81, 3)
    assert collection.cluster[collection.ids.index("t7")] == collection.cluster[collection.ids.index("c7")]
    assert collection.unscored() == {(collection.ids.index("c1"), collection.ids.index("alone"))}
    assert collection.pairs is not None
    assert np.bincount(collection.pairs.label + 1).tolist() == [1, 39, 40]


@pytest.mark.parametrize(
    ("name", "line", "problem"),
    [
        ("documents", '{"id": "a"}\n{"id": "a"}', "two documents have the same id"),
        ("documents", '{"id": "a"', "line 1: it is not valid JSON"),
        ("pairs", '{"a": "t1", "b": "nobody", "label": 1}', "no document has the id 'nobody'"),
        ("pairs", '{"a": "t1", "b": "t2", "label": 2}', "a label is 2, not 1, 0 or -1"),
        ("pairs", '{"a": "t1", "b": "t2", "label": "yes"}', "a label is 'yes', not 1, 0 or -1"),
        ("pairs", '{"a": "t1", "b": "t2", "label": NaN}', "a label is nan"),
        ("pairs", '{"a": "t1", "b": "t2", "label": 1}\n{"a": "t1"}', "line 2: it is not an object with a, b, label"),
        ("pairs", "[" * 100_000, "line 1: it is not valid JSON"),
        (
            "pairs",
            '{"a": "t1", "b": "t2", "label": 1}\n{"a": "t2", "b": "t1", "label": 0}',
            r"pairs\.jsonl, line 2: the pair 't2' and 't1' has two labels",
        ),
        ("pairs", '{"a": "t1", "b": "t1", "label": 1}', "line 1: the pair 't1' and 't1' is one document"),
        ("clusters", '{"members": ["t1", "t2"]}\n{"members": ["t2"]}', "'t2' is in two clusters"),
        ("documents", '["t1"]', "line 1: it is not an object with id"),
        ("documents", '{"text": "x"}', "line 1: it is not an object with id"),
        ("clusters", "{}", "line 1: it is not an object with members"),
        ("results", "{}", "line 1: it is not an object with results"),
        ("documents", "", "documents: it is empty"),
        ("clusters", '{"members": 1}', "members are 1, not a list"),
        ("results", '{"results": ["t1"]}', "results are .*, not objects with id and rank"),
        ("results", '{"results": [{"rank": 1}]}', "results are .*, not objects with id and rank"),
        (
            "results",
            '{"results": [{"id": "t1", "rank": 1}, {"id": "t2", "rank": "2"}]}',
            "not objects with id and rank",
        ),
        ("results", '{"results": 1}', "results are 1, not"),
        ("pairs", '{"a": "\udcff"}', r"pairs\.jsonl: it is not UTF-8"),
    ],
)
def test_a_folder_that_cannot_be_taken_is_refused(tmp_path: Path, name: str, line: str, problem: str) -> None:
    (tmp_path / "documents.jsonl").write_text('{"id": "t1", "text": "x"}\n{"id": "t2", "text": "y"}')
    (tmp_path / f"{name}.jsonl").write_text(line, errors="surrogateescape")
    with pytest.raises(InvalidDocument, match=problem):
        read_collection(tmp_path)


@pytest.mark.parametrize(
    "damaged",
    [b"", b"no gzip", gzip.compress(b"{}" * 99)[:20], gzip.compress(b"{}")[:9] + b"XX"],
    ids=["empty", "of another kind", "cut off", "with another end"],
)
def test_a_damaged_file_is_named(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "documents.jsonl.gz").write_bytes(damaged)
    with pytest.raises(InvalidDocument, match=r"documents(\.jsonl\.gz)?: it is"):
        read_collection(tmp_path)


def test_a_folder_without_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"documents\.jsonl"):
        read_collection(tmp_path)


def test_pages_are_judged_by_the_two_harms_that_a_reader_meets(folder: Path) -> None:
    collection = read_collection(folder)
    nothing = harms(collection, lambda first, second: np.zeros(len(first), bool))
    everything = harms(collection, lambda first, second: np.ones(len(first), bool))
    right = harms(collection, lambda a, b: collection.cluster[a] == collection.cluster[b])
    assert (nothing.hidden, nothing.shown) == (0.0, 1.0)
    assert (everything.hidden, everything.shown) == (1.0, 0.0)
    assert (right.hidden, right.shown) == (0.0, 0.0)


def test_a_pair_that_two_lines_label_alike_counts_once(tmp_path: Path) -> None:
    write(tmp_path / "documents.jsonl", [{"id": name, "text": name} for name in "ab"])
    write(tmp_path / "pairs.jsonl", [{"a": "a", "b": "b", "label": 1}, {"a": "b", "b": "a", "label": 1}])
    pairs = read_collection(tmp_path).pairs
    assert pairs is not None
    assert len(pairs) == 1


def test_a_text_under_a_doubtful_partner_or_of_which_a_copy_is_shown_is_not_lost(tmp_path: Path) -> None:
    write(tmp_path / "documents.jsonl", [{"id": name, "text": name} for name in "abcd"])
    labels = [("a", "b", -1), ("a", "c", 0), ("c", "d", 1)]
    write(tmp_path / "pairs.jsonl", [{"a": one, "b": other, "label": label} for one, other, label in labels])
    write(tmp_path / "results.jsonl", [{"qid": 1, "results": [{"id": name} for name in "abdc"]}])
    collection = read_collection(tmp_path)

    def under_a(*names: str) -> bool:
        places = [collection.ids.index(name) for name in names]
        return bool(harms(collection, lambda first, second: (first == 0) & np.isin(second, places)).hidden)

    assert (under_a("b"), under_a("c"), under_a("c", "d")) == (False, False, True)


def test_the_default_tells_copies_from_frames_where_no_plain_bar_does_and_every_table_says_so(folder: Path) -> None:
    collection = read_collection(folder)
    methods = [all_methods()[name] for name in ("auto", "min-k")]
    found = study([collection], methods, lambda step: None)
    auto, plain = found.results
    assert auto.quality.f1 == 1.0
    assert auto.harms is not None
    assert (auto.harms.hidden, auto.harms.shown) == (0, 0)
    assert [share.called for share in auto.kinds] == [1.0, 0.0, 0.0]
    made = dict(tables(found))
    assert "1.000 (1.00/1.00)" in made["F1 at the default bar"]
    assert "news, frame (0, 39)" in made["Share called near-duplicates, by kind of pair"]
    assert plain.quality.f1 <= auto.quality.f1


def test_leaving_a_collection_out_takes_the_bar_of_the_others(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "documents.jsonl", [{"id": "a", "text": text(1)}, {"id": "b", "text": text(1)}])
    write(tmp_path / "pairs.jsonl", [{"a": "a", "b": "b", "label": 1}])
    found = study([read_collection(folder), read_collection(tmp_path)], [all_methods()["exact"]], lambda step: None)
    method = found.methods[0]
    bars = [best_common_bar([result.curve]) for result in found.of(method)[::-1]]
    expected = [float(one.curve.f1_at(np.array([bar]))[0]) for one, bar in zip(found.of(method), bars, strict=True)]
    assert found.left_out(method) == expected


def test_without_a_collection_the_method_that_is_best_on_the_others_is_chosen(folder: Path, tmp_path: Path) -> None:
    write(
        tmp_path / "documents.jsonl",
        [
            {"id": "a", "text": text(1)},
            {"id": "b", "text": text(1) + " and a few more words that were not there before"},
        ],
    )
    write(tmp_path / "pairs.jsonl", [{"a": "a", "b": "b", "label": 1}])
    methods = [all_methods()[name] for name in ("identical", "auto")]
    found = study([read_collection(folder), read_collection(tmp_path)], methods, lambda step: None)
    chosen = [(method.name, result.collection.name) for method, result in found.best_elsewhere()]
    assert chosen == [("auto", "news"), ("auto", tmp_path.name)]


def test_each_constant_is_halved_and_doubled() -> None:
    names = [method.name for method in halved_and_doubled(Recipe())]
    assert names[:4] == ["least 0.12", "least 0.48", "asked 2", "asked 8"]
    assert names[10:12] == ["pages 0.166667", "pages 0.666667"]
    assert len(names) == 14
    assert all(isinstance(method, Method) for method in halved_and_doubled(Recipe()))


def test_the_command_prints_tables_and_writes_a_report_in_one_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.html"
    main([str(folder), "--methods", "auto,profile", "--report", str(report), "--quiet"])
    printed = capsys.readouterr().out
    assert "| auto | 0.24 | 1.000 (1.00/1.00) |" in printed
    html = report.read_text()
    assert html.count("<svg") == 3
    assert "src=" not in html
    assert "labelled different (frame)" in html


def test_without_labels_the_report_shows_a_histogram_and_pairs_near_the_bar(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "documents.jsonl", [{"id": str(i), "text": text(i // 2, 60 + i)} for i in range(20)])
    html = page(study([read_collection(tmp_path)], [], lambda step: None))
    assert "20 documents; 10 pairs resemble by 0.1 or more, 10 of them count" in html
    assert html.count("<div class=pair>") == 6


def test_an_unknown_method_is_named_with_those_that_are_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(folder), "--methods", "auto,minhash"])
    assert "unknown methods minhash: choose from auto, auto-128" in capsys.readouterr().err


@pytest.mark.parametrize("others", [["--methods", "auto"], ["--sensitivity"]])
def test_what_is_compared_is_named_once(folder: Path, others: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(folder), "--presets", *others])
    assert "not allowed with argument" in capsys.readouterr().err
