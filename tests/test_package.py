"""The structure of the package: its public names, and which rooms may import which."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import ndd_search
from ndd_search.core import matching, sketching

PACKAGE = Path(ndd_search.__file__).parent
# Data flows one way: a module imports only its own room, the values at the top, and rooms that stand before its own.
ROOMS = [
    "native",
    "core",
    "core.text",
    "core.methods",
    "core.sketching",
    "core.matching",
    "core.paging",
    "search",
    "search.rest",
    "search.writing",
    "search.flow",
    "search.clients",
    "plugins",
    "indexing",
    "embedded",
    "sources",
    "reports",
    "corpus",
    "items",
    "integrations",
    "serving",
    "serving.ui",
    "serving.proxy",
    "cli.tuning",
    "cli",
]
NO_IO = (
    "core",
    "core.text",
    "core.methods",
    "core.sketching",
    "core.matching",
    "core.paging",
    "search.rest",
    "search.writing",
    "search.flow",
)
ALLOWED = {"numpy", "cachetools", "selectolax", "Stemmer", "orjson"}
ENTRANCES = {"__init__", "__main__"}  # they hand on names and commands of every room
MODULES = sorted(
    file.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for file in PACKAGE.rglob("*.py")
)


def path_of(module: str) -> Path:
    place = PACKAGE / module.replace(".", "/")
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@cache
def imports(module: str) -> set[str]:
    """Every module a source file imports, at its head, inside a function or for type checkers alone, by full name."""
    found = set()
    for node in ast.walk(ast.parse(path_of(module).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            within = (PACKAGE.parent / node.module.replace(".", "/")).is_dir()
            found |= {f"{node.module}.{alias.name}" for alias in node.names} if within else {node.module}
    return found


def own_imports(module: str) -> set[str]:
    """The same of this package, without its name."""
    return {name.removeprefix("ndd_search.") for name in imports(module) if name.startswith("ndd_search.")}


def room_of(module: str) -> str:
    """The folder of a module, "" for the values at the top."""
    parents = [module.rsplit(".", times)[0] for times in range(module.count(".") + 1)]
    return next((parent for parent in parents if parent in ROOMS), "")


def test_every_folder_has_its_place_among_the_rooms() -> None:
    assert {room_of(module) for module in MODULES} - {""} == set(ROOMS)


def test_a_module_imports_only_rooms_that_stand_before_its_own() -> None:
    for module in set(MODULES) - ENTRANCES:
        own = room_of(module)
        allowed = {"", *ROOMS[: ROOMS.index(own) + 1]} if own else {""}
        assert {room_of(name) for name in own_imports(module)} <= allowed, module


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = {module: own_imports(module) & set(MODULES) for module in MODULES if module not in ENTRANCES}
    while free := [module for module, needed in left.items() if not needed & left.keys()]:
        for module in free:
            del left[module]
    assert not left


@pytest.mark.parametrize(
    ("house", "unknown"), [("search", "corpus"), ("search", "items"), ("indexing", "corpus"), ("corpus", "items")]
)
def test_search_knows_nothing_of_collections_and_collections_nothing_of_records(house: str, unknown: str) -> None:
    inside = [module for module in MODULES if module.partition(".")[0] == house]
    known = {module: {name for name in own_imports(module) if name.partition(".")[0] == unknown} for module in inside}
    assert inside
    assert not any(known.values()), known


def test_rooms_without_io_need_no_more_than_numpy_and_cachetools() -> None:
    io = {"socket", "http.client", "urllib.request", "asyncio", "subprocess", "pathlib"}
    for module in [module for module in MODULES if room_of(module) in NO_IO]:
        foreign = {name.partition(".")[0] for name in imports(module)} - {"ndd_search"} - set(sys.stdlib_module_names)
        assert foreign <= ALLOWED, module
        used = imports(module) & io
        lets_coroutines_wait = module in ("search.flow.intercept_requests", "core.paging.source")
        assert used <= ({"asyncio"} if lets_coroutines_wait else set()), module


def test_what_indexes_does_not_load_what_searches() -> None:
    code = "import sys, ndd_search; ndd_search.with_sketches; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = {name.partition(".")[2] for name in done.stdout.split() if name.startswith("ndd_search.")}
    assert not [
        name for name in rooms if name.startswith(("search.clients", "embedded", "search.flow.carry_out_search"))
    ]


def test_wrapping_a_client_loads_no_step_that_a_search_has_only_if_it_asks_for_it() -> None:
    steps = ("explain_documents", "facet_count", "seen_items", "count_groups", "whole_groups")
    code = "import sys, ndd_search; ndd_search.wrap; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "ndd_search.search.flow.carry_out_search" in loaded
    assert not {f"ndd_search.search.flow.{step}" for step in steps}.intersection(loaded)


def test_only_the_command_line_uses_the_proxy() -> None:
    users = {module for module in MODULES if any(room_of(name) == "serving.proxy" for name in own_imports(module))}
    assert {module for module in users if room_of(module) != "serving.proxy"} == {"cli.agents", "cli.serve", "cli.ui"}


def test_nothing_reads_pickles_or_anything_else_that_runs_code() -> None:
    for module in MODULES:
        assert not imports(module) & {"pickle", "marshal", "shelve", "dill", "joblib"}, module


def test_the_public_names_are_these() -> None:
    assert set(ndd_search.__all__) == {
        "CollapseOptions",
        "Corpus",
        "Index",
        "Recipe",
        "collapse",
        "copies",
        "info",
        "merge",
        "options",
        "pages",
        "passages",
        "preset",
        "sketch",
        "stream",
        "with_sketches",
        "wrap",
    }
    rooms = [ndd_search, ndd_search.indexing, ndd_search.items, ndd_search.plugins, sketching, matching]
    assert all(getattr(room, name) is not None for room in rooms for name in room.__all__)


def test_the_reference_names_every_public_name() -> None:
    page = (PACKAGE.parent / "docs/reference/python.md").read_text()
    for room in (ndd_search, ndd_search.indexing, ndd_search.items, ndd_search.plugins, sketching, matching):
        missing = [name for name in room.__all__ if f"::: {room.__name__}.{name}\n" not in page]
        assert not missing


def test_importing_prints_nothing_and_loads_nothing_that_only_some_programs_want() -> None:
    code = "import sys, ndd_search; print(sorted(set(sys.argv[1:]) & set(sys.modules)))"
    extras = [
        "tantivy",
        "rich",
        "selectolax",
        "Stemmer",
        "trafilatura",
        "elasticsearch",
        "opensearchpy",
        "redis",
        "prometheus_client",
        "opentelemetry",
        "rapidfuzz",
        "pyspark",
        "numpy",
        "asyncio",
    ]
    done = subprocess.run([sys.executable, "-c", code, *extras], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'colapse'"):
        _ = ndd_search.colapse  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("Stemmer", "from ndd_search.core.text.sentences import stemmer; stemmer('english')"),
        ("selectolax", "ndd_search.sketch('<p>a', ndd_search.Recipe(markup='html'))"),
        ("tantivy", "import ndd_search.embedded.index"),
        ("elastic_transport", "import ndd_search.search.clients.elasticsearch"),
        ("opensearchpy", "import ndd_search.search.clients.opensearch"),
        ("prometheus_client", "import ndd_search.plugins.prometheus_metrics"),
        ("opentelemetry", "import ndd_search.plugins.opentelemetry_spans"),
        ("redis", "import ndd_search.plugins.redis_cache"),
        ("aiohttp", "import ndd_search.serving.proxy.upstream"),
        ("uvicorn", "import ndd_search.serving.proxy.server"),
        ("jinja2", "import ndd_search.serving.ui.page_html"),
        ("rapidfuzz", "import ndd_search.items.compare_names"),
        ("pyspark", "import ndd_search.corpus.spark"),
        ("rich", "from ndd_search.cli.output import _rich; _rich('table')"),
    ],
)
@pytest.mark.once
def test_a_broken_installation_of_an_extra_is_not_called_a_missing_one(package: str, code: str, tmp_path: Path) -> None:
    """The error names the module that is missing, not an extra that is installed."""
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("import what_it_needs")
    program = f"""
import sys, ndd_search
sys.modules[{package!r}] = None
try:
    {code}
except ndd_search.errors.MissingExtra:
    del sys.modules[{package!r}]
    sys.path.insert(0, {str(tmp_path)!r})
    {code}
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stderr
    assert said.splitlines()[-1] == "ModuleNotFoundError: No module named 'what_it_needs'"
