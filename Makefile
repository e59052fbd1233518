# Every recipe starts in this folder and every target is relative, so that a path with
# spaces works. Two stamps remember what .venv holds; they age with what it is made from.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
STORE ?= kernelwatch.duckdb
RUN_READY := .venv/run.ready
TEST_READY := .venv/test.ready
# The others need a GPU: docs/figures.md says how to call them.
BENCHES := coverage dashboard judge outbox paired rejudge sittings steps store
MADE_FROM := pyproject.toml constraints/cpu.txt scripts/constraints.sh scripts/environment.sh

.PHONY: help run dashboard test browser lint types unit bench clean

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' Makefile | column -t -s '|'

run: $(RUN_READY) ## measure HEAD of this repository into the embedded store
	$(BIN)/collect --commit HEAD --store '$(STORE)'
	@echo
	@echo "The run is in $(STORE). To see it: make dashboard, or .venv/bin/dashboard --store '$(STORE)'"

dashboard: $(RUN_READY) ## serve the pages over the embedded store
	$(BIN)/dashboard --store '$(STORE)'

test: lint types unit ## everything that must pass before a change is merged

lint: $(TEST_READY) ## style
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/zizmor --offline --quiet .github docs/workflows/*.yml

types: $(TEST_READY) ## static types
	$(BIN)/mypy
	for room in alerts collector dashboard store; do $(BIN)/mypy "tests/$$room"; done

unit: $(TEST_READY) browser ## the tests, in a real browser where they need one
	$(BIN)/pytest -n 2

browser:
	scripts/install_chromium.sh

bench: $(TEST_READY) ## what is claimed in numbers and needs no GPU, measured again (minutes)
	for name in $(BENCHES); do echo "== $$name"; $(BIN)/python "tests/bench/bench_$$name.py"; done

clean: ## remove the environment and the caches; the store stays
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist

# The test environment holds all that `make run` needs, so it renews both stamps.
$(TEST_READY): $(MADE_FROM)
	scripts/environment.sh all,test
	touch $(RUN_READY) $(TEST_READY)

$(RUN_READY): $(MADE_FROM)
	scripts/environment.sh all
	touch $(RUN_READY)
