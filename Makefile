# Two commands on a fresh machine: `make demo` and `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := src experiments tests scripts docs/_build

.PHONY: demo test test-long lint types bench reproduce screenshots docs clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/derand demo

test: lint types
	$(BIN)/python -m pytest -n 2 -q -m "not long"

test-long: $(VENV)/.installed
	$(BIN)/python -m pytest -m long

lint: $(VENV)/.installed
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

types: $(VENV)/.installed
	$(BIN)/mypy

screenshots: $(VENV)/.installed
	$(BIN)/python scripts/screenshots.py

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

bench: $(VENV)/.installed
	$(BIN)/python -m experiments bench core

reproduce: $(VENV)/.installed
	$(BIN)/python -m experiments reproduce --all

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache dist build
