"""Check an installation without extras: run by a Python that has only ndd_search and its dependencies.

A plain script, because such an installation has no pytest. It stops at the first failure.
"""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages

import ndd_search
from ndd_search.cli import COMMANDS, main
from ndd_search.errors import MissingExtra

EXTRAS = ["elasticsearch", "opensearchpy", "tantivy", "selectolax", "Stemmer", "rich", "orjson", "aiohttp", "uvicorn"]
EXTRAS += ["redis", "prometheus_client", "opentelemetry", "rapidfuzz", "jinja2", "pyspark"]


def check() -> None:
    """Import every module, collapse a list, and run a command."""
    installed = [name for name in EXTRAS if find_spec(name)]
    if installed:
        raise SystemExit(f"this environment is not bare, it has {', '.join(installed)}")
    lacking = []
    for module in walk_packages(ndd_search.__path__, "ndd_search."):
        if module.name.endswith(("__main__", "_native")):
            continue
        try:
            import_module(module.name)
        except MissingExtra as error:
            lacking.append(module.name)
            if "pip install" not in str(error):
                raise
    story = "one text about the climate summit and what the ministers of all the countries said there"
    page = ndd_search.collapse([{"body": story}, {"body": story}, {"body": "another text"}], text="body", size=2)
    if len(page) != 2 or page.info.hidden != 1:
        raise SystemExit(f"a list of two different texts was collapsed to {page.hits}")
    for command in COMMANDS:
        try:
            if main([command, "--help"]):
                raise SystemExit(f"ndd-search {command} --help failed")
        except SystemExit as ended:
            if ended.code:
                raise
    if main(["backfill", "--template"]):
        raise SystemExit("ndd-search backfill --template failed")
    print(f"without extras all is well; {len(lacking)} modules name their extra: {', '.join(lacking)}")


if __name__ == "__main__":
    check()
