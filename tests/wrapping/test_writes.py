"""Documents written through a client wrapped with `text` in a rule of `indexes` get their sketch on the way."""

from __future__ import annotations

import importlib
import json
from collections import deque
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.errors import InvalidDocument
from ndd_search.indexing.with_sketches import sketch_fields
from ndd_search.search.flow.client_settings import settings_of
from ndd_search.search.flow.intercept_requests import Driver
from ndd_search.search.index_rules import IndexRules
from ndd_search.search.rest.mapping import check_mapping, mapping_properties
from ndd_search.search.rest.read_answer import Answer
from ndd_search.search.rest.read_request import Request
from ndd_search.search.writing.sketch_written_requests import SketchedWrites
from tests.engines.find import MODULES, Engine

TEXT = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
LATER = "The home side scored twice in the last ten minutes to reach the final for the first time in forty years."
MARKED = {"group": {"type": "keyword"}, "group_size": {"type": "integer"}, "leads": {"type": "boolean"}}
WRITES = SketchedWrites.of(IndexRules.of({"news*": {"text": "body", "keys": 0}}, ndd.CollapseOptions()))


def test_the_first_write_says_what_of_a_mapping_does_not_fit_sketches(
    engine: Engine, index: str, caplog: pytest.LogCaptureFixture
) -> None:
    fits, dynamic, closed = f"{index}-fits", f"{index}-dynamic", f"{index}-closed"
    with engine.client() as plain, engine.client() as client:
        plain.indices.create(index=fits, body={"mappings": {"properties": mapping_properties()}})
        plain.indices.create(index=closed, body={"mappings": {"dynamic": False}})
        plain.index(index=dynamic, id="0", body=sketch_fields({"body": TEXT}, ["body"]))
        ndd.wrap(client, indexes={f"{name}*": {"text": ["body"]} for name in (fits, dynamic, closed)})
        for id in "12":
            for name in (fits, dynamic, closed):
                client.index(index=name, id=id, body={"body": TEXT})
        for name in (fits, dynamic, closed):
            plain.indices.delete(index=name)
    told = sorted(record.getMessage() for record in caplog.records if record.name == "ndd_search")
    assert told[0].startswith(f"/{dynamic}: ndd.recipe is text, not keyword (dynamic mapping makes it text)")
    assert told[0].endswith("and run backfill; for new indexes install the template first")
    assert told[1].startswith(f"/{dynamic}: ndd_keys is text, not keyword (dynamic mapping makes it text); use another")
    assert len(told) == 2, "an index that exists gets the mapping"


@pytest.mark.filterwarnings("ignore:.*template")  # engines warn of patterns that several have
@pytest.mark.newest_servers
@pytest.mark.parametrize("is_bulk", [False, True])
def test_a_write_that_makes_its_index_has_no_sketch_unless_a_template_maps_it(
    engine: Engine, index: str, is_bulk: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """And says so; the next write puts the mapping. Nothing is made that the write alone would not make."""
    bare, mapped, stream, dated = f"{index}-bare", f"{index}-mapped", f"{index}-stream", f"<{index}-mapped-{{now/d}}>"
    template = {"template": {"mappings": {"properties": mapping_properties()}}}
    templates = {mapped: {**template, "index_patterns": [f"{mapped}*"]}}
    templates[stream] = {**template, "index_patterns": [f"{stream}*"], "data_stream": {}}
    legacy, hidden = f"{index}-legacy", f"{index}-hidden"  # a legacy template counts where there is no other one
    older: dict[str, Any] = {f"{index}-all": {"index_patterns": [f"{index}-*"]}}
    older |= {name: {"index_patterns": [f"{name}*"], **template["template"]} for name in (legacy, hidden)}
    templates[hidden] = {"template": {}, "index_patterns": [f"{hidden}*"]}
    names, document = [bare, dated, legacy, *templates], {"body": TEXT, "@timestamp": "2026-01-01T00:00:00Z"}
    with engine.client() as plain, engine.client() as client:

        def write(name: str, id: str, **more: Any) -> Any:
            if is_bulk:
                return client.bulk(body=[{"create": {"_index": name, "_id": id, **more}}, document])
            return client.index(index=name, id=id, body=document, op_type="create", **more)

        for name, body in older.items():
            plain.indices.put_template(name=name, body=body)
        for name, body in templates.items():
            plain.indices.put_index_template(name=name, body=body)
        try:
            ndd.wrap(client, indexes={f"*{index}*": {"text": ["body"]}})
            for id in "12":
                for name in names:
                    write(name, id)
            plain.indices.refresh(index=f"{index}*")
            found = plain.search(index=f"{index}*", body={"size": 20})["hits"]["hits"]
            with suppress(Exception):
                assert write(f"{index}-nothing", "1", require_alias=True)["errors"]
            made = plain.indices.get(index=f"{index}*", expand_wildcards="all")
        finally:
            with suppress(Exception):  # Elasticsearch from published jars cannot delete a data stream
                plain.indices.delete_data_stream(name=stream)
            for name in older:
                with suppress(Exception):
                    plain.indices.delete_template(name=name)
            for name in {*templates, *made}:
                delete = plain.indices.delete_index_template if name in templates else plain.indices.delete
                with suppress(Exception):
                    delete(**{"name" if name in templates else "index": name})
    bare_ones = [hit["_id"] for hit in found if "ndd" not in hit["_source"]]
    assert (len(found), bare_ones) == (2 * len(names), ["1", "1"])
    assert not any("nothing" in name for name in made)
    told = [one.getMessage() for one in caplog.records if one.name == "ndd_search"]
    assert [one for one in told if "-nothing" not in one] == [
        f"/{name}: documents pass without a sketch: there is no such index yet, and no template maps sketches: "
        "create the index with their mapping, or run ndd-search backfill after this write"
        for name in (bare, hidden)
    ]
    for about in made.values():
        assert about["mappings"]["properties"]["ndd"]["properties"]["recipe"] == {"type": "keyword"}


@pytest.mark.newest_servers
@pytest.mark.parametrize("dynamic", [True, False, "strict"])
def test_an_index_without_the_mapping_gets_it_before_the_first_sketch(
    engine: Engine, index: str, dynamic: bool | str
) -> None:
    with engine.client() as plain, engine.client() as client:
        body = {"mappings": {"dynamic": dynamic, "properties": {"body": {"type": "text"}}}}
        ndd.wrap(client, indexes={f"{index}*": {"text": ["body"]}})
        for name in (f"{index}-one", f"{index}-bulk"):
            plain.indices.create(index=name, body=body)
            if name.endswith("one"):
                client.index(index=name, id="1", body={"body": TEXT})
            else:
                client.bulk(index=name, body=f'{{"index":{{"_id":"1"}}}}\n{{"body":"{TEXT}"}}\n')
            mapped = plain.indices.get_mapping(index=name)[name]["mappings"]["properties"]
            assert (mapped["ndd"]["properties"]["recipe"], mapped["ndd_keys"]["type"]) == (
                {"type": "keyword"},
                "keyword",
            )
            assert plain.get(index=name, id="1")["_source"]["ndd"] == sketch(TEXT)
            plain.indices.delete(index=name)


@pytest.mark.parametrize(
    ("there", "is_sketched"),
    [
        ({"type": "object", "dynamic": False, "properties": MARKED}, True),
        ({"type": "object"}, True),
        ({"type": "keyword"}, False),
        ({"type": "nested"}, False),
    ],
)
def test_a_field_of_our_name_gets_what_it_lacks_or_documents_pass_without_a_sketch(
    engine: Engine, index: str, there: dict[str, Any], is_sketched: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """As of an index whose groups were marked. A write that the engine would take without us is never refused."""
    with engine.client() as client, engine.client() as other:
        client.indices.create(index=index, body={"mappings": {"properties": {"ndd": there}}})
        ndd.wrap(client, indexes={index: {"text": ["body"]}}).index(index=index, id="1", body={"body": TEXT})
        mapping = other.indices.get_mapping(index=index)[index]["mappings"]
        written = other.get(index=index, id="1")["_source"]
    assert ("ndd" in written, not list(check_mapping(mapping))) == (is_sketched, is_sketched)
    told = [record.getMessage() for record in caplog.records if record.name == "ndd_search"]
    assert ("documents pass without a sketch" in str(told), told == []) == (not is_sketched, is_sketched)


@pytest.mark.parametrize("is_bulk", [False, True])
def test_documents_pass_as_they_are_while_the_mapping_cannot_be_put(
    is_bulk: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Rather than that the engine maps their recipes as text; each write tries again."""
    sent, allowed = list[Request](), list[bool]()

    def send(one: Request) -> Answer:
        sent.append(one)
        if one.method == "GET":
            return Answer(
                {"news": {"mappings": {"properties": mapping_properties() if allowed else {}}, "settings": {}}}
            )
        if one.path.endswith("_mapping") and not allowed:
            raise PermissionError("not yours to change")
        return Answer({"_index": "news", "_id": "1", "result": "created", "items": []})

    driver = Driver(settings_of(indexes={"news": {"text": ["body"], "keys": 0}}))
    lines = [{"index": {"_index": "news"}}, {"body": TEXT}, {"index": {"_index": "other"}}, {"body": TEXT}]
    write = request("/_bulk", lines, "POST") if is_bulk else request("/news/_doc/1", {"body": TEXT})
    driver.handle(write, send)
    assert sent[-1].body == write.body
    (told,) = [one.getMessage() for one in caplog.records]
    assert "documents pass without a sketch: the mapping of sketches cannot be put (not yours to change)" in told
    allowed.append(True)
    driver.handle(write, send)
    written = next(one for one in reversed(sent) if one.method != "GET")
    assert (written.body[1] if is_bulk else written.body)["ndd"] == sketch(TEXT)


def test_a_mapping_is_asked_for_once_before_the_first_sketch_of_an_index_and_never_without_a_sketch() -> None:
    asked = list[str]()

    def send(request: Request) -> Answer:
        asked.append(f"{request.method} {request.path}")
        if request.method == "GET":
            raise PermissionError("not yours to read")
        return Answer({"_index": request.path.split("/")[1], "_id": "1", "result": "created"})

    driver = Driver(settings_of(indexes={"news*": {"text": ["body"], "keys": 0}}))
    for path in ("/news/_doc/1", "/news/_doc/2", "/others/_doc/1", "/news-2/_doc/1"):
        assert driver.handle(request(path, {"body": TEXT}), send).body["result"] == "created"
    driver.handle(request("/news-3/_doc/1", {"price": 1}), send)
    assert asked == [
        *("GET /news", "PUT /news/_doc/1", "PUT /news/_doc/2", "PUT /others/_doc/1"),
        *("GET /news-2", "PUT /news-2/_doc/1", "PUT /news-3/_doc/1"),
    ]


def test_an_index_is_asked_about_again_after_a_deletion_and_after_a_while() -> None:
    """Another process may have replaced it by one without the mapping."""
    time, put = [0.0], list[float]()

    def send(request: Request) -> Answer:
        if request.method == "PUT" and request.path.endswith("_mapping"):
            put.append(time[0])
        return Answer({"news": {"mappings": {}}} if request.method == "GET" else {"_index": "news", "_id": "1"})

    settings = settings_of(indexes={"news*": {"text": ["body"], "keys": 0}})
    settings.clock = lambda: time[0]
    driver = Driver(settings)
    for at in (0.0, 1.0, 59.0, 61.0, 62.0):
        time[0] = at
        driver.handle(request("/news/_doc/1", {"body": TEXT}), send)
    driver.handle(request("/news", None, "DELETE"), send)
    driver.handle(request("/news/_doc/1", {"body": TEXT}), send)
    assert put == [0.0, 61.0, 62.0]


def request(path: str, body: Any, method: str = "PUT") -> Request:
    return Request(method, path, {}, {}, body)


def sketch(text: str) -> dict[str, Any]:
    values = ndd.sketch(text).tolist()
    return {"sketch": values, "smallest": values[0], "recipe": ndd.Recipe().id, "text": "body"}


def dsl(engine: Engine) -> Any:
    return importlib.import_module("elasticsearch.dsl" if engine.family == "elasticsearch" else MODULES[engine.family])


def test_a_document_that_is_read_changed_and_saved_has_the_sketch_of_its_new_text(engine: Engine, index: str) -> None:
    """With the DSL of either client, and by index, create, update and bulk of the client itself."""
    library = dsl(engine)

    class Article(library.Document):  # type: ignore[misc, name-defined]
        body = library.Text()
        price = library.Integer()

    with engine.client() as plain, engine.client() as client:
        plain.indices.create(index=index, body={"mappings": {"properties": mapping_properties()}})
        ndd.wrap(client, indexes={f"{index}*": {"text": ["body"]}})

        def stored(id: str) -> dict[str, Any]:
            return dict(plain.get(index=index, id=id)["_source"])

        article = Article(meta={"id": "1"}, body=TEXT, price=1)
        article.save(using=client, index=index, refresh=True)
        assert stored("1") == {**sketch_fields({"body": TEXT}, "body"), "price": 1}
        (found,) = Article.search(using=client, index=index).query("match", body="emissions").execute()
        assert "ndd" not in found.to_dict(), "a search hides the sketch"
        found.body = LATER
        found.save(using=client, index=index)
        assert stored("1") == {**sketch_fields({"body": LATER}, "body"), "price": 1}
        found.update(using=client, index=index, body=TEXT)
        assert stored("1")["ndd"]["sketch"] == sketch(TEXT)["sketch"]

        client.index(index=index, id="2", body={"body": TEXT})
        client.create(index=index, id="3", body={"body": TEXT})
        client.bulk(
            body=[{"index": {"_index": index, "_id": "4"}}, {"body": TEXT}, {"delete": {"_id": "9"}}], index=index
        )
        helpers = importlib.import_module(f"{MODULES[engine.family]}.helpers")
        helpers.bulk(client, [{"_index": index, "_id": "5", "body": TEXT}])
        assert all(stored(id) == sketch_fields({"body": TEXT}, "body") for id in "2345")


@pytest.mark.parametrize(
    "unchanged",
    [
        request("/other/_doc/1", {"body": TEXT}),
        request("/news/_doc/1", {"body": TEXT}, "GET"),
        request("/news/_doc/1", {"title": TEXT}),
        request("/news/_doc/1", b"no JSON"),
        request("/news/_search", {"body": TEXT}, "POST"),
        request("/_bulk", [{"index": {"_index": "other"}}, {"body": TEXT}], "POST"),
        request("/news/_bulk", '{"delete":{"_id":"1"}}\n{"index":{"_id":"1"}}\n{"n": 1e400}\n', "POST"),
        request("/news/_update/1", {"script": "ctx._source.n += 1"}, "POST"),
        request("/_security/role/news", {"body": TEXT}),
    ],
)
def test_a_request_that_stores_no_text_of_such_an_index_stays_the_same_object(unchanged: Request) -> None:
    assert WRITES(unchanged) is unchanged


def test_without_the_setting_every_request_stays_the_same_object() -> None:
    unset = request("/news/_doc/1", {"body": TEXT})
    assert SketchedWrites()(unset) is unset


@pytest.mark.parametrize("as_bytes", [False, True])
def test_json_that_came_as_text_keeps_its_bytes(as_bytes: bool) -> None:
    number = "3.14159265358979323846264338327950288"
    old = '{"sketch": [1], "recipe": "w3-k64-v4"}'
    line = f'{{"pi" : {number},  "ndd": {old}, "body": "{TEXT}", "big": 1e400 }}'
    lines = ['{"index":{"_index":"news"}}', line, '{"index":{"_index":"other"}}', line, ""]
    body = "\n".join(lines)
    made = WRITES(request("/_bulk", body.encode() if as_bytes else body, "POST")).body
    assert isinstance(made, bytes if as_bytes else str)
    head, document, *rest = (made.decode() if isinstance(made, bytes) else made).split("\n")
    assert [head, *rest] == [lines[0], *lines[2:]]
    assert f'"pi" : {number},' in document
    assert '"big": 1e400' in document
    assert json.loads(document)["ndd"] == sketch(TEXT)


@pytest.mark.parametrize("space", ["", "\r", " \r\n"])
def test_space_around_a_document_stays(space: str) -> None:
    made = WRITES(request("/news/_doc/1", f'{space}{{"body": "{TEXT}"}}{space}')).body
    assert made == space + made.strip() + space != f'{space}{{"body": "{TEXT}"}}{space}'
    body = f'{{"index": {{}}}}\r\n{{"body": "{TEXT}"}}{space}'.encode()
    assert WRITES(request("/news/_bulk", body, "POST")).body.endswith(b"}" + space.encode())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
def test_bytes_keep_the_encoding_that_they_came_with(encoding: str) -> None:
    """Engines read JSON in each of them."""
    document = f'{{"pi": 1.50, "body": "{TEXT}"}}'.encode(encoding)
    made = WRITES(request("/news/_doc/1", document)).body
    assert made.decode(encoding).startswith('{"pi": 1.50,')
    assert json.loads(made) == {"pi": 1.5, "body": TEXT, "ndd": sketch(TEXT)}


def test_a_text_keeps_the_mark_that_it_begins_with() -> None:
    """OpenSearch takes it, so an update that passed without a sketch would leave the old one."""
    made = WRITES(request("/news/_update/1", f'\ufeff{{"doc": {{"body": "{TEXT}"}}}}', "POST")).body
    assert made.startswith('\ufeff{"doc"')
    assert json.loads(made[1:])["doc"]["ndd"]["sketch"] == sketch(TEXT)["sketch"]


def test_a_surrogate_in_bytes_does_not_stop_a_write() -> None:
    """Elasticsearch stores it."""
    made = WRITES(request("/news/_doc/1", b'{"name": "\xed\xa0\x80", "body": "%s"}' % TEXT.encode())).body
    assert made.startswith(b'{"name": "\xed\xa0\x80",')
    assert json.loads(made)["ndd"] == sketch(TEXT)


HEADER = {"index": {"_id": "1"}}


@pytest.mark.parametrize(
    "body",
    [
        deque([HEADER, {"body": TEXT}]),
        [f'{json.dumps(HEADER)}\n{{"body": "{TEXT}"}}'],
        [f"{json.dumps(HEADER)}\n", b'{"body": "%s"}\n' % TEXT.encode()],
        [HEADER, "", HEADER, {"body": TEXT}],  # the empty text is a line of its own, and so a document
        [{"index": {"_index": None}}, {"body": TEXT}],
        [{"index": {"_index": 2024}}, {"body": TEXT}],
    ],
)
def test_a_bulk_request_is_read_in_every_form_that_clients_send(body: Any) -> None:
    rules = {name: {"text": "body", "keys": 0} for name in ("news*", "2024")}
    writes = SketchedWrites.of(IndexRules.of(rules, ndd.CollapseOptions()))
    made = writes(request("/news/_bulk", body, "POST")).body
    last = made[-1].decode() if isinstance(made[-1], bytes) else made[-1]
    document = json.loads(last.rstrip().split("\n")[-1]) if isinstance(last, str) else last
    assert document == {"body": TEXT, "ndd": sketch(TEXT)}


@pytest.mark.parametrize(
    "before",
    {
        "an empty document": '{"index":{}}\n\n{"index":{}}\n',
        "a blank document": '{"index":{}}\n \r\n\n\n{"index":{}}\n',
        "a comment": '/* one */ {"index":{}} // {',
        "a second key": '{"index":{},"a":1}\n',
    }.items(),
    ids=lambda one: one[0],
)
def test_lines_of_a_bulk_are_read_as_the_engines_read_them(before: tuple[str, str]) -> None:
    """An empty line after a header is its document, which is refused. OpenSearch takes further keys."""
    body = f'{before[1].rstrip(chr(10))}\n{{"body": "{TEXT}"}}\n'
    made = WRITES(request("/news/_bulk", body.encode(), "POST")).body
    assert made.startswith(before[1].encode())
    assert json.loads(made.splitlines()[-1]) == {"body": TEXT, "ndd": sketch(TEXT)}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ('{"body": "x" /* or y */}', "holds comments"),
        ('{"n": "/*", "body": "x"} // or y', "holds comments"),
        ('{"body": "x"}}', "goes on after its end"),  # Elasticsearch takes that of an update
        (f'{{"body": "x", "deep": {"[" * 40_000}{"]" * 40_000}}}', "nests too deep"),  # for every version of Python
    ],
)
def test_a_document_that_only_the_engine_can_read_is_not_written_without_a_sketch(document: str, problem: str) -> None:
    for body in (document, document.encode()):
        with pytest.raises(InvalidDocument, match=problem):
            WRITES(request("/news/_doc/1", body))


def test_a_header_line_that_the_engine_refuses_is_left_to_the_engine() -> None:
    body = [{"index": {"_index": ["news"]}}, {"body": TEXT}]
    assert WRITES(request("/_bulk", body, "POST")).body is body


values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
values |= st.lists(values, max_size=2) | st.dictionaries(st.text(max_size=2), values, max_size=2)  # type: ignore[operator]
sources = st.dictionaries(st.sampled_from(["body", "title", "a.b", '"', "n"]), values, max_size=3)
sources |= st.builds(lambda one: {**one, "ndd": sketch("an old text"), "body": TEXT}, sources)
updates = st.builds(lambda doc, upsert: {"doc": doc, "upsert": upsert, "detect_noop": True}, sources, sources)


@settings(deadline=None)
@given(st.one_of(sources.map(lambda one: ("_doc", one)), updates.map(lambda one: ("_update", one))), st.booleans())
def test_text_and_objects_are_changed_alike(given: tuple[str, dict[str, Any]], indent: bool) -> None:
    """A body that comes as JSON text says afterwards what the same body as an object says."""
    kind, body = given
    path = f"/news/{kind}/1"
    text = json.dumps(body, indent=2 if indent else None)
    made = WRITES(request(path, text, "POST")).body
    assert json.loads(made) == WRITES(request(path, body, "POST")).body
    assert body == json.loads(text), "what the caller gave is not changed"


def test_settings_that_cannot_be_are_refused() -> None:
    for rules, error, message in (
        (["news"], TypeError, "must map patterns of index names to settings"),
        ({"news": {"text": ["body"], "kys": 8}}, TypeError, r"unknown option 'kys' \(did you mean keys\?\)"),
        ({"news": {"text": {"ndd": []}}}, TypeError, "indexes 'news': text must be a list"),
        ({"news": {"text": ["ndd"]}}, ValueError, "indexes 'news': .*no text field"),
    ):
        with pytest.raises(error, match=message):
            SketchedWrites.of(IndexRules.of(rules, ndd.CollapseOptions()))  # type: ignore[arg-type]
