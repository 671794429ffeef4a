# `make paper` and `make test` set up everything themselves: a virtual environment in .venv, with plain pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUTPUT ?= output
PYTEST_WORKERS ?= auto

.DEFAULT_GOAL := help
.PHONY: help docs paper recommender suitesparse test test-statistics test-services bench bench-fleet check format clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | sed -E "s/^([a-z-]+):.*## (.*)$$/make \1: \2/"

paper: $(VENV)/.paper  ## Reproduce the paper into output/report.html (FAST=1 for a quick look, FIGURE=name for one alone)
	DPSELECT_RESULTS=$(OUTPUT)/recommender $(BIN)/python -m experiments --output $(OUTPUT) $(if $(FAST),--fast) $(addprefix --only ,$(FIGURE))

recommender: $(VENV)/.sansa  ## Run the paper's real-data section on the sets in DATA=directory; goes on where it was interrupted
	$(BIN)/python -m experiments.recommender $(if $(DATA),--data $(DATA)) --output $(OUTPUT)

test: $(VENV)/.test  ## Run all tests but the long statistical ones
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup -m "not statistics and not services"

test-statistics: $(VENV)/.test  ## Run the long goodness-of-fit tests
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup -m statistics

docs: $(VENV)/.docs  ## Build the documentation site into output/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test-services: $(VENV)/.test  ## Run the tests that need PostgreSQL, which they start themselves
	$(BIN)/python -m pytest -m services

bench: $(VENV)/.bench  ## Measure speed against peers; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks

bench-fleet: $(VENV)/.bench  ## Measure files, fleets and large selections; writes docs/scaling.md
	$(BIN)/python -m benchmarks.fleet

check: $(VENV)/.check  ## Check formatting, lint, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.check  ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove everything that was built
	rm -rf $(VENV) $(OUTPUT) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests experiments benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "dpselect needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp for each extra: installed again when pyproject.toml changes.
$(VENV)/.%: pyproject.toml | $(BIN)/python
	@echo "Installing dpselect[$*] into $(VENV) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

# SANSA's extra is compiled against a system library.
$(VENV)/.sansa: | suitesparse

suitesparse:
	@if [ -f /usr/include/suitesparse/cholmod.h ] || [ -n "$$SUITESPARSE_INCLUDE_DIR" ]; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -qq libsuitesparse-dev; \
	else echo "SANSA needs SuiteSparse: install libsuitesparse-dev (Debian, Ubuntu), or set SUITESPARSE_INCLUDE_DIR and" \
	  "SUITESPARSE_LIBRARY_DIR to where it is" >&2; exit 1; fi
