"""Settings by pattern of index names: which rule wins, and what a search over several indexes gets."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.presets import Preset
from ndd_search.errors import InvalidSettings
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.index_rules import IndexRules
from ndd_search.search.rest.read_request import Request, read_search
from ndd_search.search.settings_file import preset, read_preset, write_preset
from ndd_search.search.writing.sketch_written_requests import SketchedWrites

DEFAULTS = ndd.CollapseOptions()
PATTERNS = st.text("ab*", min_size=1, max_size=4)
NAMES = ["".join(letters) for length in range(1, 5) for letters in product("ab", repeat=length)]


def rules_of(patterns: list[str]) -> IndexRules:
    return IndexRules.of({pattern: {"window": 50 + number} for number, pattern in enumerate(patterns)}, DEFAULTS)


@given(patterns=st.lists(PATTERNS, max_size=4, unique=True), targets=st.lists(PATTERNS, min_size=1, max_size=2))
def test_no_index_of_a_search_has_a_rule_that_the_search_does_not_know_of(
    patterns: list[str], targets: list[str]
) -> None:
    rules = rules_of(patterns)
    found = rules.of_target("/" + ",".join(targets))
    for name in NAMES:
        if any(IndexRules.of({target: {}}, DEFAULTS).pattern_of(name) for target in targets):
            pattern = rules.pattern_of(name)
            assert (rules.others if pattern is None else rules.rules[pattern]) in found


@pytest.mark.parametrize(
    ("target", "wins"),
    [
        ("/news-2024", ["news-2024"]),
        ("/news-2025", ["news-*"]),
        ("/NEWS", ["*"]),
        ("/news-2025,news-20*x,-news-2024", ["news-*"]),
        ("/news-*", ["news-*", "news-2024"]),
        ("/%3Cnews-%7Bnow%2Fd%7D%3E", ["news-*", "news-2024"]),
        ("/blogs*", ["*"]),
        ("", ["*", "news-*", "news-2024"]),
        ("/_all", ["*", "news-*", "news-2024"]),
    ],
)
def test_the_most_specific_pattern_wins(target: str, wins: list[str]) -> None:
    rules = rules_of(["*", "news-*", "news-2024"])
    found = rules.of_target(target)
    assert [name for name, rule in rules.rules.items() if rule in found] == wins
    assert len(found) == len(wins)


SETTINGS: dict[str, Any] = {
    "news-*": {"window": 50, "recipe": "w5-k64-v4", "field": "prints"},
    "news-old": {"enabled": False},
    "news-x": {"window": 50, "recipe": "w5-k64-v4", "field": "prints"},
}


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/news-1/_search", {}, (50, "w5-k64-v4", "prints")),
        ("/news-1,news-x/_search", {}, (50, "w5-k64-v4", "prints")),  # two rules that say the same
        ("/blogs/_search", {}, (100, "w3-k64-v4", "ndd")),
        ("/news-old/_search", {}, None),
        ("/news-1,blogs/_search", {}, None),
        ("/_search", {}, None),
        ("/news-old/_search", {"ndd": True}, (100, "w3-k64-v4", "ndd")),  # what a search asks for itself counts
        ("/news-1,blogs/_search", {"ndd": {"window": 70}}, (100, "w3-k64-v4", "ndd")),
    ],
)
def test_a_search_has_the_settings_of_its_indexes(path: str, body: dict[str, Any], expected: Any) -> None:
    search = read_search(Request("POST", path, {}, {}, {"query": {"match": {"body": "x"}}, **body}))
    assert search is not None
    found = settings_of(indexes=SETTINGS).of_target(path, bool(search.changes))
    assert (found and (found.options.window, found.recipe.id, found.sketch_field.name)) == expected


def test_documents_get_the_sketch_that_the_rule_of_their_index_names() -> None:
    writes: SketchedWrites = settings_of(
        indexes={"*": {"text": ["body"]}, "news-*": {**SETTINGS["news-*"], "text": "body"}, "news-old": {"keys": 8}}
    ).writes
    text = "some words of one text that is long enough"
    for index, field, recipe in (("news-1", "prints", "w5-k64-v4"), ("blogs", "ndd", "w3-k64-v4")):
        written = writes(Request("PUT", f"/{index}/_doc/1", {}, {}, {"body": text}))
        assert written.body[field]["recipe"] == recipe
        assert set(written.body) == {"body", field, f"{field}_keys"}
    untouched = Request("PUT", "/news-old/_doc/1", {}, {}, {"body": text})
    assert writes(untouched) is untouched, "the rule of its index names no text"


def test_a_rule_takes_a_preset_for_what_is_written_and_searched() -> None:
    """What the preset changes: its recipe, its guards, and the numbers that they read. The rule itself counts more."""
    rules: dict[str, dict[str, Any]] = {
        "posts": {"text": "body", "preset": "messages"},
        "shop": {"text": "body", "preset": "products", "window": 9},
    }
    settings = settings_of(indexes=rules, window=50, recipe="w5-k64-v4")
    offer = {"body": "a power bank with 10,000 mAh and two outputs"}
    post, item = (settings.writes(Request("PUT", f"/{name}/_doc/1", {}, {}, offer)).body["ndd"] for name in rules)
    assert (post["recipe"], "numbers" in post) == (ndd.preset("messages").recipe.id, False)  # type: ignore[union-attr]
    assert (item["recipe"], "numbers" in item) == ("w5-k64-v4", True)
    found = settings.of_target("/shop/_search", asked=False)
    assert found is not None
    assert (found.options.same_numbers, found.options.window) == (True, 9)
    posts = settings.of_target("/posts/_search", asked=False)
    assert posts is not None
    assert (posts.options.window, posts.recipe.id) == (50, post["recipe"])
    with pytest.raises(ValueError, match=r"indexes 'shop': there is no preset 'product' \(did you mean products\?\)"):
        settings_of(indexes={"shop": {"preset": "product"}})


def test_indexes_that_differ_only_in_what_is_written_are_searched_together() -> None:
    rules: dict[str, Any] = {"news*": {"text": ["body"]}, "shop": {"text": ["name"], "keys": 8}, "blogs": {"window": 9}}
    settings = settings_of(indexes=rules)
    assert settings.of_target("/news,shop,other/_search", False) is settings
    assert settings.of_target("/news,blogs/_search", False) is None


def test_a_settings_file_holds_rules_and_those_of_the_program_come_first(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    write_preset(file, Preset(indexes=SETTINGS))
    assert read_preset(file).indexes == SETTINGS
    settings = settings_of(preset=preset(file), indexes={"news-*": {"window": 60}})
    assert settings.indexes.rules["news-*"].options.window == 60
    assert settings.indexes.rules["news-old"].enabled is False


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"news": 3}, "indexes 'news': settings by name are needed, got 3"),
        ({"news,blogs": {}}, "a pattern of index names holds the characters of a name"),
        ({"news": {"enable": True}}, r"indexes 'news': unknown option 'enable' \(did you mean enabled\?\)"),
        ({"news": {"enabled": "no"}}, "indexes 'news': enabled must be true or false, or a list of unranked"),
        ({"news": {"windw": 3}}, "indexes 'news': unknown option 'windw'"),
        ({"news": {"recipe": "w3"}}, "indexes 'news': 'w3' is no recipe id"),
        ({"news": {"field": ""}}, "indexes 'news': field must be like"),
        ({"news": {"field": None}}, "indexes 'news': field must be a text, got None"),
    ],
)
def test_what_is_wrong_with_a_rule_is_told_with_its_pattern(given: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        settings_of(indexes=given)
    (tmp_path / "a.toml").write_text("[indexes.news]\nwindw = 3\n")
    with pytest.raises(InvalidSettings, match="indexes 'news': unknown option"):
        read_preset(tmp_path / "a.toml")
