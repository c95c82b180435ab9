# Two commands on a fresh machine: `make demo` and `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := audit,onnx,skops,xgboost,lightgbm,catboost,interpret,dask
SOURCES := src experiments tests scripts docs/_build

LOWEST := .venv-lowest
LOWEST_PYTHON ?= $(shell command -v python3.11 || echo $(PYTHON))

OLDEST := .venv-importers-oldest
NEWEST := .venv-importers-newest
WHEEL := .venv-wheel
SERVICE := .venv-service
IMPORTED := xgboost lightgbm catboost interpret-core pandas pytest hypothesis mpmath python-flint

.PHONY: demo test test-long fuzz snapshot test-lowest test-importers test-service test-wheel test-nobody test-docs lint types bench reproduce screenshots docs clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# with what only the tests need, models of other libraries among it
$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS)]' --group test --group lint
	touch $@

demo: $(VENV)/.installed
	$(BIN)/derand demo

# one thread for each of the two processes: threads of libraries that wait for each other take as long as the work
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

test: lint types
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -q -m "not long"

test-long: $(VENV)/.tested
	$(BIN)/python -m pytest -m long
	HYPOTHESIS_PROFILE=many $(BIN)/python -m pytest -q -m "hypothesis and not long"

# random input for minutes, each time other: `make fuzz SEED=...` repeats a run, FUZZ_EXAMPLES=30000 makes it longer
ifndef SEED
SEED := $(shell date +%s)
endif
fuzz: $(VENV)/.tested
	@echo "seed $(SEED): make fuzz SEED=$(SEED) repeats this run"
	$(BIN)/python scripts/check_against_oracle.py --ensembles 10000 --seed $(SEED)
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -q tests/fuzz --hypothesis-seed=$(SEED)

# certificates, fitted models, reports and commands, to the last bit as at the commit in scripts/snapshot_base
snapshot: $(VENV)/.tested
	$(BIN)/python scripts/certificate_snapshot.py compare --quick

# what a user runs first, and the tests of what the libraries change most, with the lowest versions that are allowed
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python scripts/try_commands.py
	$(ONE_THREAD) $(LOWEST)/bin/python -m pytest -n 2 -q -m "not long" $(LOWEST_TESTS)

LOWEST_TESTS := tests/app tests/tables tests/certificates/test_results.py tests/train/paper/test_stumps.py \
	tests/report/test_render.py tests/test_plot.py tests/test_noise.py

$(LOWEST)/.installed: pyproject.toml constraints/lowest.txt
	$(LOWEST_PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --constraint constraints/lowest.txt --editable . \
		pytest pytest-xdist hypothesis mpmath pandas polars python-flint==0.7.0
	touch $@

# models of other libraries, of their oldest and of their newest releases that are read
test-importers: $(OLDEST)/.installed $(NEWEST)/.installed
	$(OLDEST)/bin/python -m pytest -q -m "not long" tests/convert
	$(NEWEST)/bin/python -m pytest -q -m "not long" tests/convert

$(OLDEST)/.installed: pyproject.toml constraints/importers-oldest.txt
	$(LOWEST_PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --constraint constraints/importers-oldest.txt --editable . $(IMPORTED)
	touch $@

$(NEWEST)/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --upgrade --editable . $(IMPORTED)
	touch $@

# the examples of a service over HTTP and of MLflow, which need much that nothing else does
test-service: $(SERVICE)/.installed
	$(SERVICE)/bin/python -m pytest -q examples/service examples/mlflow

$(SERVICE)/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(SERVICE)
	$(SERVICE)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(SERVICE)/bin/python -m pip install --quiet --editable . --group service
	touch $@

# the wheel as others get it: built, its description checked, and the tests run on what it installs
test-wheel: $(VENV)/.tested
	rm -rf dist $(WHEEL)
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(WHEEL)/bin/python -m pip install --quiet "$$(echo dist/*.whl)[$(EXTRAS)]" --group test
	$(WHEEL)/bin/python -c "import derand, sys; assert derand.__file__.startswith(sys.prefix), derand.__file__"
	$(ONE_THREAD) $(WHEEL)/bin/python -m pytest -n 2 -q -m "not long" tests

# as a user who owns nothing and has no home, in a read-only copy; needs root, to become that user
test-nobody: $(VENV)/.tested
	$(BIN)/python scripts/run_as_nobody.py

lint: $(VENV)/.tested
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/typos
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml

types: $(VENV)/.tested
	$(BIN)/mypy

screenshots: $(VENV)/.tested
	$(BIN)/python scripts/screenshots.py
	$(BIN)/python scripts/pictures.py

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable . --group docs
	touch $@

# every page and notebook that shows output, run and compared; those of libraries that are not installed are skipped
test-docs: $(VENV)/.tested $(VENV)/.installed-docs
	$(BIN)/python -m pytest -q tests/test_docs.py tests/test_notebook.py tests/test_readme.py tests/scripts/test_run_page.py

bench: $(VENV)/.installed
	$(BIN)/python -m experiments bench core

reproduce: $(VENV)/.installed
	$(BIN)/python -m experiments reproduce --all

clean:
	rm -rf $(VENV) $(LOWEST) $(OLDEST) $(NEWEST) $(WHEEL) $(SERVICE) .pytest_cache .mypy_cache .ruff_cache dist build
