# Everything runs in .venv, which the first target makes; Python 3.10+ and make are all that must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types arrows patterns unit pages laws mutants fuzz goldens bench cluster fleet faults \
	lowest newest pythons audit mutation dist clean

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

# logs that are mutated in every way, against all promises: make mutants N=100000
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

# every step of every write of every command fails once, in every way; a normal run takes a few of each
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

# every ratio against its target (docs/performance.md): make bench BENCH='--quick --rows marginal'
bench: $(VENV)/.ready
	$(BIN)/python benchmarks/bench.py $(BENCH)

# The suite but for the browser and the generated logs, which say nothing of dependencies (docs/supply.md).
QUICK ?= tests --ignore=tests/browser --ignore=tests/test_truth.py --ignore=tests/test_laws.py --ignore=tests/test_equal.py
# what touches every dependency and the interpreter: reports, commands, inputs, knowledge, tables
SMOKE ?= tests/test_fixtures.py tests/cli/test_main.py tests/cli/test_output.py tests/intake tests/knowledge \
	tests/fleet/test_run.py tests/fleet/test_table.py tests/test_portable.py

# the suite with the oldest versions that pyproject.toml allows, and with today's newest
lowest newest: %: .venv-%/.ready
	PYTHONWARNINGS=error .venv-$*/bin/python -m postmortem patterns test
	.venv-$*/bin/python -m pytest $(QUICK)

.venv-lowest/.ready: RESOLUTION := lowest-direct
.venv-newest/.ready: RESOLUTION := highest
.venv-lowest/.ready .venv-newest/.ready: pyproject.toml
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install -q --disable-pip-version-check uv
	$(@D)/bin/uv pip install -q --python $(@D)/bin/python --resolution $(RESOLUTION) -e '.[dev,fast,remote,parquet]'
	@touch $@

# every Python from 3.10 on that the machine has (on the PATH or pyenv's); the others are named
PYTHONS ?= 3.10 3.11 3.12 3.13 3.14
pythons:
	scripts/pythons.sh "$(PYTHONS)" "$(SMOKE)"

.venv-tools/.ready:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -q --disable-pip-version-check build hatchling pip-audit
	@touch $@

# known weaknesses of what an installation brings, the newest versions; asks the package index, and fails where that
# does not answer for one
audit: .venv-tools/.ready .venv-newest/.ready
	.venv-newest/bin/uv pip freeze --python .venv-newest/bin/python --exclude-editable > .venv-newest/frozen.txt
	.venv-tools/bin/pip-audit --strict --no-deps --disable-pip -r .venv-newest/frozen.txt

# small changes to the rooms that decide, and which of them no test notices; what was tried stays tried until its code
# changes. A night's work in all: make mutation MUTATION='postmortem.remedies.plan*'
mutation: .venv-mutation/.ready
	.venv-mutation/bin/mutmut run --max-children 2 $(if $(MUTATION),'$(MUTATION)')
	.venv-mutation/bin/python scripts/survivors.py

.venv-mutation/.ready: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -q --disable-pip-version-check -e '.[mutation]'
	@touch $@

# wheel and sdist in dist/, built twice and compared, looked into, installed and run
dist: .venv-tools/.ready
	.venv-tools/bin/python scripts/dist.py dist

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m compileall -q postmortem
	@touch $@

clean:
	rm -rf $(VENV) .venv-* build dist mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis
