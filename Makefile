# Everything runs in .venv, which the first target makes; Python 3.10+ and make are all that must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types arrows patterns unit pages laws mutants fuzz goldens bench cluster fleet faults clean

demo: $(VENV)/.ready
	@$(BIN)/postmortem fixtures/early-step-checkpointing-off/log.txt --exit-zero

test: lint types arrows patterns unit

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	$(BIN)/mypy

arrows: $(VENV)/.ready
	$(BIN)/lint-imports --no-cache

patterns: $(VENV)/.ready
	$(BIN)/postmortem patterns test

unit: $(VENV)/.ready
	$(BIN)/python -m pytest -n auto

# the web pages in an installed Chromium (CHROMIUM=…): checks, and pictures at 390, 1280 and on paper in build/pages
pages: $(VENV)/.ready
	SCREENSHOTS=$(or $(SCREENSHOTS),build/pages) $(BIN)/python -m pytest tests/browser -rs

# the laws, the truth and the equality of all ways to read, over as many generated logs as wanted: make laws N=2000
N ?= 2000
laws: $(VENV)/.ready
	LAWS_N=$(N) $(BIN)/python -m pytest tests/test_truth.py tests/test_laws.py tests/test_equal.py tests/scan/test_draws.py -n auto

# logs that are mutated in every way, against all promises: make mutants N=100000 (about an hour of two cores)
mutants: $(VENV)/.ready
	MUTANTS_N=$(N) $(BIN)/python -m pytest tests/fuzz/test_mutants.py -n auto

# the fuzzers, for TIME seconds in all; findings in build/fuzz, and status 1: make fuzz TIME=3600 TARGETS="scan intake"
TIME ?= 600
fuzz: .venv-fuzz/.ready
	TARGETS="$(TARGETS)" .venv-fuzz/bin/python -m tests.fuzz.run $(TIME)

.venv-fuzz/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/bin/python -m pip install -q --disable-pip-version-check -e '.[fuzz]'
	@touch $@

# every step of every write of every command fails once, in every way (ten minutes; a normal run takes a few of each)
faults: $(VENV)/.ready
	FAULTS=all $(BIN)/python -m pytest tests/faults -n auto

goldens: $(VENV)/.ready
	UPDATE_GOLDENS=1 $(BIN)/python -m pytest tests/test_fixtures.py -n auto

# a real Dask cluster and a server that speaks S3, in an environment of their own
cluster: .venv-cluster/.ready
	.venv-cluster/bin/python -m pytest tests/fleet

.venv-cluster/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-cluster
	.venv-cluster/bin/python -m pip install -q --disable-pip-version-check -e '.[dev-cluster]'
	@touch $@

# ten thousand generated runs (2 GB) in build/corpus: every row checked, ratios printed
fleet: $(VENV)/.ready
	@mkdir -p build
	$(BIN)/python benchmarks/fleet.py build/corpus

# every ratio against its target (docs/performance.md), a quarter of an hour: make bench BENCH='--quick --rows marginal'
bench: $(VENV)/.ready
	$(BIN)/python benchmarks/bench.py $(BENCH)

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m compileall -q postmortem
	@touch $@

clean:
	rm -rf $(VENV) .venv-cluster .venv-fuzz build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
