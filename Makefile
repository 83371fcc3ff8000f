# Every target installs what it needs. Required: Python 3.11 or later, make and a package index.
#   make demo    make test    make test ARGS="-m 'not engine'"    make test PARALLEL= PYTHON=python3.13
PYTHON ?= python3
VENV ?= .venv
OLDER ?= .venv-older
THIRD ?= .venv-third-parties
MINIMUM ?= .venv-minimum
BARE ?= .venv-bare
WHEEL ?= .venv-wheel
ARGS ?=
PARALLEL ?= -n auto
# ^ one process per processor; all tests of one server run in the same process
FRAMEWORKS = $(addprefix tests/integrations/test_,agents.py examples.py haystack.py langchain.py llamaindex.py missing.py)
CORE = ndd_search/native/module.c $(wildcard ndd_search/native/*.h)
BUILD = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target
SANITIZERS = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SANITIZED_BUILD = rm -rf build && CFLAGS="-g -O1 $(SANITIZERS)" $(BUILD) build/sanitized . && rm -rf build/lib* build/temp*
SANITIZED = ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=build/sanitized \
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)"
# uv installs several times faster than pip. Without --reinstall-package it would not build the core again.
UV = .venv-uv/bin/uv
INSTALL = $(UV) pip install --quiet --reinstall-package ndd-search --python $(@D)/bin/python
# All editable installations share the core that the one in $(VENV) has built: the extension is optional.
SHARE_CORE = CC=false $(INSTALL)
# uv makes hard links to its cache, which nltk (a dependency of LlamaIndex) refuses to read.
COPY = --link-mode copy

.PHONY: demo test test-older-clients test-third-parties build-without-core test-without-core test-minimum test-bare sanitize fuzz fuzz-guided fuzz-proxy prove soak soak-from-empty saturate bench bench-check picture reference docs dist test-dist lint clean

demo: $(VENV)/demo-installed  ## the same searches without and with ndd_search
	$(VENV)/bin/python examples/demo.py $(ARGS)

test: $(VENV)/dev-installed  ## all tests; tests of unavailable servers are skipped, and the last lines say why
	$(VENV)/bin/python -m pytest $(PARALLEL) $(ARGS)

test-older-clients: $(OLDER)/dev-installed  ## the tests on servers with elasticsearch-py 8 and opensearch-py 2
	$(OLDER)/bin/python -m pytest $(PARALLEL) -m engine $(ARGS)

build-without-core: $(VENV)/dev-installed  ## an installation without a compiler
	rm -rf build
	CC=false $(BUILD) build/plain .
	! ls build/plain/ndd_search/_native.*so

test-without-core: build-without-core  ## the tests without servers and without the core
	NDD_TEST_WITHOUT_CORE=1 $(VENV)/bin/python -m pytest $(PARALLEL) -m "not engine and not browser and not once" $(ARGS)

test-minimum: $(MINIMUM)/installed  ## the tests without servers, on the oldest allowed version of every dependency
	$(MINIMUM)/bin/python -m pytest $(PARALLEL) -m "not engine and not browser and not once" $(ARGS)

test-bare: dist/built | $(BARE)/bin/python  ## an installation without extras: every module imports or names its extra, a list is collapsed
	$(UV) pip install --quiet --reinstall-package ndd-search --python $(BARE)/bin/python dist/*.whl
	$(BARE)/bin/python -P -W error tests/bare.py

saturate: $(VENV)/dev-installed  ## a proxy at saturation for ten minutes, its engine and Redis killed: ARGS="--seconds 60"
	$(VENV)/bin/python -m tests.proxy.saturate $(ARGS)

fuzz-proxy: $(VENV)/dev-installed  ## 100,000 random requests to each server, directly and through a proxy: ARGS="-k opensearch3"
	NDD_TEST_FUZZED=100000 $(VENV)/bin/python -m pytest -q -s $(ARGS) tests/proxy/test_fuzzed.py

picture: $(VENV)/dev-installed  ## the picture of the search page in README.md, by the Chromium of this machine
	$(VENV)/bin/python -m tests.ui.browser docs/search-page.png

sanitize: $(VENV)/dev-installed  ## the tests of the native core under the sanitizers of gcc
	$(SANITIZED_BUILD)
	CFLAGS="-g $(SANITIZERS)" $(SANITIZED) $(VENV)/bin/pytest --import-mode=append $(PARALLEL) \
		-k "not file_handles and not without_core" $(ARGS) tests/native tests/test_parsing.py tests/corpus/test_pairs.py \
		tests/test_own_faults.py tests/test_guided_fuzz.py

fuzz: $(VENV)/dev-installed  ## the sanitized core against numpy on random texts and pages for a minute: ARGS="--seconds 3600 --seed 7"
	$(SANITIZED_BUILD)
	$(SANITIZED) $(VENV)/bin/python -P -c "import sys; sys.path.append('.'); from tests.fuzz import main; main()" $(ARGS)

fuzz-guided: $(VENV)/dev-installed  ## the core under libFuzzer, which keeps inputs that reach new code: ARGS="-max_total_time=60"
	$(UV) pip install --quiet --python $(VENV)/bin/python atheris
	$(VENV)/bin/python -m tests.guided_fuzz $(ARGS)

prove: $(VENV)/dev-installed  ## generated cases against an oracle of sets; a stopped run continues: ARGS="pages --cases 1000000"
	nice $(VENV)/bin/python -m tests.prove $(ARGS)

soak: $(VENV)/dev-installed  ## threads and tasks search and write for minutes: errors, memory, latency: ARGS="--minutes 10"
	$(VENV)/bin/python -m tests.soak $(ARGS)

soak-from-empty: $(VENV)/dev-installed  ## an index begins empty, is filled and searched, its engine is killed twice: a minute, ARGS="--seconds 600"
	$(VENV)/bin/python -m tests.soak_from_empty $(ARGS)

bench: $(VENV)/bench-installed  ## measure every figure of benchmarks/figures/performance.md, next to other libraries: some ten minutes
	$(VENV)/bin/python -m benchmarks --into benchmarks/figures $(ARGS)

bench-check: $(VENV)/bench-installed  ## measure again, fail when a ratio is worse by half than the last figures
	$(VENV)/bin/python -m benchmarks --against benchmarks/figures/performance.json $(ARGS)

test-third-parties: $(THIRD)/dev-installed  ## LangChain, LlamaIndex, Haystack, pandas, Spark, Django, PostgreSQL, Solr, Qdrant, LanceDB, ...
	$(THIRD)/bin/python -m pytest $(PARALLEL) tests/wrapping/test_third_parties.py $(FRAMEWORKS) tests/corpus/test_data_frames.py \
		tests/corpus/test_spark.py tests/items/test_spark.py tests/test_examples.py tests/test_backends.py $(ARGS)

reference: $(VENV)/dev-installed  ## write the table of options again
	$(VENV)/bin/python -m tests.option_table > docs/reference/options.md

docs: $(VENV)/docs-installed  ## the documentation site in build/site, without the network; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --strict  # not --quiet, which hides what --strict counts

dist: dist/built  ## the source distribution, and the wheel built from it

test-dist: dist/built | $(WHEEL)/bin/python  ## the wheel alone, installed without building anything, runs the README's examples
	$(UV) pip install --quiet --only-binary :all: --reinstall-package ndd-search --python $(WHEEL)/bin/python \
		"$$(echo dist/*.whl)[embedded,cli]"
	$(WHEEL)/bin/python -P -W error tests/wheel.py
	$(UV) tool run --quiet abi3audit --strict dist/*.whl

lint: $(VENV)/dev-installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy --strict ndd_search tests benchmarks

clean:
	rm -rf .venv-uv $(VENV) $(OLDER) $(THIRD) $(MINIMUM) $(BARE)* $(WHEEL) build dist .prove .fuzz

# A stamp file newer than pyproject.toml means that its dependencies are installed and the native core is built.
$(VENV)/demo-installed: pyproject.toml $(CORE) | $(VENV)/bin/python
	$(INSTALL) --editable ".[embedded,html,stem,cli,proxy]"
	@touch $@

# Prints what the compiler says of the core: without it, the installation goes on, and Python code is used.
$(VENV)/dev-installed: pyproject.toml $(CORE) | $(VENV)/bin/python
	$(INSTALL:--quiet=--verbose) --editable ".[dev]" 2>$@.log || { tail -n 30 $@.log; exit 1; }
	@grep -A 2 -E ': (error|fatal error|warning):|building extension "' $@.log || true
	@touch $@ $(@D)/demo-installed

dist/built: pyproject.toml MANIFEST.in README.md $(CORE) $(shell git ls-files ndd_search haystack_integrations) | $(UV)
	rm -rf dist
	$(UV) build --python $(PYTHON) --quiet
	@touch $@

$(VENV)/bench-installed: pyproject.toml $(CORE) | $(VENV)/bin/python
	$(INSTALL) --editable ".[bench]"
	@touch $@

$(VENV)/docs-installed: $(VENV)/dev-installed
	$(UV) pip install --quiet --python $(@D)/bin/python --requirements pyproject.toml --extra docs
	@touch $@

$(OLDER)/dev-installed: pyproject.toml $(VENV)/dev-installed | $(OLDER)/bin/python
	$(SHARE_CORE) --editable ".[test]" "elasticsearch[async]<9" "opensearch-py[async]<3"
	@touch $@

$(MINIMUM)/installed: pyproject.toml $(VENV)/dev-installed | $(MINIMUM)/bin/python
	$(SHARE_CORE) --resolution lowest-direct --editable ".[test]"
	@touch $@

$(THIRD)/spark-installed: pyproject.toml | $(THIRD)/bin/python  # apart from the rest: building its 490 MB takes a minute
	$(UV) pip install --quiet $(COPY) --python $(@D)/bin/python --requirements pyproject.toml --extra spark
	@touch $@

$(THIRD)/dev-installed: pyproject.toml $(THIRD)/spark-installed $(VENV)/dev-installed
	$(SHARE_CORE) $(COPY) --editable ".[test,agents,langchain,llamaindex,haystack,spark]" "elasticsearch[async]<9" \
		langchain-classic langchain-elasticsearch llama-index-vector-stores-elasticsearch \
		elasticsearch-haystack opensearch-haystack django fastapi flask httpx2 pandas polars \
		bm25s lancedb "psycopg[binary]" pysolr qdrant-client
	@touch $@

%/bin/python: | $(UV)
	$(UV) venv --quiet --seed --no-python-downloads --python $(PYTHON) $*

$(UV):
	{ $(PYTHON) -m venv .venv-uv && .venv-uv/bin/python -m pip install --quiet --disable-pip-version-check uv; } || { rm -rf .venv-uv; exit 1; }
