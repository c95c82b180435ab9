# Two commands on a fresh machine: `make demo` and `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := src tests scripts

.PHONY: demo test test-long lint types bench screenshots clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/derand demo

test: lint types
	$(BIN)/python -m pytest -n 2 -m "not long"

test-long: $(VENV)/.installed
	$(BIN)/python -m pytest -m long

lint: $(VENV)/.installed
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

types: $(VENV)/.installed
	$(BIN)/mypy

screenshots: $(VENV)/.installed
	$(BIN)/python scripts/screenshots.py

bench: $(VENV)/.installed
	$(BIN)/derand bench core

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache dist
