"""Several responses become one page without near-duplicates."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import ndd_search as ndd
from ndd_search.core.sketching.stored_sketch import SketchField
from tests.test_collapse import FORMS

TEXTS = {
    name: " ".join(f"{name}{word}" for word in range(60)) for name in ("river", "stone", "harbour", "winter", "letter")
}


def hit(id: str, text: str, score: float | None = 1.0, index: str = "a", sketched: bool = True) -> dict[str, Any]:
    made: dict[str, Any] = {"_index": index, "_id": id, "_score": score, "_source": {"body": text}}
    if sketched:
        stored = SketchField().encode(ndd.sketch(text), ndd.Recipe())
        made["fields"] = {"ndd.sketch": stored["sketch"], "ndd.recipe": [stored["recipe"]]}
    return made


def response(*hits: dict[str, Any], total: int | None = None, took: int = 3) -> dict[str, Any]:
    scores = [one["_score"] for one in hits if one["_score"] is not None]
    return {
        "took": took,
        "timed_out": False,
        "_shards": {"total": 2, "successful": 2, "skipped": 0, "failed": 0},
        "hits": {
            "total": {"value": len(hits) if total is None else total, "relation": "eq"},
            "max_score": max(scores, default=None),
            "hits": list(hits),
        },
    }


def ids(merged: dict[str, Any]) -> list[str]:
    return [one["_id"] for one in merged["hits"]["hits"]]


def copies(one: dict[str, Any]) -> list[str]:
    return [copy["_id"] for copy in one["inner_hits"]["near_duplicates"]["hits"]["hits"]] if "inner_hits" in one else []


FIRST = response(hit("1", TEXTS["river"], 9.0), hit("2", TEXTS["stone"], 8.0), hit("3", TEXTS["winter"], 1.0))
SECOND = response(
    hit("4", TEXTS["harbour"], 8.5, "b"),
    hit("5", TEXTS["river"] + " again", 7.0, "b"),
    hit("6", TEXTS["letter"], 6, "b"),
)


@pytest.mark.parametrize(
    ("by", "order"),
    [("score", "1 4 2 6 3"), ("round_robin", "1 4 2 3 6"), ("reciprocal_rank", "1 4 2 3 6")],
)
def test_hits_of_two_responses_are_ordered_and_collapsed_together(by: Any, order: str) -> None:
    given = copy.deepcopy([FIRST, SECOND])
    merged = ndd.merge(given, by=by)
    assert given == [FIRST, SECOND]
    assert ids(merged) == order.split()
    assert [copies(one) for one in merged["hits"]["hits"]] == [["5"], [], [], [], []]
    origins = {one["_id"]: one["fields"] for one in merged["hits"]["hits"]}
    assert origins == {id: {"ndd.origin": [0 if id in "123" else 1]} for id in order.split()}
    assert [one["_score"] for one in merged["hits"]["hits"] if one["_id"] == "4"] == [8.5]
    assert merged["hits"]["total"] == {"value": 5, "relation": "eq"}
    assert merged["hits"]["max_score"] == 9.0
    assert merged["_shards"] == {"total": 4, "successful": 4, "skipped": 0, "failed": 0}
    assert (merged["took"], merged["timed_out"]) == (3, False)
    block = merged["ndd"]
    assert (block["examined"], block["kept"], block["hidden"], block["exhausted"]) == (6, 5, 1, True)
    assert block["degraded"] is None


def test_documents_of_two_clusters_are_two_documents_whatever_their_ids() -> None:
    """Two clusters use the same index name and the same ids for other texts: every document is shown, with its origin.

    Ids in the engines count from 1 in both, so nothing but the cluster tells the documents apart.
    """
    eu = response(*(hit(str(i), text) for i, text in enumerate(list(TEXTS.values())[:3])))
    us = response(*(hit(str(i), text) for i, text in enumerate(list(TEXTS.values())[2:])))
    for by in ("score", "reciprocal_rank", "round_robin"):
        merged = ndd.merge([eu, us], by=by)
        shown = merged["hits"]["hits"]
        [twin] = [one for one in shown if copies(one)]  # the one text that both clusters hold
        [other] = twin["inner_hits"]["near_duplicates"]["hits"]["hits"]
        assert other["fields"]["ndd.similarity"] == [1.0]
        assert {(one["_id"], *one["fields"]["ndd.origin"]) for one in (twin, other)} == {("2", 0), ("0", 1)}
        assert {(one["_id"], *one["fields"]["ndd.origin"]) for one in (*shown, other)} == {
            (id, origin) for id in "012" for origin in (0, 1)
        }
        assert merged["hits"]["total"] == {"value": 5, "relation": "eq"}


def test_origins_have_the_names_of_a_mapping_and_wishes_can_read_them() -> None:
    named = {"eu": response(hit("1", TEXTS["river"], 2.0)), "us": response(hit("1", TEXTS["river"], 1.0))}
    assert [one["fields"]["ndd.origin"] for one in ndd.merge(named)["hits"]["hits"]] == [["eu"]]
    preferred = ndd.merge(named, keep=["preferred:ndd.origin=us,eu"])
    assert [one["fields"]["ndd.origin"] for one in preferred["hits"]["hits"]] == [["us"]]
    assert len(ids(ndd.merge(named, guards=["same:ndd.origin"]))) == 2
    again = {"world": ndd.merge(named, guards=["same:ndd.origin"])}
    origins = [one["fields"]["ndd.origin"] for one in ndd.merge(again, text="body", mode="annotate")["hits"]["hits"]]
    assert origins == [["world", "eu"], ["world", "us"]]


def test_a_hit_of_two_responses_of_one_cluster_is_one_hit_and_its_ranks_add_up() -> None:
    def merge(*responses: dict[str, Any], **options: Any) -> dict[str, Any]:
        return ndd.merge({"eu": responses}, **options)

    shared = hit("9", TEXTS["winter"], 0.5)
    first = response(hit("1", TEXTS["river"], 3.0), shared)
    second = response(hit("2", TEXTS["stone"], 2.0), shared)
    assert ids(merge(first, second, by="reciprocal_rank")) == ["9", "1", "2"]
    assert ids(merge(first, second, by="score")) == ["1", "2", "9"]
    assert merge(first, second)["hits"]["total"] == {"value": 3, "relation": "eq"}
    same_id = response(hit("9", TEXTS["stone"], 0.4, index="other"))
    assert ids(merge(first, same_id, by="round_robin")) == ["1", "9", "9"]
    other_routing = response({**hit("9", TEXTS["stone"], 0.4), "_routing": "b"})
    assert ids(merge(first, other_routing, by="round_robin")) == ["1", "9", "9"]


def test_the_total_of_overlapping_responses_is_what_surely_matches() -> None:
    parts = [response(hit("1", TEXTS["river"]), total=90), response(hit("2", TEXTS["stone"]), total=70)]
    assert ndd.merge({"eu": parts})["hits"]["total"] == {"value": 90, "relation": "gte"}
    assert ndd.merge(parts)["hits"]["total"] == {"value": 160, "relation": "eq"}
    assert ndd.merge({"eu": parts, "us": parts[0]})["hits"]["total"] == {"value": 180, "relation": "gte"}


def test_a_text_under_two_ids_is_fused_like_one_document() -> None:
    """Its group counts once for each response, at its best rank there; the page is that of one id for the text."""
    order = ["stone", "winter", "river", "letter"], ["harbour", "river", "letter", "stone"]
    keyword, vector = (
        response(*(hit(f"{name}{side}", TEXTS[name], index=side) for name in names))
        for names, side in zip(order, "ab", strict=True)
    )
    vector["hits"]["hits"].append(hit("river2", TEXTS["river"] + " again", index="b"))
    one_id = [response(*(hit(name, TEXTS[name]) for name in names)) for names in order]
    expected = ids(ndd.merge({"c": one_id}, by="reciprocal_rank"))
    assert expected[:2] == ["stone", "river"]
    merged = ndd.merge([keyword, vector], by="reciprocal_rank", mode="annotate")
    leaders = [one for one in merged["hits"]["hits"] if "ndd.duplicate_of" not in one["fields"]]
    assert [one["_id"][:-1] for one in leaders] == expected
    grouped = ndd.merge([keyword, vector], by="reciprocal_rank")
    assert ids(grouped) == ids({"hits": {"hits": leaders}})
    assert copies(grouped["hits"]["hits"][1]) == ["rivera", "river2"]
    assert merged["ndd"]["examined"] == 9
    pages = [ndd.merge([keyword, vector], by="reciprocal_rank", size=2, from_=start) for start in (0, 2, 4)]
    assert [id for page in pages for id in ids(page)] == ids(grouped)


def test_the_same_id_twice_in_one_response_counts_once_in_reciprocal_ranks() -> None:
    twice = response(hit("1", TEXTS["river"]), hit("2", TEXTS["stone"]), hit("2", TEXTS["stone"]))
    assert ids(ndd.merge([twice], by="reciprocal_rank")) == ["1", "2"]


def test_hits_without_ids_are_different_hits() -> None:
    """A response that `filter_path` has stripped of ids loses no hit."""
    bare = response(*(hit(name, text) for name, text in TEXTS.items()))
    for one in bare["hits"]["hits"]:
        del one["_id"]
    for by in ("score", "reciprocal_rank", "round_robin"):
        merged = ndd.merge({"eu": [bare, bare]}, by=by, frequency_table=False)
        assert merged["ndd"]["examined"] == 10
        assert [one["_source"]["body"] for one in merged["hits"]["hits"]] == list(TEXTS.values())
        marked = ndd.merge({"eu": [bare, bare]}, by=by, frequency_table=False, mode="annotate")
        named = [one["fields"].get("ndd.duplicate_of") for one in marked["hits"]["hits"]]
        assert sorted(map(str, named)) == ["None"] * 5 + ["[None]"] * 5


def test_pages_are_slices_of_one_list() -> None:
    whole = ids(ndd.merge([FIRST, SECOND], by="score"))
    assert [ids(ndd.merge([FIRST, SECOND], by="score", size=2, from_=start)) for start in (0, 2, 4, 6)] == [
        whole[:2],
        whole[2:4],
        whole[4:],
        [],
    ]


def test_a_response_that_holds_only_a_part_leaves_the_total_a_sum() -> None:
    merged = ndd.merge([FIRST, {**SECOND, "hits": {**SECOND["hits"], "total": {"value": 99, "relation": "gte"}}}])
    assert merged["hits"]["total"] == {"value": 102, "relation": "gte"}
    assert not merged["ndd"]["exhausted"]
    no_total = {**SECOND, "hits": {key: value for key, value in SECOND["hits"].items() if key != "total"}}
    assert "total" not in ndd.merge([FIRST, no_total])["hits"]


def test_a_total_that_was_not_counted_is_not_added() -> None:
    uncounted = {"hits": {"total": -1, "hits": FIRST["hits"]["hits"]}}
    assert "total" not in ndd.merge([uncounted, FIRST])["hits"]


def test_what_was_collapsed_already_is_collapsed_anew_and_nothing_is_lost() -> None:
    once = ndd.merge([response(hit("1", TEXTS["river"], 5.0), hit("2", TEXTS["river"] + " x", 4.0))])
    for leader in once["hits"]["hits"]:  # a wrapped client leaves the sketches in when they were asked for
        leader.update(fields=hit("", TEXTS["river"])["fields"])
        for one in leader["inner_hits"]["near_duplicates"]["hits"]["hits"]:
            one["fields"].update(hit("", TEXTS["river"] + " x")["fields"])
    better = response(hit("7", TEXTS["river"] + " y", 6.0, "b"))
    merged = ndd.merge([once, better])
    assert ids(merged) == ["7"]
    assert copies(merged["hits"]["hits"][0]) == ["1", "2"]


def test_duplicates_listed_by_their_ids_alone_cannot_be_merged() -> None:
    leader = hit("1", TEXTS["river"])
    one = {"_index": "a", "_id": "2", "_score": 1.0, "fields": {"ndd.similarity": [0.93]}}
    found = {"total": {"value": 1, "relation": "eq"}, "max_score": 1.0, "hits": [one]}
    leader["inner_hits"] = {"near_duplicates": {"hits": found}}
    with pytest.raises(ValueError, match="document '2' is listed by its id alone, and cannot be compared"):
        ndd.merge([response(leader)])


def test_hits_without_sketches_stand_alone_or_are_sketched_from_their_source() -> None:
    bare = [response(hit("1", TEXTS["river"], sketched=False)), response(hit("2", TEXTS["river"], 0.5, sketched=False))]
    merged = ndd.merge(bare)
    assert ids(merged) == ["1", "2"]
    assert merged["ndd"]["lacking"] == {"missing": 2}
    assert "docvalue_fields" in merged["ndd"]["degraded"]
    assert ids(ndd.merge(bare, text="body")) == ["1"]
    assert ids(ndd.merge(bare, text=lambda one: one["_source"]["body"])) == ["1"]
    assert ids(ndd.merge(bare, text="no_such_field")) == ["1", "2"]


def test_only_hits_that_bring_no_sketch_are_sketched_from_their_text() -> None:
    some = response(hit("1", TEXTS["river"]), hit("2", TEXTS["river"], sketched=False), hit("3", TEXTS["stone"]))
    merged = ndd.merge([some], text="body")
    assert [(one["_id"], copies(one)) for one in merged["hits"]["hits"]] == [("1", ["2"]), ("3", [])]


def test_what_many_hits_share_is_a_form_and_no_copy() -> None:
    answers = [response(*(hit(f"{index}{i}", form, index=index) for i, form in enumerate(FORMS[:6]))) for index in "ab"]
    for one, form in zip(answers[1]["hits"]["hits"], FORMS[6:], strict=True):
        one.update(hit(one["_id"], form, index="b"))
    assert len(ids(ndd.merge(answers, size=20))) == 12
    assert len(ids(ndd.merge(answers, size=20, frequency_table=False))) < 5


def test_options_are_those_of_collapse() -> None:
    merged = ndd.merge([FIRST, SECOND], mode="drop", min_similarity=0.5)
    assert all("inner_hits" not in one for one in merged["hits"]["hits"])
    annotated = ndd.merge([FIRST, SECOND], mode="annotate")
    named = {one["_id"]: one["fields"]["ndd.duplicate_of"] for one in annotated["hits"]["hits"] if one["_id"] == "5"}
    assert named == {"5": ["1"]}
    assert [one["_id"] for one in annotated["hits"]["hits"] if "ndd.duplicate_of" in one["fields"]] == ["5"]
    assert len(ids(ndd.merge([FIRST, SECOND], max_per_group=2))) == 6


def test_guards_and_keep_read_fields_where_there_is_no_document() -> None:
    hits = [hit(id, TEXTS["river"], score) for id, score in (("1", 3.0), ("2", 2.0), ("3", 1.0))]
    for one, price in zip(hits, (5, 5.0, 7), strict=True):
        del one["_source"]
        one["fields"]["price"] = [price]
    assert ids(ndd.merge([response(*hits)], guards=["same:price"])) == ["1", "3"]
    assert ids(ndd.merge([response(*hits)], keep=["preferred:price=7"])) == ["3"]


def test_no_response_is_an_empty_page() -> None:
    assert ndd.merge([])["hits"]["hits"] == []
    assert ndd.merge([response()])["hits"]["total"] == {"value": 0, "relation": "eq"}


def test_bad_input_is_said() -> None:
    with pytest.raises(ValueError, match="by must be one of score"):
        ndd.merge([FIRST], by="rank")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a list of search responses, got one dict"):
        ndd.merge(FIRST)
    with pytest.raises(TypeError, match=r"with hits\.hits; one is {'error'"):
        ndd.merge([{"error": "gone", "status": 404}])
    with pytest.raises(TypeError, match=r"with hits\.hits; one is 'gone'"):
        ndd.merge({"error": "gone"})
    with pytest.raises(TypeError, match=r"with hits\.hits; one is {'hits': None}"):
        ndd.merge([{"hits": None}])
    with pytest.raises(ValueError, match='by="reciprocal_rank"'):
        ndd.merge([response(hit("1", TEXTS["river"], None))])
    with pytest.raises(ValueError, match="at least 0"):
        ndd.merge([FIRST], size=-1)
    with pytest.raises(TypeError, match="unknown option"):
        ndd.merge([FIRST], min_similarty=1)  # type: ignore[call-arg]


def shown(merged: dict[str, Any]) -> list[Any]:
    return [one["_source"].get("text", one["_source"].get("body")) for one in merged["hits"]["hits"]]


def test_lists_of_two_retrievers_are_fused_and_a_text_that_both_found_counts_once() -> None:
    """Third in both lists is better than first in one: 2 / 63 > 1 / 61."""
    words, vectors = [TEXTS[name] for name in ("river", "stone", "harbour")], [TEXTS["winter"], TEXTS["letter"]]
    merged = ndd.merge([words, [*vectors, "UPDATE " + TEXTS["harbour"]]], by="reciprocal_rank")
    assert shown(merged) == [TEXTS[name] for name in ("harbour", "river", "winter", "stone", "letter")]
    (copy_of,) = merged["hits"]["hits"][0]["inner_hits"]["near_duplicates"]["hits"]["hits"]
    assert (copy_of["_source"], copy_of["fields"]["ndd.origin"]) == ({"text": "UPDATE " + TEXTS["harbour"]}, [1])
    assert set(merged["hits"]["hits"][1]) == {"_score", "_source", "fields"}
    assert (merged["ndd"]["kept"], merged["ndd"]["hidden"], merged["ndd"]["degraded"]) == (5, 1, None)


def test_pairs_with_scores_mappings_and_responses_are_merged_together() -> None:
    scored = [(TEXTS["river"], 9.0), ({"body": TEXTS["stone"], "day": 3}, 7)]
    given: dict[str, Any] = {
        "engine": response(hit("1", TEXTS["stone"], 8.0)),
        "list": scored,
        "hits": [hit("2", TEXTS["winter"], 1.0)],
    }
    kept = copy.deepcopy(given)
    merged = ndd.merge(given, text="body")
    assert given == kept
    assert shown(merged) == [TEXTS["river"], TEXTS["stone"], TEXTS["winter"]]
    assert [one["fields"]["ndd.origin"] for one in merged["hits"]["hits"]] == [["list"], ["engine"], ["hits"]]
    newest = ndd.merge(given, text="body", keep=["highest:day"])
    assert newest["hits"]["hits"][1]["_source"]["day"] == 3
    assert ndd.merge([[], []], by="round_robin")["hits"]["hits"] == []


def test_lists_without_scores_are_not_sorted_by_score_and_other_things_are_no_hits() -> None:
    with pytest.raises(ValueError, match="reciprocal_rank"):
        ndd.merge([[TEXTS["river"]], [TEXTS["stone"]]])
    for wrong in ([[7]], [[(TEXTS["river"], "much")]], {"name": [None]}, [7]):
        with pytest.raises(TypeError, match=r"holds texts|with hits\.hits"):
            ndd.merge(wrong, by="round_robin")  # type: ignore[arg-type]


def test_texts_are_near_duplicates_as_in_a_list_of_them() -> None:
    """Texts that differ in numbers alone are shown apart, and so are texts without a word in common."""
    news = [f"Pull request {number} was merged into the main branch on Friday after two reviews." for number in (1, 2)]
    lists: list[Any] = [[news], [[news[0]], [{"text": news[1]}]], [[{"_source": {"text": one}} for one in news]]]
    for given in lists:
        for by in ("round_robin", "reciprocal_rank"):
            merged = ndd.merge(given, by=by, text="text")
            assert [hit["_source"]["text"] for hit in merged["hits"]["hits"]] == ndd.collapse(news).hits == news


def test_hits_with_a_sketch_of_another_recipe_are_sketched_if_their_text_can_be_read() -> None:
    text = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
    fields = {"ndd.sketch": [3, 5, 7], "ndd.recipe": ["w9-k64-v4"]}
    hits = [{"_index": "news", "_id": id, "_score": 1.0, "_source": {"body": text}, "fields": fields} for id in "ab"]
    merged = ndd.merge([{"hits": {"hits": hits}}], text="body")
    assert (merged["ndd"]["kept"], merged["ndd"]["lacking"]) == (1, {})
    assert ndd.merge([{"hits": {"hits": hits}}])["ndd"]["lacking"] == {"foreign": 2}
