"""Settings in a file: round trip, every reader of such files, and error messages."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.presets import Preset
from ndd_search.errors import InvalidSettings
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.settings_file import preset, read_preset, write_preset
from tests.command_line import run
from tests.news_texts import CLIMATE, NEWS

NAMES = st.text(st.one_of(st.characters(exclude_categories=("C", "Z")), st.just(" "), st.just("\x7f")), min_size=1)
OPTIONS = st.builds(
    ndd.CollapseOptions,
    min_similarity=st.one_of(st.sampled_from(["auto", "high"]), st.floats(0.01, 1)),
    mode=st.sampled_from(["group", "drop"]),
    window=st.integers(1, 500),
    keep=st.lists(NAMES.map("newest:{}".format)),
    guards=st.lists(st.one_of(NAMES.map("same:{}".format), NAMES.map("within:{}=1.5h".format))),
)


@given(options=OPTIONS, recipe=st.sampled_from([None, ndd.Recipe.words(k=128)]))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, options: ndd.CollapseOptions, recipe: ndd.Recipe | None
) -> None:
    path = tmp_path_factory.mktemp("settings") / "settings.toml"
    settings = Preset(options, recipe, {"on": 'a "folder" \\ with\tall', "interval": [0.5, 0.6], "answers": 3})
    write_preset(path, settings)
    assert read_preset(path) == settings


def test_options_by_field_are_written_too(tmp_path: Path) -> None:
    options = ndd.CollapseOptions(max_per=("source:2",))
    write_preset(tmp_path / "a.toml", Preset(options))
    assert read_preset(tmp_path / "a.toml").options == options


def test_a_file_written_by_hand_needs_little(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("[collapse]\nguards = ['same:price']\n")
    assert read_preset(path) == Preset(ndd.CollapseOptions(guards=("same:price",)))


def test_writing_settings_follows_a_link_and_changes_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml.new").write_text("my notes")
    (tmp_path / "link.toml").symlink_to("mine.toml")
    write_preset(tmp_path / "link.toml", Preset(ndd.CollapseOptions(window=7)))
    assert (tmp_path / "link.toml").is_symlink()
    assert read_preset(tmp_path / "mine.toml").options.window == 7
    assert (tmp_path / "mine.toml.new").read_text() == "my notes"
    write_preset(tmp_path / "mine.toml", Preset())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.toml", "mine.toml", "mine.toml.new"]


def test_a_callable_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep holds a callable"):
        write_preset(tmp_path / "settings.toml", Preset(ndd.CollapseOptions(keep=(len,))))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version = 1", r"unknown option 'version': the options are recipe, collapse, indexes, tuned; correct it"),
        (
            "min_similarity = 0.5",
            r"'min_similarity' \(it belongs below \[collapse\]\): ",
        ),
        ("[index.news]", r"unknown option 'index' \(did you mean indexes\?\)"),
        ("[collapse]\nmin_similarty = 0.5", "did you mean min_similarity.*the options are min_similarity"),
        ("[collapse]\nmin_similarity = 2", r"\[collapse\]: min_similarity must be in 0..1, got 2"),
        ("collapse = 3", "collapse is 3, not names and values"),
        (
            "[collapse]\nguards = [1]",
            r"\[collapse\]: guards must be texts such as same:FIELD, got 1; correct it",
        ),
        ('recipe = "w3"', "'w3' is no recipe id"),
        ("recipe = 3", "recipe must be a text, got 3"),
        ("version =", "it is not valid TOML"),
        ("a = " + "[" * 100_000, "it is not valid TOML"),
        ("[collapse]\nwindow = 5\nwindow = 6", "it is not valid TOML"),
        ("\ud800", "it is not valid TOML"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_name(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InvalidSettings, match=f"^{path}: [^/]*{told}"):
        read_preset(path)


def test_a_byte_order_mark_of_an_editor_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("\ufeff[collapse]\nwindow = 50\n", "utf-8")
    assert read_preset(path).options.window == 50


@pytest.fixture
def strict(tmp_path: Path) -> Path:
    """Settings that keep all but identical texts apart, tuned for the default recipe."""
    path = tmp_path / "strict.toml"
    write_preset(path, Preset(ndd.CollapseOptions(min_similarity="identical", window=70), ndd.Recipe()))
    return path


def test_a_wrapped_client_reads_it_and_its_own_arguments_win(strict: Path) -> None:
    settings = settings_of(preset=preset(strict), window=80)
    assert (settings.options.min_similarity, settings.options.window) == ("identical", 80)
    assert settings.recipe == ndd.Recipe()
    assert settings_of(preset=preset(strict), min_similarity="auto").options.min_similarity == "auto"
    other = ndd.Recipe.words(k=128)
    write_preset(strict, Preset(recipe=other))
    assert settings_of(preset=preset(strict)).recipe == other


def test_another_recipe_than_they_were_tuned_for_is_a_warning(strict: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ndd_search"):
        assert settings_of(preset=preset(strict), recipe=ndd.Recipe()).recipe == ndd.Recipe()
        assert caplog.messages == []
        assert settings_of(preset=preset(strict), recipe=ndd.Recipe.words(size=5)).recipe == ndd.Recipe.words(size=5)
    assert "strict.toml is meant for sketches of recipe w3-k64-v4, these are of w5-k64-v4" in caplog.messages[0]


def test_the_embedded_index_and_the_command_line_read_it(strict: Path, tmp_path: Path) -> None:
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    folder = tmp_path / "news.idx"
    with ndd.Index.open(folder, text="body", preset=preset(strict)) as index:
        index.add([{"id": i, "body": body} for i, body in enumerate(NEWS)])
        assert len(index.search("ministers final")["hits"]["hits"]) == 3
        assert len(index.search("ministers final", min_similarity="auto")["hits"]["hits"]) == 2
    assert len(json.loads(run("search", folder, "ministers final", "--json").stdout)["hits"]["hits"]) == 2
    words: list[Any] = ["--json", "--preset", strict]
    assert len(json.loads(run("search", folder, "ministers final", *words).stdout)["hits"]["hits"]) == 3
    assert run("corpus", "page", "--preset", strict, stdin="\n".join(NEWS)).stdout.splitlines() == NEWS
    (tmp_path / "a").write_text(CLIMATE)
    (tmp_path / "b").write_text(NEWS[2])
    run("corpus", "compare", tmp_path / "a", tmp_path / "b")
    run("corpus", "compare", tmp_path / "a", tmp_path / "b", "--preset", strict, code=1)
    run("corpus", "compare", tmp_path / "a", tmp_path / "b", "--preset", strict, "--min-similarity", "auto")
    other = ["--preset", strict, "--recipe", "w5-k64-v4"]
    assert "tune again" in run("corpus", "compare", tmp_path / "a", tmp_path / "b", *other, code=1, process=True).stderr
    strict.write_text("[collapse]\nbar = 1\n")
    assert "unknown option 'bar'" in run("search", folder, "ministers", "--preset", strict, code=2).stderr


def test_options_of_every_kind_can_stand_in_a_file(tmp_path: Path) -> None:
    changed: dict[str, Any] = {
        "keep": ("newest:at",),
        "guards": ("same:price", "numbers", "within:at=5s", "length:0.5"),
    }
    changed |= {"mode": "drop", "window": 9, "max_window": 99, "max_per_group": 2}
    changed |= {"min_similarity": 0.5}
    options = replace(ndd.CollapseOptions(), **changed)
    write_preset(tmp_path / "all.toml", Preset(options))
    assert read_preset(tmp_path / "all.toml").options == options


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ('guards = ["same:price"]', [0, 1]),
        ('keep = ["newest:at"]', [2]),
        ('guards = ["within:at=92d"]', [0, 2]),
        ('guards = ["numbers"]', [0]),
    ],
)
def test_what_a_file_says_of_fields_holds_for_lines_of_json(tmp_path: Path, options: str, shown: list[int]) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f"[collapse]\n{options}\n")
    times = zip((1, 2, 1), ("2024-01-01", "2024-02-01", "2024-05-01"), strict=True)
    lines = [json.dumps({"body": NEWS[0], "price": price, "at": at}) for price, at in times]
    found = run("corpus", "page", "--text", "body", "--preset", path, stdin="\n".join(["no JSON", *lines]), code=3)
    assert found.stdout.splitlines() == [lines[place] for place in shown]
