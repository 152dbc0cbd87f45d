# A handful of verbs; each sets up what it needs first, and does nothing twice.

# One .venv serves every target, so `make -j` takes them one after the other.
.NOTPARALLEL:
.PHONY: help demo test check bench sim clean setup-run setup-test static

# An environment of the caller's must not reach into ours.
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV

bin := .venv/bin

help:
	@echo 'make demo    set up what is missing and watch jobs go through a queue'
	@echo 'make test    everything that must hold before a change is merged: check, and every test, none skipped'
	@echo 'make check   the quick part, for while you work: format, lint, types, import rules, unit tests'
	@echo 'make bench   measure this machine'
	@echo 'make sim     more of the simulation than make test runs: MINUTES=5, or SEED=123 to see one again'
	@echo 'make clean   remove everything that these made'

demo: setup-run
	@$(bin)/penstock demo

check: static
	$(bin)/pytest -x -q -n 2 -m 'not slow'

# `static` and all tests contain everything that check does. A skipped test is a failure here: nothing runs later.
test: static
	$(bin)/pytest -n 2 --junitxml=.state/tests.xml
	@! grep -o '<skipped type="pytest.skip"[^>]*' .state/tests.xml

# The simulation beyond what `test` runs of it: MINUTES=5 looks at new seeds, SEED=123 shows one again, step by step;
# WORLD="name" in the worlds where it failed, BUG="name" with that planted bug.
sim: setup-test
	@$(bin)/python -m tests.simulation $(if $(SEED),--seed $(SEED) --world "$(WORLD)" $(if $(BUG),--bug "$(BUG)"),--minutes $(or $(MINUTES),5))

bench: setup-test
	$(bin)/python -m benchmarks

clean:
	rm -rf .venv .state .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist build
	find . -name __pycache__ -prune -exec rm -rf {} +

setup-run:
	@scripts/setup run

setup-test:
	@scripts/setup test

static: setup-test
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/mypy
	$(bin)/lint-imports
