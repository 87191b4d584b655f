# Guideline Studio. `make run` starts it, `make test` checks everything; both set up what they need, and may be run again.

PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000

BIN := .venv/bin
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes
PYTEST := $(BIN)/pytest
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url

DEMO_TEMPLATES := $(patsubst %/tool.py,%,$(wildcard studio/demo/tool_templates/*/tool.py))

.PHONY: run test lint format test-engine test-studio test-e2e bench requirements templates clean help

help:
	@echo "make run [PORT=8000]   start the studio, with web and worker, at http://$(HOST):$(PORT)/"
	@echo "make test              lint, then all tests"
	@echo "make lint | format     only look | put the code in shape"
	@echo "make bench             measure, beside the budgets"
	@echo "make templates         pack the demo's tool templates as the ZIPs that it uploads"
	@echo "make requirements      compile requirements*.txt from pyproject.toml"
	@echo "make clean             remove the environment and the caches; what the studio stored in var/ stays"

run: .venv/run
	@$(BIN)/python manage.py serve --bootstrap --host $(HOST) --port $(PORT)

test: lint test-engine test-studio test-e2e

lint: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python manage.py makemigrations --check --dry-run

format: .venv/dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

test-engine: .venv/dev
	tests/install_for_tests.sh bwrap bubblewrap
	$(PYTEST) tests/engine -p no:django -n 2

test-studio: .venv/dev
	$(PYTEST) tests/studio -n 2

test-e2e: .venv/dev
	tests/install_for_tests.sh chromium chromium fonts-dejavu-core
	$(PYTEST) tests/e2e

bench: .venv/dev
	$(PYTEST) tests/bench --timeout 600

requirements: .venv/dev
	$(COMPILE) pyproject.toml -o requirements.txt
	$(COMPILE) --group dev pyproject.toml -c requirements.txt -o requirements-dev.txt
	$(COMPILE) --group installer -c requirements-dev.txt -o requirements-uv.txt

# The same files give the same bytes, so what did not change makes no difference to commit.
templates: .venv/run
	@$(foreach template,$(DEMO_TEMPLATES),$(BIN)/python manage.py pack_template $(template) &&) true

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache test-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. Each mark is written when its step is done, so that a broken-off step is done again.
.venv/uv: requirements-uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Guideline Studio needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@echo "Setting up .venv ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.txt
	@touch $@

.venv/run: .venv/uv requirements.txt
	@$(INSTALL) --compile-bytecode -r requirements.txt
	@touch $@

.venv/dev: .venv/run requirements-dev.txt
	@$(INSTALL) -r requirements-dev.txt
	@touch $@
