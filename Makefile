# Every target sets up what it needs: a virtual environment in .venv, with packages from pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUTPUT ?= output
PYTEST_WORKERS ?= auto

# Without compiled modules, every process of a test run or a report would compile its imports again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help test check format hooks docs test-statistics test-services test-gpu mutants bench bench-start bench-fleet bench-tables bench-gpu paper recommender suitesparse clean

help:  ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: $(VENV)/.test  ## Run all tests except the long statistical ones and those that need a database
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup --max-worker-restart 0 -m "not statistics and not services and not gpu"

check: $(VENV)/.check  ## Check formatting, lint, types and the import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.check  ## Format the code and apply safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

hooks: $(VENV)/.check $(VENV)/.hooks  ## Install the pre-commit hooks, which run `make format` and `make check`
	$(BIN)/pre-commit install

docs: $(VENV)/.docs  ## Build the documentation site into output/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The documentation is in output/site/index.html"

test-statistics: $(VENV)/.test  ## Run the long goodness-of-fit tests
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup --max-worker-restart 0 -o faulthandler_timeout=0 -m statistics

test-services: $(VENV)/.test  ## Run the tests that need PostgreSQL; they start their own server
	$(BIN)/python -m pytest -m services

test-gpu: $(VENV)/.test $(VENV)/.gpu  ## Run the tests that need a CUDA device, and torch, CuPy and JAX as far as they are there
	$(BIN)/python -m pytest -W default -m gpu tests/laws/test_gpu.py

mutants: $(VENV)/.test  ## List small mistakes in budget, release and accounting that no test notices (MODULE=word: one module; takes hours)
	$(BIN)/python tests/support/mutants.py $(MODULE)

bench: $(VENV)/.bench  ## Measure speed against other libraries; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks

bench-start:  ## Measure first calls in a fresh environment with empty caches; prints a table
	$(PYTHON) -m benchmarks.start

bench-fleet: $(VENV)/.bench  ## Measure files, fleets and large selections; writes docs/scaling.md
	$(BIN)/python -m benchmarks.fleet

bench-tables: $(VENV)/.bench  ## Measure long tables from the shell against pandas; writes docs/long-tables.md
	$(BIN)/python -m benchmarks.long_tables

bench-gpu: $(VENV)/.gpu  ## Measure top share on a CUDA device against torch, which must be there; writes docs/gpu.md
	$(BIN)/python -m benchmarks.gpu

paper: $(VENV)/.paper  ## Reproduce the paper into output/report.html (FAST=1: a quick look; FIGURE=name: one figure)
	DPSELECT_RESULTS=$(OUTPUT)/recommender $(BIN)/python -m experiments --output $(OUTPUT) $(if $(FAST),--fast) $(addprefix --only ,$(FIGURE))

recommender: $(VENV)/.sansa  ## Run the paper's real-data section on the data sets in DATA=directory; resumes if interrupted
	$(BIN)/python -m experiments.recommender $(if $(DATA),--data $(DATA)) --output $(OUTPUT)

# The extra `sansa` is compiled against a system library.
$(VENV)/.sansa: | suitesparse

suitesparse:  ## Install SuiteSparse, which `make recommender` needs (as root, on Debian or Ubuntu)
	@if [ -f /usr/include/suitesparse/cholmod.h ] || [ -n "$$SUITESPARSE_INCLUDE_DIR" ]; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -qq libsuitesparse-dev; \
	else echo "SANSA needs SuiteSparse: install libsuitesparse-dev (Debian, Ubuntu), or set SUITESPARSE_INCLUDE_DIR and" \
	  "SUITESPARSE_LIBRARY_DIR to its location" >&2; exit 1; fi

clean:  ## Remove everything that was built, including .venv and output
	rm -rf $(VENV) $(OUTPUT) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests experiments benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "dpselect needs Python 3.11 or newer; choose one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Each extra has a stamp file. A change to pyproject.toml installs it again. Python compiles a package's modules when they are
# first imported; pip would compile all of them now, which takes longer than the rest of the installation.
$(VENV)/.%: pyproject.toml | $(BIN)/python
	@echo "Installing dpselect[$*] into $(VENV) ..."
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[$*]'
	@touch $@
