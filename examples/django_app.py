"""Articles without near-duplicates in Django, in one file. Run it with: python examples/django_app.py runserver

PUT /articles/7 with {"title": ..., "body": ...} adds an article, GET /search?q=steel&page=0 finds articles. In a
project, the functions belong into views.py and the paths into urls.py. A `post_save` signal may call `index.add`, too.
"""

import json
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_http_methods

import ndd_search as ndd

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__)
index = ndd.Index.open("articles.idx", text=["title", "body"])


@require_http_methods(["PUT"])
def add(request: HttpRequest, article: str) -> HttpResponse:
    index.add([{**json.loads(request.body), "id": article}])
    return HttpResponse(status=204)


def search(request: HttpRequest) -> JsonResponse:
    page = request.GET.get("page", "")
    first = 10 * int(page) if page.isdecimal() else 0
    return JsonResponse(index.search(request.GET.get("q", ""), size=10, from_=first))


urlpatterns = [path("articles/<article>", add), path("search", search)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
