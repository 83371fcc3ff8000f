"""The presets: what they are, and that the command line, lists and folders take them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import FrozenInstanceError, asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import ndd_search as ndd
from benchmarks.study.methods import by_presets
from ndd_search.cli import main
from ndd_search.core.presets import PRESETS, collapse_options
from ndd_search.search.flow.client_settings import options_and_others, settings_of
from tests.command_line import run as ndd_command

POST = "The ferry to the island leaves an hour later because of the fog"
POSTS = [
    f"{POST} https://a.example/1",
    f"RT @ann_lee: {POST.upper().replace('LATER', 'LATE')} https://b.example/22/222 via @islands #ferry #late",
    "Something else",
]
OFFER = "Portable power bank with {} mAh and two outputs charges a phone and a tablet at the same time, cable included"
OFFERS = [OFFER.format("10,000"), OFFER.format("20,000"), OFFER.format("10000")]


@pytest.mark.parametrize("name", ["news", "web"])
def test_where_the_defaults_are_best_a_preset_is_the_defaults(name: str) -> None:
    kind = ndd.preset(name)
    assert (kind.recipe, kind.options, kind.numbers) == (ndd.Recipe(), ndd.CollapseOptions(), False)


@pytest.mark.parametrize(
    "options", [ndd.CollapseOptions(), collapse_options(), collapse_options(mode="count"), ndd.preset("news").options]
)
def test_options_that_serve_a_whole_process_cannot_be_changed(options: ndd.CollapseOptions) -> None:
    with pytest.raises(FrozenInstanceError):
        options.window = 7  # type: ignore[misc]
    guarded = replace(options, guards=("same:price", "length:0.5"))
    assert (guarded.same_fields, guarded.length_ratio) == (("price",), 0.5)  # kept beside the options
    assert pickle.loads(pickle.dumps(guarded)) == guarded
    again = replace(options, max_per=("source:2",))
    assert again.most_per == {"source": 2}
    assert pickle.loads(pickle.dumps(again)) == deepcopy(again) == again
    assert asdict(again)["max_per"] == ("source:2",)
    assert again.as_text == options.as_text.replace("max_per=()", "max_per=('source:2',)")


def test_products_with_other_numbers_are_told_right_by_their_preset_whatever_the_bar_and_posts_by_both() -> None:
    products, messages = ndd.preset("products"), ndd.preset("messages")
    assert products.numbers
    assert len(ndd.collapse(OFFERS, min_similarity=0.5)) == 1
    assert len(ndd.collapse(OFFERS, preset="products", min_similarity=0.5)) == 2
    assert len(ndd.collapse(OFFERS)) == len(ndd.collapse(OFFERS, preset="products")) == 2
    assert len(ndd.collapse(POSTS)) == 2  # they differ at their edges only
    assert len(ndd.collapse(POSTS, preset=messages)) == 2


def test_messages_join_copies_of_a_tweet_and_tell_two_shows_apart() -> None:
    """Basu's examples (2011), each passed on with another link."""
    vet = "Vet, 77, Busted For Obama Death Threat"
    chicago = "Playing a show in Chicago, IL at 9:00 PM today at LE PASSAGE"
    venue = "Playing a show in Cape Girardeau, MO at 9:00 PM today at The Venue"
    firsts = [f"{vet} | The Smoking Gun http://t.co/MrTUwxv via @", f"{chicago} http://a.example/32on"]
    firsts.append(f"{venue} http://a.example/32ow")
    copies = [f"{vet} http://tinyurl.com/25zyxgp #tcot #tlot #sgp", f"RT @dj_one: {chicago} http://b.example/1"]
    copies.append(f"{venue} #music http://b.example/2")
    assert ndd.collapse([*firsts, *copies], preset="messages").hits == firsts


def test_an_unknown_preset_is_named_with_those_that_are_there() -> None:
    with pytest.raises(
        ValueError, match=r"no preset 'mesages'.*did you mean messages.*there are news, web, products, messages"
    ):
        ndd.preset("mesages")


def test_a_folder_is_made_and_searched_with_a_preset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    source, folder = tmp_path / "posts.jsonl", tmp_path / "posts.idx"
    source.write_text("".join(json.dumps({"id": i, "text": post}) + "\n" for i, post in enumerate(POSTS)))
    assert main(["index", "add", str(source), str(folder), "--preset", "messages"]) == 0
    assert main(["search", str(folder), "ferry fog", "--preset", "messages", "--json"]) == 0
    block = json.loads(capsys.readouterr().out.splitlines()[-1])["ndd"]
    assert (block["recipe"], block["kept"], block["hidden"]) == ("c5-k64-v4-nourls", 1, 1)
    assert main(["search", str(folder), "ferry", "--preset", "news", "--json"]) == 0
    assert "preset news is meant for sketches of recipe w3-k64-v4, these are of c5-k64-v4-nourls" in caplog.text


def test_a_list_is_deduplicated_with_a_preset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = tmp_path / "offers.txt"
    lines.write_text("\n".join(OFFERS))
    alike = (("min-similarity", "0.5", OFFERS[:1]), ("preset", "products", OFFERS[:2]))
    for option, value, kept in (*alike, ("set", "guards=numbers", OFFERS[:2])):
        with lines.open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            assert main(["corpus", "page", f"--{option}", value]) == 0
        assert capsys.readouterr().out.splitlines() == kept
    monkeypatch.undo()
    with pytest.raises(SystemExit):
        main(["corpus", "page", "--preset", "webb", str(lines)])
    assert "there is no preset 'webb'" in capsys.readouterr().err


def test_the_evaluation_applies_a_preset_with_the_guards_of_a_page() -> None:
    methods = {method.name: method for method in by_presets()}
    assert ", ".join(methods) == ", ".join(["news, web", "products", "messages"])
    assert {name for names in methods for name in names.split(", ")} == set(PRESETS)
    texts = [*OFFERS, "too short to count", "too short to count!", "too short to count, too"]
    first, second = np.array([0, 0, 1, 3, 3]), np.array([1, 2, 2, 4, 5])
    called = {name: (made.prepare(texts).scores(first, second) >= made.bar).tolist() for name, made in methods.items()}
    assert called["news, web"] == [True, True, True, True, False]
    assert called["products"] == [False, True, False, True, False]


def test_a_preset_is_taken_wherever_options_are_and_anything_else_is_told() -> None:
    """A dict, a name and a path are none: they would raise an error of Python that names no option."""
    messages = ndd.preset("messages")
    assert len(ndd.collapse(POSTS, preset=messages)) == len(ndd.passages(POSTS, preset=messages)) == 2
    assert ndd.collapse(POSTS, preset=messages).info.recipe == ndd.Recipe.of(messages.recipe).id
    wrong: Any
    for wrong in ({}, {"window": 3}, "messages", Path("ndd.toml")):
        with pytest.raises(TypeError, match="options must be CollapseOptions, got"):
            ndd.collapse(POSTS, options=wrong)
        with pytest.raises(TypeError, match="options must be PassageOptions, got"):
            ndd.passages(POSTS, options=wrong)
    with pytest.raises(ValueError, match="facets count aggregations of an engine"):
        ndd.collapse(POSTS, facets=["sources"])


def _listed(**given: Any) -> int:
    return len(ndd.collapse(OFFERS, **given))


def _merged(**given: Any) -> int:
    return len(ndd.merge([OFFERS[:1], OFFERS[1:]], by="round_robin", **given)["hits"]["hits"])


def _streamed(**given: Any) -> int:
    return len(ndd.stream(lambda start, size: OFFERS[start : start + size], **given).page())


def _chosen_passages(**given: Any) -> int:
    return len(ndd.passages(OFFERS, contained=False, **given))


def _collected(**given: Any) -> int:
    return len(ndd.Corpus.read([{"text": one} for one in OFFERS], text="text", numbers=True).groups(**given))


def _indexed(**given: Any) -> int:
    pytest.importorskip("tantivy", reason="the embedded index needs tantivy")
    with TemporaryDirectory() as folder, ndd.Index.open(Path(folder) / "offers", text="text") as index:
        index.add({"id": str(number), "text": one} for number, one in enumerate(OFFERS))
        return len(index.search("power bank", **given)["hits"]["hits"])


def _groups_for(options: ndd.CollapseOptions) -> int:
    return len(ndd.collapse(OFFERS, options=options))


def _of_a_client(**given: Any) -> int:
    return _groups_for(settings_of(**given).options)


def _of_an_index(**given: Any) -> int:
    return _groups_for(settings_of(indexes={"offers": given}).indexes.rules["offers"].options)


def _of_a_search(**given: Any) -> int:
    return _groups_for(options_and_others(None, json.loads(json.dumps(given)))[0])


def _of_a_file(**given: Any) -> int:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "options.toml"
        file.write_text("[collapse]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items()))
        return _groups_for(ndd.preset(file).options)


def _commanded(*words: str, **given: Any) -> int:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "offers.jsonl"
        file.write_text("".join(json.dumps({"id": n, "text": one}) + "\n" for n, one in enumerate(OFFERS)))
        texts = {name: ",".join(value) if isinstance(value, list) else value for name, value in given.items()}
        bar = ["--min-similarity", str(texts.pop("min_similarity"))]
        settings = [word for name, value in texts.items() for word in ("--set", f"{name}={value}")]
        return len(ndd_command("corpus", *words, file, "--text", "text", *bar, *settings).stdout.splitlines())


PLACES = (
    *(_listed, _merged, _streamed, _chosen_passages, _collected, _indexed),
    *(_of_a_client, _of_an_index, _of_a_search, _of_a_file),
    *(partial(_commanded, "page"), partial(_commanded, "unique")),
)


@pytest.mark.parametrize("place", PLACES)
def test_a_preset_and_a_guard_work_wherever_an_option_does(place: Callable[..., int]) -> None:
    assert place(min_similarity=0.5) == 1
    assert place(min_similarity=0.5, preset="products") == 2
    assert place(min_similarity=0.5, guards=["numbers"]) == 2
