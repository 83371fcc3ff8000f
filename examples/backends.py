"""Pages without near-duplicates of other search libraries: what `fetch(start, count)` is for each.

    pip install qdrant-client       # or bm25s, lancedb, pysolr, tantivy
    python examples/backends.py qdrant

Each function returns a stream, of which `page()` is the first page; see docs/backends.md.
"""

import sys

import ndd_search as ndd

STEEL = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
FINAL = "The home side scored twice in the last ten minutes to reach the final for the first time in forty years."
FERRY = "The ferry to the island was late on Friday."
ARTICLES = [(1, STEEL), (2, f"UPDATE - {STEEL}"), (3, FINAL), (4, FERRY)]
CORE = "http://localhost:8983/solr/news"  # made by `solr create -c news`


def embed(text):  # stands for your model
    return [text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]


def bm25s():
    import bm25s

    retriever = bm25s.BM25(corpus=[{"id": id, "body": body} for id, body in ARTICLES])
    retriever.index(bm25s.tokenize([body for _, body in ARTICLES], show_progress=False), show_progress=False)

    def fetch(start, count):
        most = min(start + count, len(ARTICLES))
        query = bm25s.tokenize("friday", show_progress=False)
        found, scores = retriever.retrieve(query, k=most, show_progress=False)
        return [hit for hit, score in zip(found[0], scores[0], strict=True) if score > 0][start:]

    return ndd.stream(fetch, text="body")


def lancedb():
    import lancedb

    rows = [
        {"id": id, "body": body, "vector": embed(body), "sketch": ndd.sketch(body).tolist()} for id, body in ARTICLES
    ]
    table = lancedb.connect("lance").create_table("news", rows, mode="overwrite")

    def fetch(start, count):
        return table.search(embed(STEEL)).limit(count).offset(start).to_list()

    return ndd.stream(fetch, text="body", sketch="sketch")


def qdrant():
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    client.create_collection("news", vectors_config=models.VectorParams(size=26, distance=models.Distance.COSINE))
    client.upsert(
        "news", [models.PointStruct(id=id, vector=embed(body), payload={"body": body}) for id, body in ARTICLES]
    )

    def fetch(start, count):
        return client.query_points("news", query=embed(STEEL), offset=start, limit=count).points

    return ndd.stream(fetch, text="payload.body")


def solr(address=CORE):
    import pysolr

    core = pysolr.Solr(address, always_commit=True)
    core.add([{"id": str(id), "body": body, "sketch_is": ndd.sketch(body).tolist()} for id, body in ARTICLES])

    def fetch(start, count):
        found = core.search("body:friday", sort="score desc, id asc", start=start, rows=count)
        return found.docs, found.hits

    return ndd.stream(fetch, text="body", sketch="sketch_is")


def tantivy():
    import tantivy

    schema = tantivy.SchemaBuilder().add_integer_field("id", stored=True).add_text_field("body", stored=True).build()
    index = tantivy.Index(schema)
    writer = index.writer()
    for id, body in ARTICLES:
        writer.add_document(tantivy.Document(id=id, body=body))
    writer.commit()
    index.reload()
    searcher, query = index.searcher(), index.parse_query("friday", ["body"])

    def fetch(start, count):
        found = searcher.search(query, limit=count, offset=start)
        return [searcher.doc(address).to_dict() for _, address in found.hits]

    return ndd.stream(fetch, text="body")


if __name__ == "__main__":
    for group in {one.__name__: one for one in (bm25s, lancedb, qdrant, solr, tantivy)}[sys.argv[1]]().page().groups:
        print(group.hit, "| also:", [copy.hit for copy in group.duplicates])
