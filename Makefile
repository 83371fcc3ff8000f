# Every target does all its own set-up: Python 3.11 or later, make and a package index are enough.
#   make demo    make test    make test ARGS="-m 'not engine'"    make test PYTHON=python3.13
PYTHON ?= python3
VENV ?= .venv
OLDER ?= .venv-older
ARGS ?=
PIP_INSTALL = bin/python -m pip install --quiet --disable-pip-version-check --editable

.PHONY: demo test test-older-clients lint clean

demo: $(VENV)/demo-installed  ## the same searches without and with ndd_search
	$(VENV)/bin/ndd-search demo $(ARGS)

test: $(VENV)/dev-installed  ## all tests; servers that cannot be had are skipped, and the last lines say why
	$(VENV)/bin/python -m pytest $(ARGS)

test-older-clients: $(OLDER)/dev-installed  ## the tests on servers with elasticsearch-py 8 and opensearch-py 2
	$(OLDER)/bin/python -m pytest -m engine $(ARGS)

lint: $(VENV)/dev-installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy --strict ndd_search tests/engines

clean:
	rm -rf $(VENV) $(OLDER)

# A stamp newer than pyproject.toml says that what it lists is installed.
$(VENV)/demo-installed: pyproject.toml | $(VENV)/bin/python
	$(VENV)/$(PIP_INSTALL) ".[embedded,html,stem,cli]"
	@touch $@

$(VENV)/dev-installed: pyproject.toml | $(VENV)/bin/python
	$(VENV)/$(PIP_INSTALL) ".[dev]"
	@touch $@

$(OLDER)/dev-installed: pyproject.toml | $(OLDER)/bin/python
	$(OLDER)/$(PIP_INSTALL) ".[test]" "elasticsearch[async]<9" "opensearch-py[async]<3"
	@touch $@

%/bin/python:
	$(PYTHON) -m venv $* || { rm -rf $*; exit 1; }
