"""Settings by pattern of index names, in searches of a live server."""

import logging

import pytest

from tests.wrapping.conftest import Connect, Library, settings_of
from tests.wrapping.test_searches import MATCH

pytestmark = pytest.mark.one_kind_of_client


def test_each_index_has_its_own_settings_and_indexes_that_differ_are_left_alone_together(
    library: Library, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = library.news.removesuffix("news")
    rules = {f"{prefix}*": {"mode": "annotate"}, library.two: {"enabled": False}, library.news: {"mode": "drop"}}
    caller, plain = connect(cache=False, indexes=rules), connect(wrapped=False)
    body = {"query": MATCH, "size": 10}
    dropped = caller.search(index=library.news, body=body)
    assert dropped["ndd"]["hidden"]
    assert not any("inner_hits" in hit for hit in dropped["hits"]["hits"])
    annotated = caller.search(index=library.mixed, body=body)
    assert annotated["ndd"]["hidden"] == 0
    assert [hit["_id"] for hit in annotated["hits"]["hits"]] == [
        hit["_id"] for hit in plain.search(index=library.mixed, body=body)["hits"]["hits"]
    ]

    def same(index: str) -> bool:
        one, other = (client.search(index=index, body=body) for client in (caller, plain))
        return [hit["_source"] for hit in one["hits"]["hits"]] == [hit["_source"] for hit in other["hits"]["hits"]]

    with caplog.at_level(logging.WARNING, "ndd_search"):
        assert same(library.two)
        assert same(f"{library.news},{library.two}")
        assert same(f"{prefix}*")
    assert len(caplog.records) == 2  # of the two searches over indexes that differ
    several = caller.search(index=f"{library.news},{library.two}", body={**body, "ndd": {"mode": "drop"}})
    assert several["ndd"]["hidden"]
    lines = [{"index": library.news}, body, {"index": library.two}, body]
    news, two = caller.msearch(body=lines)["responses"]
    assert (news["ndd"]["hidden"], "ndd" in two) == (dropped["ndd"]["hidden"], False)
    assert settings_of(caller).options.mode == "group"
