"""Articles without near-duplicates in FastAPI. Run it with: fastapi run examples/fastapi_app.py (of fastapi[standard])

PUT /articles/7 with {"title": ..., "body": ...} adds an article, GET /search?q=steel&page=0 finds articles. The
functions are not `async`, so that FastAPI runs them in threads: several threads may use one index.
"""

from typing import Annotated, Any

from fastapi import FastAPI, Query

import ndd_search as ndd

app = FastAPI()
index = ndd.Index.open("articles.idx", text=["title", "body"])


@app.put("/articles/{article}", status_code=204)
def add(article: str, document: dict[str, Any]) -> None:
    index.add([{**document, "id": article}])


@app.get("/search")
def search(q: str, page: Annotated[int, Query(ge=0)] = 0) -> dict[str, Any]:
    return index.search(q, size=10, from_=10 * page)
