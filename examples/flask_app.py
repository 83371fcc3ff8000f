"""Articles without near-duplicates in Flask. Run it with: flask --app examples/flask_app run

PUT /articles/7 with {"title": ..., "body": ...} adds an article, GET /search?q=steel&page=0 finds articles.
"""

from flask import Flask, request

import ndd_search as ndd

app = Flask(__name__)
index = ndd.Index.open("articles.idx", text=["title", "body"])


@app.put("/articles/<article>")
def add(article: str):
    index.add([{**request.get_json(), "id": article}])
    return "", 204


@app.get("/search")
def search():
    page = max(0, request.args.get("page", 0, int))
    return index.search(request.args.get("q", ""), size=10, from_=10 * page)
