# make demo   the main job on the built-in graph      make test   the whole suite
# make check  lint, types, layers                    make quick  the tests of every room that take a moment only
# make bench  measured speed, in benchmarks/         make docs   the site, in site/
# make page   bundle the explorer, after a change of its sources
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test quick check bench docs format page build clean

demo: .venv/.base
	$(BIN)/neupath demo

test: .venv/.dev
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

quick: .venv/.dev
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow" --durations=5 --durations-min=2

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.bench
	$(BIN)/python benchmarks/engine.py
	@test -z "$$NEUPATH_DATA" || $(BIN)/python benchmarks/inference.py
	@test -z "$$NEUPATH_DATA" || $(BIN)/python benchmarks/forward.py
	@test -z "$$NEUPATH_DATA" || $(BIN)/python benchmarks/service.py load

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the site is in site/; open site/index.html"

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The bundle is committed: pip installs the service without Node.js, which only this target needs.
page:
	cd src/neupath/service/page && npm ci --no-audit --no-fund && node build.mjs

build: .venv/.dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation

clean:
	rm -rf .venv dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "error: no python3.11 or python3 found; install Python 3.11 or newer"; exit 2; }
	$(PYTHON) -m venv .venv
	@echo "installing neupath and what it needs into .venv, which may take minutes"

.venv/.base: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -e '.[learn,serve]'
	@touch $@

.venv/.docs: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -e '.[docs]'
	@touch $@ .venv/.base

.venv/.bench: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -e '.[bench]'
	@touch $@ .venv/.base

.venv/.dev: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -e '.[dev]'
	@touch $@ .venv/.base
